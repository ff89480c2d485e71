# For Spack 1.0 and later, in the folder that has what scripts/release makes:
#   spack repo add /path/to/col/packaging/spack && spack install --no-checksum col
import os

from spack_repo.builtin.build_systems.meson import MesonPackage

from spack.package import *


class Col(MesonPackage):
    """Collective communication for processes: allreduce, broadcast, all-to-all and their like, over shared memory, Gloo, UCX and NCCL."""

    url = f"file://{os.getcwd()}/libcol-0.1.0.tar.gz"
    manual_download = True

    license("Apache-2.0")

    version("0.1.0")

    variant("gloo", default=True, description="Hosts talk over TCP by Gloo")
    variant("ucx", default=True, description="Hosts talk over what UCX finds")
    variant("nccl", default=False, description="GPUs talk over NCCL, which is loaded at run time")
    variant("tools", default=True, description="colrun and the other tools")

    depends_on("cxx", type="build")
    depends_on("meson@1.0.0:", type="build")
    depends_on("ninja", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("python", type="build")
    depends_on("fmt")
    depends_on("nlohmann-json")
    depends_on("openssl")
    depends_on("cli11", when="+tools", type="build")
    depends_on("gloo", when="+gloo")
    depends_on("cmake", when="+gloo", type="build")
    depends_on("ucx@1.13:", when="+ucx")
    depends_on("cuda@12:", when="+nccl")
    depends_on("nccl", when="+nccl")

    def meson_args(self):
        backends = ["shm"] + [name for name in ("gloo", "ucx", "nccl") if self.spec.satisfies(f"+{name}")]
        tools = "true" if self.spec.satisfies("+tools") else "false"
        return [f"-Dbackends={','.join(backends)}", f"-Dtools={tools}", "-Dpython=disabled", "-Dexamples=false", "-Dtests=false"]
