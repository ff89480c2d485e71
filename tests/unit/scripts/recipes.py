"""The recipes of packaging/ are ones for their tools, and ask for what meson.build asks for. recipes.py ROOT

Each is read by a parser of its own. Versions are compared in tests/system_wheel/versions.py. Last, errors are planted in copies.
"""
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import types

try:
    import yaml
except ImportError:
    print("skipped: this Python has no yaml (python3-yaml)")
    sys.exit(77)

# Libraries by Meson's name, and what else the tools call them. Others of a recipe make col, and are no part of it.
NAMES = {"fmt": ["fmt", "libfmt-dev"], "nlohmann_json": ["nlohmann_json", "nlohmann-json", "nlohmann-json3-dev"], "CLI11": ["cli11", "libcli11-dev"],
         "libcrypto": ["openssl", "libssl-dev"], "Gloo": ["gloo", "libgloo-dev"], "ucx": ["ucx", "libucx-dev"], "cuda": ["cuda"], "catch2": ["catch2"]}
MAKES = {"cxx", "meson", "ninja", "pkg-config", "pkgconfig", "python", "python3", "cmake", "nccl", "vcpkg-tool-meson", "debhelper-compat"}


class Problem(Exception):
    pass


class Skipped(Exception):
    pass


def output(*command, **options):
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, **options)
    if done.returncode != 0:
        raise Problem((done.stderr.strip().splitlines() or ["no output"])[0])
    return done.stdout


# ---- What the recipes say: their license, Meson's options, and the libraries with the oldest version that serves ------------------------

def conda(folder):
    recipe = yaml.safe_load((folder / "conda/recipe.yaml").read_text())
    listed = [line for kind in ("build", "host") for line in recipe["requirements"][kind] if not line.startswith("${{")]
    options = [word for line in recipe["build"]["script"] for word in line.split() if word.startswith("-D")]
    asked = {name: since.removeprefix(">=") for name, _, since in (line.partition(" ") for line in listed)}
    yield "conda", recipe["about"]["license"], options, asked


def spack(folder):
    said = {"depends": []}
    words = {"url": None, "license": lambda text: said.update(license=text), "version": lambda *_, **__: None, "variant": lambda *_, **__: None,
             "depends_on": lambda spec, when=None, type=None: said["depends"].append((spec, when)), "MesonPackage": object}
    source = (folder / "spack/packages/col/package.py").read_text()
    # Its words, as Spack would give them.
    modules = {"spack_repo.builtin.build_systems.meson": types.SimpleNamespace(MesonPackage=object), "spack.package": types.SimpleNamespace(**words, __all__=list(words))}
    sys.modules.update(modules)
    exec(compile(source, "package.py", "exec"), package := {})
    for chosen in ({"gloo", "ucx", "nccl", "tools"}, {"ucx", "tools"}, set()):
        recipe = package["Col"]()
        recipe.spec = types.SimpleNamespace(satisfies=lambda text: text.lstrip("+") in chosen)
        asked = dict(spec.rstrip(":").partition("@")[::2] for spec, when in said["depends"] if when is None or when.lstrip("+") in chosen)
        yield f"spack with {' '.join(sorted(chosen)) or 'nothing'}", said["license"], recipe.meson_args(), asked


def vcpkg(folder):
    port = json.loads((folder / "vcpkg/col/vcpkg.json").read_text())
    with tempfile.TemporaryDirectory() as work:
        # Its words do nothing but tell Meson's options.
        words = ["vcpkg_install_meson", "vcpkg_fixup_pkgconfig", "vcpkg_install_copyright"]
        driver = pathlib.Path(work, "driver.cmake")
        driver.write_text("".join(f"function({word})\nendfunction()\n" for word in words)
                          + 'function(vcpkg_configure_meson)\nmessage(STATUS "${ARGV}")\nendfunction()\n' + f'include("{folder}/vcpkg/col/portfile.cmake")\n')
        said = output("cmake", f"-DCURRENT_PACKAGES_DIR={work}/none", "-P", driver)
    asked = {part if isinstance(part, str) else part["name"]: "" for part in port["dependencies"]}
    yield "vcpkg", port["license"], re.findall(r"-D[^;\n]+", said), asked


def nix(folder):
    text = (folder / "nix/default.nix").read_text()
    if shutil.which("nix-instantiate"):
        text = output("nix-instantiate", "--parse", folder / "nix/default.nix")
    else:
        print("skipped: nix-instantiate is not there (nix-bin); read as text")
    listed = " ".join(re.findall(r"(?:nativeBuildInputs|buildInputs) = \[([^\]]*)\]", text))
    license_id = {"asl20": "Apache-2.0"}.get(re.search(r"licenses?\)?\.(\w+)", text)[1])
    yield "nix", license_id, re.findall(r'"(-D[^"]*)"', text), dict.fromkeys(re.findall(r"[\w-]+", listed), "")


def debian(folder):
    if not pathlib.Path("/usr/share/dpkg/architecture.mk").exists():
        raise Skipped("there is no dpkg-dev")
    control = re.search(r"^Build-Depends: (.*?)^(?=\S)", (folder / "debian/control").read_text(), re.M | re.S)[1]
    asked = dict(re.findall(r"([\w.+-]+)(?: \((?:>=|=) ([^)]*)\))?(?:,|$)", control.replace("\n", " ").strip()))
    # As make would run it, outside of a build of scripts/package.
    commands = output("make", "-n", "-f", folder / "debian/rules", "override_dh_auto_configure", "COL_BUILD=", cwd=folder)
    license_id = re.search(r"^License: (.*)$", (folder / "debian/copyright").read_text(), re.M)[1]
    yield "debian", license_id, re.findall(r"-D[^\s\\]+", commands), asked


# ---- What meson.build says ------------------------------------------------------------------------------------------------------------

def dependencies(root):
    """(folder, Meson's name, the oldest version) of each dependency()."""
    for path in [root / "meson.build", *(root / "src").rglob("meson.build"), *(root / "tests").rglob("meson.build")]:
        for name, rest in re.findall(r"(?<!override_)\bdependency\('(\w+)'([^)]*)", path.read_text()):
            since = re.search(r"version: '>=([\d.]+)'", rest)
            if name in NAMES:
                yield path.parent.relative_to(root), name, since[1] if since else ""


def needed(every, options):
    """Of these, what a build with these options asks for."""
    switches = {"src/tools": options.get("tools") != "false", "src/examples": options.get("examples") != "false", "tests": options.get("tests") != "false",
                **{f"src/lib/backend/{name}": name in options["backends"].split(",") for name in ("gloo", "ucx", "nccl")}}
    return {name: since for folder, name, since in every if all(is_on or not folder.is_relative_to(part) for part, is_on in switches.items())}


def complaints_of_options(root, options):
    known = dict(re.findall(r"option\('(\w+)', (.*?)\)\n", (root / "meson_options.txt").read_text(), re.S))
    for name, value in options.items():
        if name == "default_library":
            continue  # Meson's own
        if name not in known:
            yield f"there is no option {name}"
        elif "'boolean'" in known[name] and value not in ("true", "false") or "'feature'" in known[name] and value not in ("enabled", "disabled", "auto"):
            yield f"{name} cannot be {value}"
        elif choices := re.search(r"choices: \[([^\]]*)\]", known[name]):
            yield from (f"{name} cannot be {part}" for part in value.split(",") if f"'{part}'" not in choices[1])
    yield from (f"it does not say -D{name}" for name in ("backends", "tools", "python", "examples", "tests") if name not in options)


def complaints_of_libraries(wanted, asked, tells_versions):
    for name, since in wanted.items():
        found = [asked[other] for other in NAMES[name] if other in asked]
        if not found:
            yield f"it lacks {name}"
        elif tells_versions and found[0] != since:
            yield f"it takes {name} {found[0] or 'of any version'}, and meson.build {since or 'any'}"
    yield from (f"{name} is not asked for by meson.build" for name in asked
                if name not in MAKES and not any(name in NAMES[other] for other in wanted))


def check(root, folder):
    """A line for each error of the recipes in this folder."""
    license_id = re.search(r"license: '(.*?)'", (root / "meson.build").read_text())[1]
    every = list(dependencies(root))
    for read in conda, spack, vcpkg, nix, debian:
        try:
            for name, said, words, asked in read(folder):
                options = dict(word.removeprefix("-D").split("=", 1) for word in words)
                yield from (f"{name}: {text}" for text in complaints_of_options(root, options))
                if "backends" in options:
                    yield from (f"{name}: {text}" for text in complaints_of_libraries(needed(every, options), asked, read in (conda, spack, debian)))
                if said != license_id:
                    yield f"{name}: its license is {said}, and not {license_id}"
        except Skipped as why:
            print(f"skipped: {read.__name__}: {why}")
        except Exception as error:
            yield f"{read.__name__} cannot be read: {error}"
    # The container is made of Debian's packages.
    steps = [line.split()[0] for line in (folder / "Containerfile").read_text().splitlines() if line and not line.startswith("#")]
    yield from (f"Containerfile: what is {word}?" for word in steps if word not in ("FROM", "COPY", "RUN", "CMD"))
    installed = re.findall(r"/tmp/([\w-]+)_\*\.deb", (folder / "Containerfile").read_text())
    packages = re.findall(r"^Package: (.*)$", (folder / "debian/control").read_text(), re.M)
    if installed != packages:
        yield f"Containerfile: it installs {installed}, and packaging/debian makes {packages}"


# What the forge runs, and the forms that it shows.
def check_forge(root):
    runs = {}
    for file in sorted((root / ".github/workflows").glob("*.yml")):
        jobs = yaml.safe_load(file.read_text())["jobs"]
        runs[file.name] = " ".join(step.get("run", "") for job in jobs.values() for step in job["steps"])
        yield from (f"{file.name}: there is no {script}" for script in re.findall(r"(?:scripts|\.ci)/[\w-]+", runs[file.name]) if not (root / script).exists())
    yield from (f"ci.yml: it does not run {script}" for script in ("scripts/test", ".ci/run") if script not in runs["ci.yml"].split())
    for file in sorted((root / ".github/ISSUE_TEMPLATE").glob("[!c]*.yml")):
        form = yaml.safe_load(file.read_text())
        if not form["name"] or not form["description"] or not all(part["attributes"]["label"] for part in form["body"]):
            yield f"{file.name}: a form has name, description and labels"
    runs = runs["release.yml"]
    options = output(sys.executable, "-B", root / "scripts/release", "--help")
    of_release = runs[runs.index("scripts/release"):].partition("gh ")[0]
    yield from (f"release.yml: scripts/release has no {option}" for option in re.findall(r"--[a-z-]+", of_release) if option not in options)


PLANTED = {
    "conda/recipe.yaml": [("    - fmt\n", "", "conda: it lacks fmt"), ("ucx >=1.13", "ucx >=1.9", "conda: it takes ucx 1.9, and meson.build 1.13"),
                          ("-Dtools=true", "-Dtool=true", "conda: there is no option tool"), ("shm,ucx", "shm,mpi", "conda: backends cannot be mpi"),
                          ("schema_version: 1", "schema_version: [", "conda cannot be read"), ("license: Apache-2.0", "license: MIT", "conda: its license")],
    "spack/packages/col/package.py": [('when="+ucx"', 'when="+gloo"', "spack with tools ucx: it lacks ucx"), ("class Col", "clas Col", "spack cannot be read"),
                                      ('when="+tools"', 'when="+nccl"', "spack with tools ucx: it lacks CLI11"), ("cuda@12:", "cuda@11:", "spack with gloo nccl tools ucx: it takes cuda 11")],
    "vcpkg/col/vcpkg.json": [('"fmt",', "", "vcpkg: it lacks fmt"), ('"fmt",', '"fmt"', "vcpkg cannot be read"), ('"fmt",', '"fmt", "gloo",', "vcpkg: gloo is not asked for")],
    "vcpkg/col/portfile.cmake": [("-Dpython=disabled", "-Dpython=false", "vcpkg: python cannot be false"), ("vcpkg_install_meson()", "vcpkg_install_mesons()", "vcpkg cannot be read")],
    "nix/default.nix": [("openssl ucx ];", "openssl ];", "nix: it lacks ucx"), ("asl20", "mit", "nix: its license is None")]
                       + [("mesonFlags = [", "mesonFlags = ", "nix cannot be read")] * bool(shutil.which("nix-instantiate")),
    "debian/control": [("               libfmt-dev,\n", "", "debian: it lacks fmt"), ("(>= 1.13)", "(>= 1.1)", "debian: it takes ucx 1.1")],
    "debian/rules": [("shm,gloo,ucx", "shm,gloo", "debian: libucx-dev is not asked for"), ("override_dh_auto_configure:", "override_dh_auto_configure", "debian cannot be read")],
    "Containerfile": [(" /tmp/col-tools_*.deb", "", "Containerfile: it installs"), ("RUN", "RAN", "Containerfile: what is RAN?")],
}


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    wrong = [*check(root, root / "packaging"), *check_forge(root)]
    with tempfile.TemporaryDirectory(prefix="col-recipes-") as work:
        folder = pathlib.Path(work, "packaging")
        shutil.copytree(root / "packaging", folder)
        for name, changes in PLANTED.items():
            text = (folder / name).read_text()
            for before, after, said in changes:
                (folder / name).write_text(text.replace(before, after))
                found = list(check(root, folder))
                is_skipped = said.startswith("debian") and not pathlib.Path("/usr/share/dpkg/architecture.mk").exists()
                if before not in text or not is_skipped and not any(line.startswith(said) for line in found):
                    wrong.append(f"planted in {name}: {after or 'nothing'} for {before}: not '{said}', but {found}")
            (folder / name).write_text(text)
    sys.exit("\n".join(wrong) or None)


main()
