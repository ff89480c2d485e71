"""What of col is C++. Tensors are numpy arrays, torch tensors, and whatever has DLPack, the buffer protocol or
__cuda_array_interface__."""

from datetime import timedelta
from typing import Any, Callable, Generator, Iterable, Mapping, Optional, Sequence, TypeVar, Union, overload

from typing_extensions import TypeAlias

T = TypeVar("T")
Tensor: TypeAlias = Any
Seconds: TypeAlias = Union[float, timedelta]
Operator: TypeAlias = Union[str, Op, Callable[[Any, Any], Any]]

class Op:
    """How a reduction combines two elements: a name, as in op="max", premul_sum() or user_op(). Integers wrap: "avg" adds in the
    array's type, divides by the number of ranks and rounds toward zero, so two int8 of 100 make -28.
    """

    @property
    def name(self) -> str: ...

class Message:
    """One message of a batch: see Group.batch()."""

    @staticmethod
    def send(x: Tensor, destination: int, tag: int = 0) -> Message: ...
    @staticmethod
    def recv(out: Tensor, source: int, tag: int = 0) -> Message: ...

class Memory:
    """What an array of alloc() lies on."""

class Work:
    """An operation that an i-form has started. It can be awaited in asyncio.

    The buffers belong to the operation until it has ended. The Work keeps them alive; if it is dropped, they are kept until the
    end all the same.
    """

    def wait(self, timeout: Optional[Seconds] = None, *, stream: Optional[int] = None) -> Any:
        """Blocks until the operation has ended, and returns its result. Without a timeout in seconds, the operation's own counts,
        from now. Raises the operation's error, at every call; col.Timeout, which names the missing ranks, if `timeout` passes
        first: the operation then goes on.

        With a stream, a cudaStream_t as an int such as torch.cuda.current_stream().cuda_stream, the stream waits and not the
        host: what it gets from now on comes after the operation. The result is complete for this stream. Only in a group of GPUs,
        else col.Unavailable. Nobody counts a timeout meanwhile.
        """
    def wait_for(self, seconds: float) -> bool:
        """The same for so long at most. Returns whether the operation has ended; if not, it goes on."""
    def overdue(self, seconds: float) -> BaseException:
        """After a wait_for(seconds) that returned False: the col.Timeout that wait(seconds) would have raised. It is not raised."""
    def done(self) -> bool:
        """Returns whether the operation has ended, without blocking. Raises the operation's error."""
    def then(self, function: Optional[Callable[[Optional[BaseException]], Any]]) -> Work:
        """Calls the function with None when the operation has ended, or with its error, in a thread of the library. Returns the
        Work of the function. The function may start operations, and must not wait.

        With None in place of a function, that thread only moves the operation on and counts its timeout, where the host makes no
        call meanwhile: after wait(stream=…), say. It takes no lock of the interpreter.
        """
    @property
    def error(self) -> Optional[BaseException]:
        """The operation's error, an exception that is not raised; None after success, and before the end."""
    @property
    def source(self) -> int:
        """After the end of a receive: the rank that sent the message. Otherwise -1."""
    @property
    def result(self) -> Any:
        """The output, which is complete once the operation has ended."""
    def __await__(self) -> Generator[Any, None, Any]:
        """Other tasks run until the operation has ended. Gives its result, or raises its error."""

class PreparedCall:
    """A collective that comes again with the same buffers: Group.prepare() makes it. It is started as often as wanted, one after
    the other. Every rank starts it, or calls the i-form of the same collective.
    """

    def start(self) -> Work:
        """Starts the call with what its buffers hold now, and returns its Work at once. Raises col.InvalidArgument if the start
        before has not ended, and what the i-form raises.
        """
    def wait(self, timeout: Optional[Seconds] = None, *, stream: Optional[int] = None) -> Any:
        """As Work.wait() of the last start: blocks until it has ended, and returns the result. Returns at once if nothing was
        started.
        """
    def done(self) -> bool:
        """As Work.done() of the last start: whether it has ended. True if nothing was started."""
    @property
    def result(self) -> Any:
        """The output, which is complete once a start has ended."""

class Group:
    """A named, ordered set of ranks with connections of its own.

    All ranks of a group make the same collective calls in the same order. Every call blocks until this rank's part is done, but
    for those whose names begin with an i: they return a Work at once. A call blocks for its timeout at most, in seconds; without
    one, for the group's.
    """

    @property
    def rank(self) -> int:
        """Of this process in the group, from 0."""
    @property
    def size(self) -> int:
        """Number of ranks."""
    @property
    def name(self) -> str:
        """Its name in this process."""
    @property
    def backend(self) -> str:
        """What moves the data: 'shm', 'hosts', 'gloo', 'nccl', or 'self' (a world of one rank on the CPU)."""
    @property
    def device(self) -> str:
        """The memory that the group moves without extra copies: 'cpu', or 'cuda:0' and the like."""
    @property
    def ranks(self) -> list[int]:
        """For each rank of this group, in order: its rank in the job."""
    @property
    def timeout(self) -> float:
        """How many seconds the group's calls wait if they do not say."""
    def world_rank(self, rank: int) -> int:
        """ranks[rank]."""
    def rank_of(self, world_rank: int) -> int:
        """The rank in this group of the process with this rank in the job; -1 if it is not a member."""
    def destroy(self) -> None:
        """Leaves the group. Not collective. Ends the operations that are in flight here."""
    def coalesce(self) -> Coalescing:
        """For a with statement, in which this group collects collectives, and starts them together at its end: one launch on
        GPUs. Only the i-forms of collectives, whose Works can be waited for afterwards. The calls must not use what another one
        of them writes. An exception that leaves the block cancels all of them. All ranks make the same calls in the same blocks.
        """
    def prepare(self, collective: str, *args: Any, **kwargs: Any) -> PreparedCall:
        """Prepares a collective that comes again with the same buffers: prepare("allreduce", x, op="max"). The arguments are
        those of the method of that name, and are checked now. Local: no other rank takes part, and nothing blocks. It meets the
        i-forms of ranks that have not prepared theirs.
        """
    def allreduce(self, x: Tensor, out: Optional[Tensor] = None, *, op: Operator = "sum", algorithm: Optional[str] = None, timeout: Optional[Seconds] = None, deterministic: bool = False, compress: bool = False, order: str = "any", contributions: int = 0, stream: Optional[int] = None) -> Any:
        """out[i] = op over all ranks of x[i]. Without out, in place. Returns the output. Integers wrap, also in an "avg"."""
    def reduce(self, x: Tensor, out: Optional[Tensor] = None, *, op: Operator = "sum", root: int = 0, algorithm: Optional[str] = None, timeout: Optional[Seconds] = None, deterministic: bool = False, compress: bool = False, order: str = "any", contributions: int = 0, stream: Optional[int] = None) -> Any:
        """As allreduce, but only the root gets the result: without out, in its x. Returns the output; None on other ranks."""
    def broadcast(self, x: Tensor, *, root: int = 0, algorithm: Optional[str] = None, timeout: Optional[Seconds] = None, stream: Optional[int] = None) -> Any:
        """Every rank gets the root's elements, in its x. Returns x."""
    def allgather(self, x: Tensor, out: Optional[Tensor] = None, *, algorithm: Optional[str] = None, timeout: Optional[Seconds] = None, stream: Optional[int] = None) -> Any:
        """out holds every rank's x, in rank order. Without out, a new array, along the first axis. Returns the output."""
    def allgatherv(self, x: Tensor, counts: Sequence[int], out: Optional[Tensor] = None, *, algorithm: Optional[str] = None, timeout: Optional[Seconds] = None, stream: Optional[int] = None) -> Any:
        """As allgather, but rank r gives counts[r] elements. A new output has one axis."""
    def reduce_scatter(self, x: Tensor, out: Optional[Tensor] = None, *, op: Operator = "sum", algorithm: Optional[str] = None, timeout: Optional[Seconds] = None, deterministic: bool = False, compress: bool = False, order: str = "any", contributions: int = 0, stream: Optional[int] = None) -> Any:
        """Rank r gets block r of x, reduced over all ranks. Without out, a new array: the first axis of x is cut. Returns the
        output.
        """
    def reduce_scatterv(self, x: Tensor, counts: Sequence[int], out: Optional[Tensor] = None, *, op: Operator = "sum", algorithm: Optional[str] = None, timeout: Optional[Seconds] = None, deterministic: bool = False, compress: bool = False, order: str = "any", contributions: int = 0, stream: Optional[int] = None) -> Any:
        """As reduce_scatter, but rank r gets counts[r] elements. A new output has one axis."""
    def gather(self, x: Tensor, out: Optional[Tensor] = None, *, root: int = 0, algorithm: Optional[str] = None, timeout: Optional[Seconds] = None, stream: Optional[int] = None) -> Any:
        """The root gets every rank's x, in rank order. Without out, it makes a new array, along the first axis. Returns the
        output; None on other ranks.
        """
    def gatherv(self, x: Tensor, counts: Optional[Sequence[int]] = None, out: Optional[Tensor] = None, *, root: int = 0, algorithm: Optional[str] = None, timeout: Optional[Seconds] = None, stream: Optional[int] = None) -> Any:
        """As gather, but rank r gives counts[r] elements. Only the root passes counts. A new output has one axis."""
    def scatter(self, x: Optional[Tensor] = None, out: Optional[Tensor] = None, *, root: int = 0, algorithm: Optional[str] = None, timeout: Optional[Seconds] = None, stream: Optional[int] = None) -> Any:
        """Rank r gets block r of the root's x. Other ranks pass None as x, and an out. Without out, the root makes a new array:
        the first axis of x is cut. Returns the output.
        """
    def scatterv(self, x: Optional[Tensor] = None, counts: Optional[Sequence[int]] = None, out: Optional[Tensor] = None, *, root: int = 0, algorithm: Optional[str] = None, timeout: Optional[Seconds] = None, stream: Optional[int] = None) -> Any:
        """As scatter, but rank r gets counts[r] elements. Only the root passes x and counts. A new output has one axis."""
    def alltoall(self, x: Tensor, out: Optional[Tensor] = None, *, algorithm: Optional[str] = None, timeout: Optional[Seconds] = None, stream: Optional[int] = None) -> Any:
        """Block r of x goes to rank r, and block r of out comes from it. Without out, a new array like x. Returns the output."""
    def alltoallv(self, x: Tensor, in_counts: Sequence[int], out_counts: Sequence[int], out: Optional[Tensor] = None, *, algorithm: Optional[str] = None, timeout: Optional[Seconds] = None, stream: Optional[int] = None) -> Any:
        """As alltoall, but in_counts[r] elements go to rank r, and out_counts[r] come from it. A new output has one axis."""
    def scan(self, x: Tensor, out: Optional[Tensor] = None, *, op: Operator = "sum", algorithm: Optional[str] = None, timeout: Optional[Seconds] = None, deterministic: bool = False, compress: bool = False, order: str = "any", contributions: int = 0, stream: Optional[int] = None) -> Any:
        """out[i] = op over x[i] of ranks 0 to this one. Without out, a new array like x. Returns the output."""
    def exscan(self, x: Tensor, out: Optional[Tensor] = None, *, op: Operator = "sum", algorithm: Optional[str] = None, timeout: Optional[Seconds] = None, deterministic: bool = False, compress: bool = False, order: str = "any", contributions: int = 0, stream: Optional[int] = None) -> Any:
        """As scan, but over the ranks before this one. Rank 0 gets nothing: None, and its out is not touched."""
    def barrier(self, *, algorithm: Optional[str] = None, timeout: Optional[Seconds] = None) -> None:
        """Returns after every rank has entered. Ends the collectives that this rank has in flight in the group."""
    def iallreduce(self, x: Tensor, out: Optional[Tensor] = None, *, op: Operator = "sum", algorithm: Optional[str] = None, timeout: Optional[Seconds] = None, deterministic: bool = False, compress: bool = False, order: str = "any", contributions: int = 0, stream: Optional[int] = None) -> Work:
        """Starts allreduce(), and returns its Work at once."""
    def ireduce(self, x: Tensor, out: Optional[Tensor] = None, *, op: Operator = "sum", root: int = 0, algorithm: Optional[str] = None, timeout: Optional[Seconds] = None, deterministic: bool = False, compress: bool = False, order: str = "any", contributions: int = 0, stream: Optional[int] = None) -> Work:
        """Starts reduce(), and returns its Work at once."""
    def ibroadcast(self, x: Tensor, *, root: int = 0, algorithm: Optional[str] = None, timeout: Optional[Seconds] = None, stream: Optional[int] = None) -> Work:
        """Starts broadcast(), and returns its Work at once."""
    def iallgather(self, x: Tensor, out: Optional[Tensor] = None, *, algorithm: Optional[str] = None, timeout: Optional[Seconds] = None, stream: Optional[int] = None) -> Work:
        """Starts allgather(), and returns its Work at once."""
    def iallgatherv(self, x: Tensor, counts: Sequence[int], out: Optional[Tensor] = None, *, algorithm: Optional[str] = None, timeout: Optional[Seconds] = None, stream: Optional[int] = None) -> Work:
        """Starts allgatherv(), and returns its Work at once."""
    def ireduce_scatter(self, x: Tensor, out: Optional[Tensor] = None, *, op: Operator = "sum", algorithm: Optional[str] = None, timeout: Optional[Seconds] = None, deterministic: bool = False, compress: bool = False, order: str = "any", contributions: int = 0, stream: Optional[int] = None) -> Work:
        """Starts reduce_scatter(), and returns its Work at once."""
    def ireduce_scatterv(self, x: Tensor, counts: Sequence[int], out: Optional[Tensor] = None, *, op: Operator = "sum", algorithm: Optional[str] = None, timeout: Optional[Seconds] = None, deterministic: bool = False, compress: bool = False, order: str = "any", contributions: int = 0, stream: Optional[int] = None) -> Work:
        """Starts reduce_scatterv(), and returns its Work at once."""
    def igather(self, x: Tensor, out: Optional[Tensor] = None, *, root: int = 0, algorithm: Optional[str] = None, timeout: Optional[Seconds] = None, stream: Optional[int] = None) -> Work:
        """Starts gather(), and returns its Work at once."""
    def igatherv(self, x: Tensor, counts: Optional[Sequence[int]] = None, out: Optional[Tensor] = None, *, root: int = 0, algorithm: Optional[str] = None, timeout: Optional[Seconds] = None, stream: Optional[int] = None) -> Work:
        """Starts gatherv(), and returns its Work at once."""
    def iscatter(self, x: Optional[Tensor] = None, out: Optional[Tensor] = None, *, root: int = 0, algorithm: Optional[str] = None, timeout: Optional[Seconds] = None, stream: Optional[int] = None) -> Work:
        """Starts scatter(), and returns its Work at once."""
    def iscatterv(self, x: Optional[Tensor] = None, counts: Optional[Sequence[int]] = None, out: Optional[Tensor] = None, *, root: int = 0, algorithm: Optional[str] = None, timeout: Optional[Seconds] = None, stream: Optional[int] = None) -> Work:
        """Starts scatterv(), and returns its Work at once."""
    def ialltoall(self, x: Tensor, out: Optional[Tensor] = None, *, algorithm: Optional[str] = None, timeout: Optional[Seconds] = None, stream: Optional[int] = None) -> Work:
        """Starts alltoall(), and returns its Work at once."""
    def ialltoallv(self, x: Tensor, in_counts: Sequence[int], out_counts: Sequence[int], out: Optional[Tensor] = None, *, algorithm: Optional[str] = None, timeout: Optional[Seconds] = None, stream: Optional[int] = None) -> Work:
        """Starts alltoallv(), and returns its Work at once."""
    def iscan(self, x: Tensor, out: Optional[Tensor] = None, *, op: Operator = "sum", algorithm: Optional[str] = None, timeout: Optional[Seconds] = None, deterministic: bool = False, compress: bool = False, order: str = "any", contributions: int = 0, stream: Optional[int] = None) -> Work:
        """Starts scan(), and returns its Work at once."""
    def iexscan(self, x: Tensor, out: Optional[Tensor] = None, *, op: Operator = "sum", algorithm: Optional[str] = None, timeout: Optional[Seconds] = None, deterministic: bool = False, compress: bool = False, order: str = "any", contributions: int = 0, stream: Optional[int] = None) -> Work:
        """Starts exscan(), and returns its Work at once."""
    def ibarrier(self, *, algorithm: Optional[str] = None, timeout: Optional[Seconds] = None) -> Work:
        """Starts barrier(), and returns its Work at once."""
    def send(self, x: Tensor, destination: int, *, tag: int = 0, timeout: Optional[Seconds] = None, stream: Optional[int] = None) -> None:
        """Sends x to a rank, which receives it with equal tag."""
    def recv(self, out: T, source: int, *, tag: int = 0, timeout: Optional[Seconds] = None, stream: Optional[int] = None) -> T:
        """Receives from a rank into out, and returns out."""
    def recv_any(self, out: Tensor, *, tag: int = 0, timeout: Optional[Seconds] = None, stream: Optional[int] = None) -> int:
        """Receives the first message with this tag from any rank, and returns the rank that sent it."""
    def sendrecv(self, x: Tensor, destination: int, out: T, source: int, *, tag: int = 0, timeout: Optional[Seconds] = None, stream: Optional[int] = None) -> T:
        """Sends and receives at once: ranks in a ring that all call it do not deadlock. Returns out."""
    def batch(self, messages: Iterable[Message], *, timeout: Optional[Seconds] = None, stream: Optional[int] = None) -> None:
        """All messages at once; see col.Message. They do not deadlock, whatever their order."""
    def isend(self, x: Tensor, destination: int, *, tag: int = 0, timeout: Optional[Seconds] = None, stream: Optional[int] = None) -> Work:
        """Starts send(), and returns its Work at once."""
    def irecv(self, out: Tensor, source: int, *, tag: int = 0, timeout: Optional[Seconds] = None, stream: Optional[int] = None) -> Work:
        """Starts recv(), and returns its Work at once."""
    def irecv_any(self, out: Tensor, *, tag: int = 0, timeout: Optional[Seconds] = None, stream: Optional[int] = None) -> Work:
        """Starts recv_any(), and returns its Work at once. Its source is the rank that sent the message."""
    def ibatch(self, messages: Iterable[Message], *, timeout: Optional[Seconds] = None, stream: Optional[int] = None) -> Work:
        """Starts batch(), and returns its Work at once."""
    def allreduce_multigpu(self, tensors: Sequence[Tensor], *, op: Operator = "sum", timeout: Optional[Seconds] = None) -> None:
        """In place, over the tensors of all GPUs of all ranks: one tensor for each GPU that this rank drives. The group's backend
        must be nccl; <col/multi_gpu.hpp> says more.
        """
    def reduce_multigpu(self, tensors: Sequence[Tensor], *, op: Operator = "sum", root: int = 0, root_tensor: int = 0, timeout: Optional[Seconds] = None) -> None:
        """As allreduce_multigpu, but only tensor root_tensor of the root gets the result."""
    def broadcast_multigpu(self, tensors: Sequence[Tensor], *, root: int = 0, root_tensor: int = 0, timeout: Optional[Seconds] = None) -> None:
        """Every tensor gets the elements of tensor root_tensor of the root."""
    def allgather_multigpu(self, output_lists: Sequence[Sequence[Tensor]], tensors: Sequence[Tensor], *, timeout: Optional[Seconds] = None) -> None:
        """output_lists[i] gets the tensors of all GPUs of all ranks, and is on the GPU of tensors[i]."""
    def reducescatter_multigpu(self, tensors: Sequence[Tensor], input_lists: Sequence[Sequence[Tensor]], *, op: Operator = "sum", timeout: Optional[Seconds] = None) -> None:
        """tensors[i] gets the reduction of entry rank * k + i of all lists; k is the number of GPUs of a rank."""
    def send_multigpu(self, tensor: Tensor, destination: int, destination_gpu: int, *, n_elements: int = 0, timeout: Optional[Seconds] = None) -> None:
        """One message to a GPU of another rank; n_elements: 0 for all."""
    def recv_multigpu(self, tensor: Tensor, source: int, source_gpu: int, *, n_elements: int = 0, timeout: Optional[Seconds] = None) -> None:
        """One message from a GPU of another rank; n_elements: 0 for all."""
    def broadcast_object(self, object: Any = None, *, root: int = 0, timeout: Optional[Seconds] = None) -> Any:
        """Returns the root's object. Other ranks pass nothing."""
    def allgather_object(self, object: Any, *, timeout: Optional[Seconds] = None) -> list[Any]:
        """Returns a list of every rank's object, in rank order."""
    def gather_object(self, object: Any, *, root: int = 0, timeout: Optional[Seconds] = None) -> Optional[list[Any]]:
        """Returns a list of every rank's object, in rank order, on the root; None on other ranks."""
    def scatter_object(self, objects: Optional[Iterable[Any]] = None, *, root: int = 0, timeout: Optional[Seconds] = None) -> Any:
        """Returns objects[rank] of the root. Other ranks pass nothing."""
    def send_object(self, object: Any, destination: int, *, tag: int = 0, timeout: Optional[Seconds] = None) -> None:
        """Sends an object to a rank, which calls recv_object()."""
    def recv_object(self, source: int, *, tag: int = 0, timeout: Optional[Seconds] = None) -> Any:
        """Returns the object that a rank has sent with equal tag."""
    def split(self, color: int, key: int = 0) -> Optional[Group]:
        """Ranks of equal color form a group, ordered by key, then by rank. None for a negative color. Collective."""
    def subgroup(self, ranks: Sequence[int], name: str) -> Optional[Group]:
        """The listed ranks form a group, in the order of the list; None on the others. Collective."""
    def dup(self) -> Group:
        """A group of all ranks, in the same order. Collective."""
    def shrink(self, excluded: Sequence[int], name: str = "") -> Group:
        """After the loss of ranks: a group of all the others, in the same order. Works on a broken group. Collective over the
        ranks that stay.
        """
    @overload
    def renew(self, *, size: int = 0, min: int = 1, wait: Seconds = 0.0, progress: int = 0) -> Group:
        """The next epoch of a group that init() or init_collective_group() has made, under its name: of all its ranks but those
        that were lost and those in excluded, and of those that wait in join(), up to size (0: as many as before). Collective over
        the ranks that live and stay; works on a broken group, and on one that is not. Returns the new group, or None on a rank
        that is excluded. With fewer than min ranks, PeerLost on all. wait: for how many seconds to wait for ranks that join,
        where there are fewer than size. progress: how far this rank's state is, see source. size, min and excluded are equal on
        all ranks.

        Blocks for the group's timeout at most, without the GIL. This group is over then: what is in flight in it, and in groups
        that were made from it, ends with Aborted, whose is_loss is true. Inputs are intact.

        An error is the same on all ranks that live, and all can call again on this group: Mismatch (about size, min or excluded),
        Timeout (names the ranks that did not call), PeerLost. Of this rank alone: Aborted (others have left it out), IoError (the
        job's store cannot be reached), InvalidArgument. One thread at a time.
        """
    @overload
    def renew(self, *, size: int = 0, min: int = 1, wait: Seconds = 0.0, excluded: Sequence[int], progress: int = 0) -> Optional[Group]: ...
    def renewal_wanted(self) -> bool:
        """Whether somebody waits in join(). Collective, and the same on all ranks: where it is true, they can call renew().
        Blocks, and fails, as any call.
        """
    @property
    def epoch(self) -> int:
        """The number of this epoch, from 0; of the group that this one was made from, if it was. Equal on all ranks, as the next
        four are, which raise InvalidArgument on a group that was made from another one.
        """
    @property
    def newcomers(self) -> list[int]:
        """Ranks that were not in the epoch before. In epoch 0, all."""
    @property
    def lost(self) -> list[int]:
        """Ranks of the epoch before that are not in this one, by their numbers there."""
    @property
    def source(self) -> int:
        """The rank whose state the others can take: the lowest of those with the most progress. In epoch 0, 0."""
    def progress(self, rank: int) -> int:
        """What that rank gave to renew() as progress. In epoch 0, 0."""
    def explain(self, collective: str, bytes: int, dtype: Any = "float32", *, op: Operator = "sum", root: int = 0, algorithm: str = "", deterministic: bool = False, compress: bool = False, order: str = "any") -> str:
        """Which algorithm a call would run, and why. bytes is the size of the whole vector, or of all blocks together."""
    def algorithms(self, collective: str) -> list[str]:
        """The names that a call's algorithm may have in this group."""
    def annotate(self, label: str) -> None:
        """Later calls of this rank in this group carry the label: in coljob, in reports and in traces. An empty one ends that."""
    def record_trace(self, on: bool) -> None:
        """Turns the recording of executed steps on or off."""
    def trace(self) -> list[dict[str, Any]]:
        """The steps recorded since record_trace(True) or the last trace(): dicts with operation, collective, algorithm, round,
        step, peer, and the slices to, left and right as (buffer, offset, count) or None.
        """

class Coalescing:
    """A scope of Group.coalesce()."""

    def __enter__(self) -> Coalescing: ...
    def __exit__(self, type: Any, value: Any, trace: Any) -> None: ...
    @property
    def work(self) -> Work:
        """After the block: one Work for all of its calls."""
    def wait(self, timeout: Optional[Seconds] = None, *, stream: Optional[int] = None) -> None:
        """work.wait()."""

class Context:
    """A job of its own, beside the one of init(): rank and world_size say who this process is, and the ranks meet in the store,
    as in init(). Blocks until all ranks have come, for timeout seconds at most (5 minutes), of which spent have passed already. A
    process may be in many. Its groups keep it. If the process ends before finalize(), the others lose a peer. Every wait of its
    groups calls interrupt() about every 50 ms; what that raises ends the wait.
    """

    def __init__(self, rank: int, world_size: int, *, store: Optional[str] = None, token: Optional[str] = None, job_id: Optional[str] = None, timeout: Optional[Seconds] = None, spent: float = 0.0, serialize: bool = False, interrupt: Optional[Callable[[], Any]] = None) -> None: ...
    @property
    def is_on_one_host(self) -> bool:
        """Whether all its ranks share a host."""
    def init_group(self, name: str = "default", backend: str = "auto", timeout: Optional[Seconds] = None, *, rank: Optional[int] = None, world_size: Optional[int] = None, nccl_settings: str = "") -> Group:
        """The group of all its ranks; or of those world_size ranks that call this with the name, each with its own rank in the
        group. Blocks until they all have. nccl_settings: "max_ctas=8,cta_policy=efficiency", see docs/gpu.md. Returns it.
        """
    def finalize(self) -> None:
        """Destroys its groups, and tells the other ranks that this one did not crash."""

class StoreServer:
    """A store in the memory of this process, where ranks meet: init(store=server.url, token=server.token, …). It listens at the
    address that host is, on all if it is empty, 0.0.0.0 or ::, on a free port unless one is given. It proves the token, which is
    never sent; without one, it makes one.
    """

    def __init__(self, host: str = "127.0.0.1", port: int = 0, token: Optional[str] = None) -> None: ...
    @property
    def url(self) -> str: ...
    @property
    def token(self) -> str: ...
    def stop(self) -> None:
        """Drops all clients, and forgets all keys."""

def init(*, backend: str = "auto", timeout: Optional[Seconds] = None, store: Optional[str] = None, rank: Optional[int] = None, world_size: Optional[int] = None, token: Optional[str] = None, job_id: Optional[str] = None, serialize: bool = False) -> Group:
    """Joins group 'default', and returns it: with the ranks that the environment gives (from colrun or another launcher), else as
    a world of one. With store, rank and world_size, these say it. A second call returns the same group. With serialize, threads
    that use one group at once take turns; otherwise the second one gets InvalidArgument.
    """
def finalize() -> None:
    """Destroys all groups. Call it when a rank is done: its peers then know that it did not crash."""
def init_collective_group(world_size: int, rank: int, backend: str = "auto", group_name: str = "default", timeout: Optional[Seconds] = None) -> Group:
    """Joins a group by its name, which the free functions find it by. Returns it."""
class CurrentGpu:
    """with CurrentGpu(0): GPU 0 is this thread's meanwhile, and of the groups that it makes."""

    def __init__(self, gpu_id: int) -> None: ...
    def __enter__(self) -> None: ...
    def __exit__(self, type: object, error: object, trace: object) -> None: ...

def gpus_in_use() -> list[int]:
    """The GPU that this thread has made current; without one, those that the process has started. Starts none."""
def synchronize(gpu_id: int, timeout: Optional[Seconds] = None) -> None:
    """Waits until the GPU has ended all work that this process gave to it."""
def get_group(group_name: str = "default") -> Group:
    """The group of that name. Joins it if needed, and if the store says how."""
def join(name: str = "default", timeout: Optional[Seconds] = None) -> Group:
    """Joins a group that stands, from outside: waits until its ranks call renew() with room for this process, and returns the
    group of the epoch that begins then. The environment gives this process the store and the job of the group's ranks, and a rank
    that none of them has, or that of one that was lost. Blocks for timeout seconds at most (the job's, if none is given), without
    the GIL. Raises Timeout (nobody has made the group, or its ranks did not renew it), AlreadyInitialized (this process is in a
    group of that name), InvalidArgument (no store), PeerLost (no rank of it is left), IoError; it may be called again then. Any
    thread may call it.
    """
def is_group_initialized(group_name: str = "default") -> bool:
    """Whether this process is in a group of that name."""
def destroy_collective_group(group_name: str = "default") -> bool:
    """Leaves the group. Returns false if there is none of that name."""
def alloc(shape: Union[int, Sequence[int]], dtype: Any = "float32", group: Optional[Group] = None, *, timeout: Optional[Seconds] = None) -> Any:
    """Returns a numpy array of zeros on memory that the ranks of a node share: collectives on it copy less. Collective: every
    rank calls it with the same size. The memory is freed with the last array on it.
    """
def premul_sum(scale: float) -> Op:
    """Each rank multiplies its input by its own scale before the sum. For integer types, scale must be a whole number."""
def user_op(function: Callable[[Any, Any], Any], *, commutative: bool = False, name: Optional[str] = None) -> Op:
    """A reduction by an associative function of two numpy arrays of one dimension, which returns their combination, element by
    element. If it is not said to be commutative, it is applied in rank order. All ranks must pass the same name; without one it
    is the function's. The arrays are valid only during the call. The function must not use the group.
    """
def wait_all(works: Iterable[Work], timeout: Optional[Seconds] = None) -> list[Any]:
    """Waits for all of them, and returns their results. Raises the first error in the order of the list; col.Timeout if `timeout`
    passes first: those that have not ended go on.
    """
def wait_any(works: Iterable[Work], timeout: Optional[Seconds] = None) -> int:
    """Waits until one of them has ended, and returns its place in the list, or raises its error."""
def version() -> str: ...
def gloo_unavailable_reason() -> str:
    """Why Gloo is not available, in words; empty if it is."""
def nccl_unavailable_reason() -> str:
    """Why NCCL is not available, in words; empty if it is."""
def set_error_classes(classes: Mapping[str, type], /) -> None: ...
def close() -> None:
    """Says that the interpreter ends."""
def check_writable(address: int, bytes: int, /) -> None: ...
def list_allgather(outputs: Iterable[Tensor], tensor: Tensor, group_name: str, context: Optional[Context], timeout: Optional[Seconds], /) -> None: ...
def list_reducescatter(tensor: Tensor, inputs: Iterable[Tensor], group_name: str, context: Optional[Context], op: Operator, timeout: Optional[Seconds], /) -> None: ...
def list_gather(outputs: Optional[Iterable[Tensor]], tensor: Tensor, root: int, group_name: str, context: Optional[Context], timeout: Optional[Seconds], /) -> None: ...
def list_scatter(tensor: Tensor, inputs: Optional[Iterable[Tensor]], root: int, group_name: str, context: Optional[Context], timeout: Optional[Seconds], /) -> None: ...
def list_alltoall(outputs: Iterable[Tensor], inputs: Iterable[Tensor], group_name: str, context: Optional[Context], timeout: Optional[Seconds], /) -> None: ...

class Verdict:
    @property
    def good(self) -> bool: ...
    @property
    def problem(self) -> str: ...
    @property
    def rank(self) -> int: ...
    @property
    def round(self) -> int: ...
    @property
    def order(self) -> str: ...
    @property
    def rounds(self) -> int: ...
    @property
    def messages(self) -> int: ...
    @property
    def elements_sent(self) -> int: ...
    @property
    def most_elements_sent(self) -> int: ...
    def __bool__(self) -> bool: ...

class Simulation:
    @property
    def seconds(self) -> float: ...
    @property
    def rank_seconds(self) -> list[float]: ...
    @property
    def messages(self) -> int: ...
    @property
    def bytes_inter(self) -> int: ...
    @property
    def bytes_intra(self) -> int: ...
    @property
    def node_bytes_out(self) -> list[int]: ...
    @property
    def node_bytes_in(self) -> list[int]: ...

class PlanSet:
    """The plans of all ranks. col.plan.Plan is what users see."""

    @property
    def name(self) -> str: ...
    @property
    def collective(self) -> str: ...
    @property
    def ranks(self) -> int: ...
    def verify(self) -> Verdict: ...
    def simulate(self, *, alpha: float = ..., beta: float = ..., gamma: float = ..., copy: float = ..., inter_alpha: Optional[float] = None, inter_beta: Optional[float] = None, cores: int = 0, cpu_per_message: float = 0, memory_bandwidth: float = 0, nic_shared: bool = False) -> Simulation: ...
    def svg(self) -> str: ...
    def text(self) -> str: ...
    def json(self) -> str: ...

def make_plan(collective: str, algorithm: str, *, file_text: str = "", ranks: int, count: int, root: int = 0, counts: Sequence[int] = ..., in_place: bool = False, widens: bool = False, wide_input: bool = False, nodes: Sequence[int] = ..., element_size: int = 4) -> PlanSet: ...
def start_trace(limit: int = ...) -> None:
    """From now on, this process keeps when its calls begin and end. trace() has more."""
def end_trace(path: str) -> bool:
    """Ends that, and adds what was kept to a file."""
def read_plan(text: str) -> tuple[str, int, int]:
    """What a plan in a file is for: collective, ranks, chunks. Throws what is wrong with it."""
def plan_algorithms(collective: str) -> dict[str, str]: ...
