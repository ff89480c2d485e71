"""Who takes part over hosts, and how each is started there."""

import dataclasses
import os
import pathlib
import uuid

from contestants import COUNTS, KEEP_MEMORY
from launch import launch_commands
from nodes_hosts import HERE, INTERFACE


@dataclasses.dataclass(frozen=True)
class Contestant:
    name: str
    family: str  # the program that the Makefile builds
    launcher: str  # ranks, openmpi4, openmpi5 or hydra
    arguments: tuple = ()
    environment: dict = dataclasses.field(default_factory=dict)
    crowded: dict = dataclasses.field(default_factory=dict)  # added to it with more ranks on a host than processors
    one_processor_each: bool = False  # where ranks have to share processors, it takes part in the barrier only


HAN = ("--mca", "coll_han_priority", "100")
CONTESTANTS = [
    Contestant("col", "col", "ranks"),
    # Over a wire by name, whatever col would choose.
    Contestant("col-gloo", "col", "ranks", environment={"COL_BACKEND": "gloo"}),
    Contestant("col-ucx", "col", "ranks", environment={"COL_BACKEND": "ucx"}),
    Contestant("gloo", "gloo", "ranks", environment={"CONTEST_INTERFACE": INTERFACE}),
    Contestant("openmpi4", "openmpi4", "openmpi4", environment={**KEEP_MEMORY, **COUNTS}),
    Contestant("openmpi4-han", "openmpi4", "openmpi4", arguments=HAN, environment={**KEEP_MEMORY, **COUNTS}),
    Contestant("openmpi5-han", "openmpi5", "openmpi5", arguments=HAN, environment={**KEEP_MEMORY, **COUNTS}),
    Contestant("intel", "intel", "hydra",
               environment={**KEEP_MEMORY, "I_MPI_FABRICS": "shm:ofi", "FI_PROVIDER": "tcp", "FI_TCP_IFACE": INTERFACE},
               crowded={"I_MPI_WAIT_MODE": "1"}),
    # With more ranks than processors MPICH's times are made of time slices: its barrier shows it.
    Contestant("mpich5", "mpich5", "hydra",
               environment={**KEEP_MEMORY, "UCX_NET_DEVICES": INTERFACE, "UCX_TLS": "tcp,self,posix"},
               one_processor_each=True),
]
BY_NAME = {contestant.name: contestant for contestant in CONTESTANTS}
OPENMPI = {
    # Whoever waits gives its processor to the other ranks of the host, which has more of them than processors.
    "openmpi4": ("--mca", "btl", "self,vader,tcp", "--mca", "oob_tcp_if_include", INTERFACE, "--mca", "plm_rsh_agent"),
    "openmpi5": ("--mca", "btl", "self,sm,tcp", "--prtemca", "prte_if_include", INTERFACE, "--prtemca", "plm_ssh_agent"),
}


def absent(programs):
    """{name: why} of those that cannot be measured here."""
    return {contestant.name: "not built: it is not installed here, or could not be fetched"
            for contestant in CONTESTANTS if not (programs / contestant.family).exists()}


def is_crowded(layout, processors):
    """Whether ranks of a host have to share a processor."""
    return max(layout.counts) > max(1, processors // len(layout.counts))


def cells_of(contestant, turn, processors):
    """What it measures of a turn; nothing if it does not take part."""
    if contestant.name != "col" and (turn.alone or contestant.family == "col" and not turn.each_wire):
        return []
    crowded = is_crowded(turn.layout, processors)
    return [cell for cell in turn.cells if not (cell[0] == "round_trip" and turn.layout.ranks > 2)
            and not (contestant.one_processor_each and crowded and cell[0] != "barrier")]


def contest_environment(scratch, layout, processors):
    return {"CONTEST_START_LINE": f"{scratch}/start_line", "CONTEST_STORE": f"{scratch}/store",
            "CONTEST_RANKS": str(layout.ranks), "CONTEST_PROCESSORS": str(processors), "CONTEST_WIRE": INTERFACE}


def rank_commands(hosts, layout, program, environment, scratch):
    """One command a host, which starts its ranks. col takes its place from COL_*."""
    job = uuid.uuid4().hex
    for host, count in enumerate(layout.counts):
        place = {"COL_WORLD_SIZE": str(layout.ranks), "COL_LOCAL_WORLD_SIZE": str(count), "COL_NODE_RANK": str(host),
                 "COL_NNODES": str(len(layout.counts)), "COL_JOB_ID": job, "COL_STORE": f"file://{scratch}/store"}
        ranks = " ".join(map(str, layout.ranks_of(host)))
        yield hosts.on(host, "bash", HERE / "nodes_ranks.sh", ranks, *program), {**environment, **place}


def launcher_of(contestant, programs):
    own = programs / "rivals" / contestant.family / "bin"
    name = "mpiexec.hydra" if contestant.launcher == "hydra" else "mpirun"
    return str(own / name) if (own / name).exists() else "mpirun.openmpi"


def mpi_command(contestant, hosts, layout, program, given, programs):
    """mpirun on the first host, which reaches the others by ssh. `given` is what it has to hand on."""
    if layout.in_turn:
        raise ValueError("MPI's launchers are asked for ranks host after host")
    launcher = launcher_of(contestant, programs)
    places = ",".join(f"{name}:{count}" for name, count in zip(hosts.names, layout.counts))
    if contestant.launcher == "hydra":
        words = [launcher, "-launcher", "ssh", "-launcher-exec", hosts.ssh, "-iface", INTERFACE, "-hosts", places]
        for name, value in given.items():
            words += ["-genv", name, value]
    else:
        words = [launcher, "--allow-run-as-root", "--host", places, "--bind-to", "none", "--map-by", "slot", "--mca",
                 "pml", "ob1", "--mca", "btl_tcp_if_include", INTERFACE, "--mca", "mpi_yield_when_idle", "1",
                 *OPENMPI[contestant.launcher], hosts.ssh, *contestant.arguments]
        for name in given:
            words += ["-x", name]
    return hosts.on(0, *words, "-n", layout.ranks, *program)


def measure(contestant, hosts, turn, cells, options):
    """A launch.Launch: what one contestant measured of some cells."""
    words = ",".join(f"{name}:{bytes_}" for name, bytes_ in cells)
    program = [options.programs / contestant.family, "--cells", words, "--seconds", turn.seconds, "--most-seconds",
               turn.most_seconds]

    def prepare(scratch):
        given = {**contest_environment(scratch, turn.layout, options.processors), **contestant.environment}
        if is_crowded(turn.layout, options.processors):
            given.update(contestant.crowded)
        environment = {**os.environ, **hosts.environment, **given}
        if contestant.launcher == "ranks":
            return list(rank_commands(hosts, turn.layout, program, environment, scratch))
        return [(mpi_command(contestant, hosts, turn.layout, program, given, options.programs), environment)]

    return launch_commands(prepare, options.limit, options.scratch)


def by_colrun(hosts, layout, program, options, more=None):
    """A launch.Launch of a program of col's, by one colrun on each host."""
    def prepare(scratch):
        environment = {**os.environ, **hosts.environment, **contest_environment(scratch, layout, options.processors),
                       "OMP_NUM_THREADS": "1", **(more or {})}
        return [(hosts.on(host, options.colrun, "--nnodes", len(layout.counts), "--node-rank", host, "--rdzv-endpoint",
                          f"{hosts.names[0]}:29400", "-n", count, *program), environment)
                for host, count in enumerate(layout.counts)]

    return launch_commands(prepare, options.limit, options.scratch)
