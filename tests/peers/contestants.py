"""Who takes part, and with which settings."""

import dataclasses
import os
import pathlib

HERE = pathlib.Path(__file__).resolve().parent

# MPI libraries allocate temporaries in many calls. With glibc's defaults the pages of large ones go back to the
# kernel each time and are faulted in anew.
KEEP_MEMORY = {
    "MALLOC_MMAP_THRESHOLD_": str(4 << 30),
    "MALLOC_TRIM_THRESHOLD_": str(4 << 30),
    "MALLOC_TOP_PAD_": str(64 << 20),
}


@dataclasses.dataclass(frozen=True)
class Contestant:
    name: str
    family: str  # col, a key of RIVALS, or bare: the program that the Makefile builds
    launcher: str  # colrun, openmpi, hydra, one_each or alone
    arguments: tuple = ()  # for the launcher
    environment: dict = dataclasses.field(default_factory=dict)
    crowded: dict = dataclasses.field(default_factory=dict)  # added to it with more ranks than processors
    operations: tuple = ()  # that the setting is about; empty: all
    least_bytes: int = 0  # below which the setting makes no difference
    one_processor_each: bool = False  # with more ranks than processors it takes part in the barrier only
    quick: bool = True  # also where time is short


RIVALS = {"openmpi4": "Open MPI 4", "openmpi5": "Open MPI 5", "mpich5": "MPICH 5", "intel": "Intel MPI", "gloo": "Gloo"}
OVERLAP = ("then_compute", "beside_compute", "beside_tests")

OPENMPI_RULES = ("--mca", "coll_tuned_use_dynamic_rules", "1",
                 "--mca", "coll_tuned_dynamic_rules_filename", str(HERE / "openmpi_rules.conf"))
OPENMPI_BOUND = ("--bind-to", "core:overload-allowed")
# Two copies through shared memory instead of one by the kernel.
OPENMPI4_COPY = ("--mca", "btl_vader_single_copy_mechanism", "none")
OPENMPI5_COPY = ("--mca", "smsc", "^cma,xpmem,knem")
OPENMPI_SM = ("--mca", "coll_sm_priority", "100")
SM_HAS = ("barrier", "allreduce", "allreduce_in_place", "broadcast", "reduce")
# MPI has two calls for a reduce_scatter of equal blocks, and they are not equally fast.
COUNTS = {"CONTEST_REDUCE_SCATTER": "counts"}

# Each rival with the settings that have been the fastest in trials, for all cells or for some.
CONTESTANTS = [
    Contestant("col", "col", "colrun"),
    Contestant("col-alloc", "col", "colrun", environment={"CONTEST_BUFFERS": "shared"}, least_bytes=32 << 10),
    Contestant("col-thread", "col", "colrun", environment={"COL_PROGRESS": "thread"},
               operations=OVERLAP),
    Contestant("openmpi4-copy", "openmpi4", "openmpi", arguments=OPENMPI_RULES + OPENMPI_BOUND + OPENMPI4_COPY,
               environment={**KEEP_MEMORY, **COUNTS}),
    Contestant("openmpi4-sm", "openmpi4", "openmpi", arguments=OPENMPI_BOUND + OPENMPI4_COPY + OPENMPI_SM,
               environment=KEEP_MEMORY, operations=SM_HAS, one_processor_each=True, quick=False),
    Contestant("openmpi5-copy", "openmpi5", "openmpi", arguments=OPENMPI_BOUND + OPENMPI5_COPY,
               environment={**KEEP_MEMORY, **COUNTS}),
    Contestant("openmpi5-sm", "openmpi5", "openmpi", arguments=OPENMPI_BOUND + OPENMPI5_COPY + OPENMPI_SM,
               environment=KEEP_MEMORY, operations=SM_HAS, one_processor_each=True),
    Contestant("openmpi5-kernel", "openmpi5", "openmpi", arguments=OPENMPI_BOUND, environment=KEEP_MEMORY,
               least_bytes=32 << 10, quick=False),
    # With more ranks than processors MPICH's times are made of time slices: its barrier shows it.
    Contestant("mpich5-bound", "mpich5", "hydra", arguments=("-bind-to", "core"), environment=KEEP_MEMORY,
               one_processor_each=True),
    Contestant("intel-shm", "intel", "hydra", environment={**KEEP_MEMORY, "I_MPI_FABRICS": "shm"},
               crowded={"I_MPI_WAIT_MODE": "1"}),
    Contestant("gloo", "gloo", "one_each", quick=False),
    Contestant("bare", "bare", "alone"),
]


def processors():
    return len(os.sched_getaffinity(0))


def takes_part(contestant, operation, ranks, bytes_):
    if contestant.one_processor_each and ranks > processors() and operation != "barrier":
        return False
    if operation == "allreduce_bfloat16" and contestant.family != "col":
        return False  # no rival has that type
    return bytes_ >= contestant.least_bytes and (not contestant.operations or operation in contestant.operations)


@dataclasses.dataclass(frozen=True)
class Places:
    """Where things lie."""

    programs: pathlib.Path  # what the Makefile built
    colrun: str

    def launcher_of(self, family, name, distributions):
        """A rival from PyPI has its launcher beside it, in its virtual environment."""
        own = self.programs / "rivals" / family / "bin" / name
        return str(own) if own.exists() else distributions

    def absent(self):
        """{the rival's name: why} of those that cannot be measured here."""
        return {name: "not built: it is not installed here, or could not be fetched"
                for family, name in RIVALS.items() if not (self.programs / family).exists()}


def commands(contestant, ranks, arguments, places, scratch):
    """The command lines to start, each with its environment: one, but for a contestant without a launcher."""
    environment = {**os.environ, **contestant.environment}
    if ranks > processors():
        environment.update(contestant.crowded)
    environment.update(CONTEST_START_LINE=f"{scratch}/start_line", CONTEST_STORE=f"{scratch}/store",
                       CONTEST_RANKS=str(ranks), CONTEST_PROCESSORS=str(processors()), TMPDIR=f"{scratch}/tmp")
    program = [str(places.programs / contestant.family), *arguments]
    n = str(ranks)
    if contestant.launcher == "colrun":
        return [([places.colrun, "-n", n, *program], environment)]
    if contestant.launcher == "openmpi":
        # Shared memory in the scratch folder, which is in /dev/shm like the default: a killed run leaves nothing.
        transport = "vader" if contestant.family == "openmpi4" else "sm"
        always = ["--allow-run-as-root", "--oversubscribe", "--mca", "btl", f"self,{transport}", "--mca", "pml", "ob1",
                  "--mca", f"btl_{transport}_backing_directory", scratch]
        if contestant.family == "openmpi4":
            always += ["--mca", "oob_tcp_if_include", "lo"]
        launcher = places.launcher_of(contestant.family, "mpirun", "mpirun.openmpi")
        return [([launcher, *always, *contestant.arguments, "-n", n, *program], environment)]
    if contestant.launcher == "hydra":
        environment["UCX_POSIX_DIR"] = scratch
        launcher = places.launcher_of(contestant.family, "mpiexec.hydra", "mpiexec.hydra")
        return [([launcher, "-launcher", "fork", "-iface", "lo", *contestant.arguments, "-n", n, *program], environment)]
    if contestant.launcher == "one_each":
        return [(program, {**environment, "CONTEST_RANK": str(rank)}) for rank in range(ranks)]
    return [(program, environment)]
