"""Who takes part, and with which settings."""

import dataclasses
import os
import pathlib

HERE = pathlib.Path(__file__).resolve().parent

# Both MPI libraries allocate temporaries in many calls. With glibc's defaults the pages of large ones go back to the
# kernel each time and are faulted in anew.
KEEP_MEMORY = {
    "MALLOC_MMAP_THRESHOLD_": str(4 << 30),
    "MALLOC_TRIM_THRESHOLD_": str(4 << 30),
    "MALLOC_TOP_PAD_": str(64 << 20),
}


@dataclasses.dataclass(frozen=True)
class Contestant:
    name: str
    family: str  # col, openmpi, mpich, gloo or bare
    launcher: str  # colrun, openmpi, hydra, one_each or alone
    default: bool = False  # as installed
    arguments: tuple = ()  # for the launcher
    environment: dict = dataclasses.field(default_factory=dict)
    operations: tuple = ()  # that the setting is about; empty: all
    least_bytes: int = 0  # below which the setting makes no difference
    one_processor_each: bool = False  # not tried with more ranks than processors


OPENMPI_RULES = ("--mca", "coll_tuned_use_dynamic_rules", "1",
                 "--mca", "coll_tuned_dynamic_rules_filename", str(HERE / "openmpi_rules.conf"))
OPENMPI_BOUND = ("--bind-to", "core:overload-allowed")
OPENMPI_COPY = ("--mca", "btl_vader_single_copy_mechanism", "none")
# MPI has two calls for a reduce_scatter of equal blocks, and they are not equally fast.
COUNTS = {"CONTEST_REDUCE_SCATTER": "counts"}

CONTESTANTS = [
    Contestant("col", "col", "colrun", default=True),
    Contestant("col-alloc", "col", "colrun", environment={"CONTEST_BUFFERS": "shared"}, least_bytes=32 << 10),
    Contestant("openmpi", "openmpi", "openmpi", default=True),
    Contestant("openmpi-bound", "openmpi", "openmpi", arguments=OPENMPI_RULES + OPENMPI_BOUND,
               environment={**KEEP_MEMORY, **COUNTS}),
    Contestant("openmpi-copy", "openmpi", "openmpi", arguments=OPENMPI_RULES + OPENMPI_BOUND + OPENMPI_COPY,
               environment={**KEEP_MEMORY, **COUNTS}),
    Contestant("openmpi-sm", "openmpi", "openmpi", arguments=OPENMPI_COPY + ("--mca", "coll_sm_priority", "100"),
               environment=KEEP_MEMORY, one_processor_each=True,
               operations=("barrier", "allreduce", "allreduce_in_place", "broadcast", "reduce")),
    Contestant("mpich", "mpich", "hydra", default=True),
    # With more ranks than processors MPICH's times are made of time slices; binding changes nothing about that.
    Contestant("mpich-bound", "mpich", "hydra", arguments=("-bind-to", "core"), environment=KEEP_MEMORY,
               one_processor_each=True),
    Contestant("mpich-posix", "mpich", "hydra", arguments=("-bind-to", "core"), one_processor_each=True,
               environment={**KEEP_MEMORY, "UCX_TLS": "posix,self"}),
    Contestant("gloo", "gloo", "one_each", default=True),
    Contestant("gloo-bcube", "gloo", "one_each", environment={"CONTEST_GLOO_ALLREDUCE": "bcube"},
               operations=("allreduce", "allreduce_in_place")),
    Contestant("bare", "bare", "alone", default=True),
]


def processors():
    return len(os.sched_getaffinity(0))


def takes_part(contestant, operation, ranks, bytes_):
    if contestant.one_processor_each and ranks > processors():
        return False
    if operation == "allreduce_bfloat16" and contestant.family != "col":
        return False  # no rival has that type
    return bytes_ >= contestant.least_bytes and (not contestant.operations or operation in contestant.operations)


@dataclasses.dataclass(frozen=True)
class Places:
    """Where things lie."""

    programs: pathlib.Path  # what the Makefile built
    colrun: str


def commands(contestant, ranks, arguments, places, scratch):
    """The command lines to start, each with its environment: one, but for a contestant without a launcher."""
    environment = {**os.environ, **contestant.environment}
    environment.update(CONTEST_START_LINE=f"{scratch}/start_line", CONTEST_STORE=f"{scratch}/store",
                       CONTEST_RANKS=str(ranks), CONTEST_PROCESSORS=str(processors()), TMPDIR=f"{scratch}/tmp")
    program = [str(places.programs / contestant.family), *arguments]
    n = str(ranks)
    if contestant.launcher == "colrun":
        return [([places.colrun, "-n", n, *program], environment)]
    if contestant.launcher == "openmpi":
        # Shared memory in the scratch folder, which is in /dev/shm like the default: a killed run leaves nothing.
        always = ["--allow-run-as-root", "--oversubscribe", "--mca", "btl", "self,vader",
                  "--mca", "oob_tcp_if_include", "lo", "--mca", "btl_vader_backing_directory", scratch]
        return [(["mpirun.openmpi", *always, *contestant.arguments, "-n", n, *program], environment)]
    if contestant.launcher == "hydra":
        environment["UCX_POSIX_DIR"] = scratch
        always = ["-launcher", "fork", "-iface", "lo"]
        return [(["mpiexec.hydra", *always, *contestant.arguments, "-n", n, *program], environment)]
    if contestant.launcher == "one_each":
        return [(program, {**environment, "CONTEST_RANK": str(rank)}) for rank in range(ranks)]
    return [(program, environment)]
