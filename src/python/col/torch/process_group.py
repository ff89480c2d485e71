"""The calls of a torch process group, over a group of col.

torch's Python functions, DDP's reducer and the functional collectives of torch.compile all call these methods, the last two from
C++. Later versions of torch have new names for some; both are here. A method starts its operation and returns a Work.
"""

from __future__ import annotations

import os
from contextlib import nullcontext
from datetime import timedelta
from threading import Lock
from typing import Any, Optional, Sequence
from weakref import finalize

import torch
import torch.distributed as dist

from .. import _col
from ..errors import InvalidArgument, Unavailable
from . import layout
from .backend import OPTIONS, Options, is_beside, stand_in_of
from .meeting import Job
from .memory import Memory
from .pair import Pair
from .side import Side, is_asynchronous
from .sparse import add_sparse
from .work import Work, let_go_of_ended_groups

_NO_TIME = timedelta(0)
_UNRECORDED = nullcontext()  # of torch's profiler
_MESSAGES = ("send", "recv", "recv_any")
_OPS = {
    getattr(dist.ReduceOp.RedOpType, theirs): ours
    for theirs, ours in {
        "SUM": "sum", "AVG": "avg", "PRODUCT": "product", "MIN": "min", "MAX": "max", "BAND": "band", "BOR": "bor", "BXOR": "bxor",
    }.items()
}


def create(options: Any, backend_options: Any = None) -> Any:
    """torch calls it on each rank of a new group: for init_process_group() with no ranks, for new_group() with the group's.

    Beside another backend, what it returns is one device's backend of torch's own group.
    """
    if backend_options is not None and type(backend_options) not in (OPTIONS, Options):
        raise InvalidArgument(f"backend 'col' has no options: leave out {type(backend_options).__name__}")
    let_go_of_ended_groups()  # here, as torch 1 tells a group nothing of its end
    group = _create(options)
    return STAND_IN.of(group) if STAND_IN and is_beside(options) else group


def _create(options: Any) -> ProcessGroup:
    timeout = options.timeout.total_seconds()
    world = own_of(dist.group.WORLD) if options.global_ranks_in_group else None
    place = options.group_rank, options.group_size, timeout
    if world is not None:
        return ProcessGroup(world._job, f"torch group {options.group_id}", *place)
    job = Job(options.store, *place)
    group = ProcessGroup(job, "world", *place)
    group._be_default_of(job)
    job.world = group.group
    if options.global_ranks_in_group:  # beside a default group of another backend, whose ranks leave it at any time
        job.let_go_of_stores()
    return group


def own_of(group: Any) -> Optional[ProcessGroup]:
    """The group of col behind one of torch's: itself, or what serves its tensors on the CPU; None if neither is col's."""
    if isinstance(group, ProcessGroup):
        return group
    if not STAND_IN or not isinstance(group, dist.ProcessGroup):
        return None
    try:
        backend = group._get_backend(torch.device("cpu"))
    except RuntimeError:  # none for the CPU
        return None
    return backend.group() if isinstance(backend, STAND_IN) else None


def needed(group: Any, what: str) -> _col.Group:
    """The same, as col's own; of torch's default group for None. Raises where it is not col's."""
    own = own_of(dist.group.WORLD if group is None else group)
    if own is None:
        raise InvalidArgument(f"{what}: the group is not of backend 'col'; make one that is, dist.new_group(backend='col'), and pass it")
    return own.group


def op_of(op: Any) -> Any:
    kind = getattr(op, "op", op)
    name = _OPS.get(kind)
    if name is not None:
        return name
    if kind == dist.ReduceOp.RedOpType.PREMUL_SUM:
        state = op.__getstate__()
        if state is not None:  # torch 1 does not tell the factor
            return _col.premul_sum(float(state[1]))
    raise InvalidArgument(f"backend 'col' has no reduction {op}; take SUM, AVG, PRODUCT, MIN, MAX, BAND, BOR, BXOR or PREMUL_SUM")


class ProcessGroup(dist.ProcessGroup):
    """A group of ranks. Calls from several threads at once follow one another."""

    def __init__(self, job: Job, name: str, rank: int, size: int, timeout: float, cpu: Optional[_col.Group] = None) -> None:
        super().__init__(rank, size)
        self._job, self._rank, self._size, self._timeout = job, rank, size, timeout
        self._name = name
        self._group_name = self._group_desc = ""
        self._sequence = 0
        self._together: Optional[list[Work]] = None  # what _start_coalescing() has begun to collect
        self._changed_timeout: Optional[float] = None
        self._lock = Lock()
        self._ends_job: Any = None  # in a default group, the finalizer that ends its job
        self._checks_nan = os.environ.get("TORCH_DIST_NAN_CHECK", "0") == "1"
        backend = "shm" if job.context.is_on_one_host else "hosts"
        self._cpu: Any = cpu or job.context.init_group(name, backend, timeout, rank=rank, world_size=size)
        self._cuda: Any = None
        self._gpu: Any = None  # that of the first tensor on one
        self._side: Optional[Side] = None  # of the GPU
        self._pairs: dict[int, Pair] = {}  # by the other rank
        self._memory: Optional[Memory] = None
        self._be_found()

    def _be_default_of(self, job: Job) -> None:
        """The default group: the job ends with it, also where it is collected without a word."""
        self._ends_job = finalize(self, job.end_quietly)
        self._ends_job.atexit = False

    def _be_found(self) -> None:
        """torch's C++ asks a group for the backend of a device, of which this one has none: it is one itself."""
        if not STAND_IN:
            return
        kind = dist.ProcessGroup.BackendType.CUSTOM
        self._stand_in = STAND_IN(self)
        for device in self._device_types:
            self._register_backend(device, kind, self._stand_in)
        self._set_default_backend(kind)

    # ---- What it is

    def rank(self) -> int:
        return self._rank

    def size(self) -> int:
        return self._size

    def name(self) -> str:
        return "col"

    getRank, getSize, getBackendName, _get_backend_name = rank, size, name, name

    def setGroupName(self, name: str) -> None:
        self._group_name = name

    def getGroupName(self) -> str:
        return self._group_name

    def setGroupDesc(self, text: str) -> None:
        self._group_desc = text

    def getGroupDesc(self) -> str:
        return self._group_desc

    # By these names torch 2.4 asks its C++, which has none for a group in Python.
    _set_group_name, _set_group_desc = setGroupName, setGroupDesc
    group_name, group_desc = property(getGroupName), property(getGroupDesc)

    def _get_backend(self, device: Any) -> ProcessGroup:
        return self

    supports_coalescing = False  # batch_isend_irecv() then starts one operation after the other, which is what col does anyway
    # Each is said: of a backend in Python that is silent, torch's C++ asks itself without end.
    supports_window = supports_reconfigure = _supports_time_estimate = False

    def new_window(self, tensor: Any = None) -> Any:
        raise Unavailable("new_window: backend 'col' has no one-sided calls; send and recv take a rank and a tag")

    def merge_remote_group(self, *args: Any, **more: Any) -> Any:
        raise Unavailable("merge_remote_group: backend 'col' has no groups over several jobs; new_group() takes ranks of this one")

    def reconfigure(self, *args: Any) -> Any:
        raise Unavailable("reconfigure: backend 'col' takes in no new ranks; shrink_group() leaves some out")

    get_reconfigure_handle = reconfigure

    @property
    def _device_types(self) -> list[Any]:
        return [torch.device("cpu")] + ([torch.device("cuda")] if torch.cuda.is_available() else [])

    @property
    def options(self) -> Any:
        """The timeout and the name, from which torch makes a group like this one."""
        options = Options("col", timedelta(seconds=self._timeout))
        options.group_name = self._group_name
        return options

    def _set_sequence_number_for_group(self) -> None:
        self._sequence = 0

    def _get_sequence_number_for_group(self) -> int:
        return self._sequence

    @property
    def group(self) -> _col.Group:
        """col's own, for calls that torch does not have; of tensors on the CPU."""
        return self._cpu

    # ---- One buffer on every rank

    def allreduce(self, tensors: Any, opts: Any = None, **more: Any) -> Any:
        tensors, op, opts = _given(tensors, opts, more)
        if len(tensors) == 1 and tensors[0].layout is torch.sparse_coo:
            if self._checks_nan:
                layout.check_nan([("allreduce", {"x": tensors[0]._values()})], self._rank, {})
            return Work([], [add_sparse(self.group, tensors[0], op)])
        return self._each("allreduce", _single(tensors), opts, op=op)

    def allreduce_coalesced(self, tensors: Any, opts: Any = None, **more: Any) -> Any:
        tensors, op, opts = _given(tensors, opts, more)
        return self._each("allreduce", tensors, opts, op=op)

    def broadcast(self, tensors: Any, opts: Any = None, root: Optional[int] = None) -> Any:
        tensors, opts, root = _rooted(tensors, opts, root)
        return self._each("broadcast", _single(tensors), opts, root=root)

    def reduce(self, tensors: Any, opts: Any = None, root: Optional[int] = None, op: Any = dist.ReduceOp.SUM) -> Any:
        tensors, opts, root = _rooted(tensors, opts, root)
        op = op if opts is None else opts.reduceOp
        return self._each("reduce", _single(tensors), opts, op=op_of(op), root=root)

    def _each(self, call: str, tensors: Sequence[Any], opts: Any, **arguments: Any) -> Any:
        group = self._group_of(tensors, call)
        if len(tensors) > 1:
            layout.check_calls([[tensor] for tensor in tensors], [], call)
        # The root of a broadcast, and who is not that of a reduce, only reads.
        only_reads = "root" in arguments and (arguments["root"] == self.rank()) == (call == "broadcast")
        buffers = [(layout.read(tensor), None) if only_reads else layout.written(tensor) for tensor in tensors]
        calls = [(call, {"x": layout.raw(buffer) if call == "broadcast" else buffer}) for buffer, _ in buffers]
        return self._begin(group, calls, tensors, layout.in_order(*(finish for _, finish in buffers)), opts, arguments)

    # ---- A block of each rank

    def allgather(self, output_lists: Any, inputs: Any, opts: Any = None) -> Any:
        if isinstance(inputs, torch.Tensor):
            output_lists, inputs = [output_lists], [inputs]
        return self._gathers(output_lists, inputs, opts)

    def allgather_coalesced(self, output_lists: Any, inputs: Any, opts: Any = None) -> Any:
        # One list for each rank, with a tensor for each input.
        return self._gathers([list(outputs) for outputs in zip(*output_lists)], inputs, opts)

    def _gathers(self, output_lists: Any, inputs: Any, opts: Any) -> Any:
        group = self._group_of([*inputs, *(output for outputs in output_lists for output in outputs)], "all_gather")
        calls, finishes = [], []
        layout.check_calls(output_lists, [[x] for x in inputs], "all_gather")
        for outputs, x in zip(output_lists, inputs):
            self._check_length(outputs, "all_gather")
            out, finish = layout.to_fill(outputs, "all_gather")
            call, more = self._blocks("allgather", outputs)
            calls.append((call, {"x": layout.raw(layout.read(x)), "out": layout.raw(out), **more}))
            finishes.append(finish)
        outputs = output_lists[0] if len(output_lists) == 1 else output_lists
        return self._begin(group, calls, outputs, layout.in_order(*finishes), opts)

    def all_gather_single(self, output: Any, input: Any, opts: Any = None) -> Any:
        return self.all_gather_single_coalesced([output], [input], opts)

    def all_gather_single_coalesced(self, outputs: Any, inputs: Any, opts: Any = None) -> Any:
        return self._singles("allgather", "all_gather_into_tensor", outputs, inputs, opts)

    def _singles(self, call: str, what: str, outputs: Any, inputs: Any, opts: Any, **more: Any) -> Any:
        group = self._group_of([*outputs, *inputs], what)
        layout.check_calls([[output] for output in outputs], [[x] for x in inputs], what)
        calls, finishes = [], []
        for output, x in zip(outputs, inputs):
            pair = [("output", output), ("input", x)]
            (large, whole), (small, part) = pair if call == "allgather" else pair[::-1]
            if whole.numel() != self._size * part.numel():
                raise InvalidArgument(
                    f"{what}: the {large} has {whole.numel()} elements, and must have {self._size} times the {part.numel()} of "
                    f"the {small}"
                )
            out, finish = layout.written(output)
            x = layout.read(x)
            if call == "allgather":
                x, out = layout.raw(x), layout.raw(out)
            calls.append((call, {"x": x, "out": out, **more}))
            finishes.append(finish)
        return self._begin(group, calls, outputs, layout.in_order(*finishes), opts)

    _allgather_base = all_gather_single
    allgather_into_tensor_coalesced = all_gather_single_coalesced

    def gather(self, output_lists: Any, inputs: Any, opts: Any = None, root: Optional[int] = None) -> Any:
        if isinstance(inputs, torch.Tensor):
            output_lists = [output_lists] if output_lists else []
        inputs, opts, root = _rooted(inputs, opts, root)
        outputs = output_lists[0] if self._rank == root else []
        group = self._group_of([*inputs, *outputs], "gather")
        arguments: dict[str, Any] = {"x": layout.raw(layout.read(inputs[0])), "root": root}
        finish = None
        if self._rank == root:
            self._check_length(outputs, "gather", inputs[0].numel())
            out, finish = layout.to_fill(outputs, "gather")
            arguments["out"] = layout.raw(out)
        return self._begin(group, [("gather", arguments)], outputs, finish, opts)

    def gather_single(self, output: Any, input: Any, opts: Any = None) -> Any:
        parts = list(output.view(self._size, -1)) if self._rank == opts.rootRank else []
        return self.gather([parts] if parts else [], [input], opts)

    gather_into_tensor = gather_single

    def scatter(self, outputs: Any, input_lists: Any, opts: Any = None, root: Optional[int] = None) -> Any:
        if isinstance(outputs, torch.Tensor):
            input_lists = [input_lists] if input_lists else []
        outputs, opts, root = _rooted(outputs, opts, root)
        out, finish = layout.written(outputs[0])
        arguments: dict[str, Any] = {"out": layout.raw(out), "root": root}
        inputs = []
        if self._rank == root:
            inputs = input_lists[0]
            self._check_length(inputs, "scatter", outputs[0].numel())
            arguments["x"] = layout.raw(layout.joined(inputs))
        return self._begin(self._group_of([*outputs, *inputs], "scatter"), [("scatter", arguments)], outputs, finish, opts)

    def reduce_scatter(self, outputs: Any, input_lists: Any, opts: Any = None, op: Any = dist.ReduceOp.SUM) -> Any:
        if isinstance(outputs, torch.Tensor):
            outputs, input_lists = [outputs], [input_lists]
        if opts is not None and not hasattr(opts, "reduceOp"):
            opts, op = None, opts
        op = op_of(op if opts is None else opts.reduceOp)
        group = self._group_of([*outputs, *(x for inputs in input_lists for x in inputs)], "reduce_scatter")
        layout.check_calls([[output] for output in outputs], input_lists, "reduce_scatter")
        calls, finishes = [], []
        for output, inputs in zip(outputs, input_lists):
            self._check_length(inputs, "reduce_scatter")
            out, finish = layout.written(output)
            call, more = self._blocks("reduce_scatter", inputs)
            calls.append((call, {"x": layout.joined(inputs), "out": out, "op": op, **more}))
            finishes.append(finish)
        return self._begin(group, calls, outputs, layout.in_order(*finishes), opts)

    def reduce_scatter_single(self, output: Any, input: Any, opts: Any = None) -> Any:
        return self.reduce_scatter_single_coalesced([output], [input], opts)

    def reduce_scatter_single_coalesced(self, outputs: Any, inputs: Any, opts: Any = None) -> Any:
        op = op_of(dist.ReduceOp.SUM if opts is None else opts.reduceOp)
        return self._singles("reduce_scatter", "reduce_scatter_tensor", outputs, inputs, opts, op=op)

    _reduce_scatter_base = reduce_scatter_single
    reduce_scatter_tensor_coalesced = reduce_scatter_single_coalesced

    def alltoall(self, outputs: Any, inputs: Any, opts: Any = None) -> Any:
        self._check_length(outputs, "all_to_all")
        self._check_length(inputs, "all_to_all")
        group = self._group_of([*outputs, *inputs], "all_to_all")
        out, finish = layout.to_fill(outputs, "all_to_all")
        size = 1 if out.dtype in layout.KNOWN else out.element_size()
        arguments = {
            "x": layout.raw(layout.joined(inputs)), "out": layout.raw(out),
            "in_counts": [size * count for count in layout.counts(inputs)],
            "out_counts": [size * count for count in layout.counts(outputs)],
        }
        return self._begin(group, [("alltoallv", arguments)], outputs, finish, opts)

    def all_to_all_single(
        self, output: Any, input: Any, output_splits: Sequence[int] = (), input_splits: Sequence[int] = (), opts: Any = None
    ) -> Any:
        group = self._group_of([output, input], "all_to_all_single")
        out, finish = layout.written(output)
        x, out = layout.raw(layout.read(input)), layout.raw(out)
        if not output_splits and not input_splits:
            return self._begin(group, [("alltoall", {"x": x, "out": out})], [output], finish, opts)
        arguments = {
            "x": x, "out": out,
            "in_counts": self._elements(x, input, input_splits), "out_counts": self._elements(out, output, output_splits),
        }
        return self._begin(group, [("alltoallv", arguments)], [output], finish, opts)

    alltoall_base = all_to_all_single

    def _elements(self, buffer: Any, tensor: Any, splits: Sequence[int]) -> list[int]:
        """torch cuts the first axis, by default in equal parts."""
        rows = tensor.shape[0] if tensor.dim() else 1
        if not splits:
            if rows % self._size:
                raise InvalidArgument(f"all_to_all_single: {rows} rows cannot be cut in {self._size} equal parts; pass splits")
            splits = [rows // self._size] * self._size
        if len(splits) != self._size or sum(splits) != rows:
            raise InvalidArgument(
                f"all_to_all_single: the splits {list(splits)} must be {self._size} numbers that add up to the {rows} rows"
            )
        width = buffer.numel() // rows if rows else 0
        return [width * split for split in splits]

    def _check_length(self, tensors: Sequence[Any], call: str, each: Optional[int] = None) -> None:
        if len(tensors) != self._size:
            raise InvalidArgument(f"{call}: a list of {len(tensors)} tensors, and the group has {self._size} ranks")
        wrong = [tensor.numel() for tensor in tensors if tensor.numel() != each] if each is not None else []
        if wrong:
            raise InvalidArgument(f"{call}: a tensor of the list has {wrong[0]} elements, and must be as large as the other: {each}")

    def _blocks(self, call: str, tensors: Sequence[Any]) -> tuple[str, dict[str, Any]]:
        """The call with counts, if the ranks' tensors differ in size."""
        counts = layout.counts(tensors)
        if min(counts) == max(counts):
            return call, {}
        size = 1 if call == "reduce_scatter" or tensors[0].dtype in layout.KNOWN else tensors[0].element_size()
        return call + "v", {"counts": [size * count for count in counts]}

    # ---- Messages

    def send(self, tensors: Any, destination: int, tag: int = 0) -> Any:
        group = self._group_of_message(tensors, "send", destination, tag)
        x = layout.raw(layout.read(tensors[0]))
        return self._begin(group, [("send", {"x": x, "destination": destination, "tag": tag})], tensors, None, None)

    def recv(self, tensors: Any, source: int, tag: int = 0) -> Any:
        group = self._group_of_message(tensors, "recv", source, tag)
        out, finish = layout.written(tensors[0])
        return self._begin(group, [("recv", {"out": layout.raw(out), "source": source, "tag": tag})], tensors, finish, None)

    def recv_anysource(self, tensors: Any, tag: int = 0) -> Any:
        group = self._group_of(tensors, "recv")
        out, finish = layout.written(tensors[0])
        return self._begin(group, [("recv_any", {"out": layout.raw(out), "tag": tag})], tensors, finish, None)

    recvAnysource = recv_anysource

    # ---- Barriers, and the end

    def barrier(self, opts: Any = None) -> Any:
        if self._gpu is not None:  # what came before on GPUs may still run there: only streams have waited for it
            self._gpu_stream().synchronize()
        if self._side is not None:
            self._side.synchronize()
        return self._begin(self._cpu, [("barrier", {})], [], None, opts)

    def monitored_barrier(self, timeout: Any = None, wait_all_ranks: bool = False) -> None:
        """A barrier. The error of every one names the ranks that are missing; this one is here for its name."""
        timeout = getattr(timeout, "timeout", timeout)
        seconds = timeout.total_seconds() if isinstance(timeout, timedelta) else timeout or 0
        self._cpu.barrier(timeout=seconds if seconds > 0 else None)

    def set_timeout(self, timeout: timedelta) -> None:
        self._changed_timeout = timeout.total_seconds()

    _set_default_timeout = set_timeout

    def _start_coalescing(self, device: Any = None) -> None:
        self._together = []

    def _end_coalescing(self, device: Any = None) -> Work:
        works, self._together = self._together or [], None
        return Work(
            [one for work in works for one in work._works], [output for work in works for output in work._outputs],
            layout.in_order(*(work._finish for work in works)), next((work._stream for work in works if work._stream), None),
        )

    start_coalescing = _start_coalescing
    end_coalescing = _end_coalescing

    def abort(self) -> None:
        """What other ranks wait for in this group ends with an error."""
        self.shutdown()

    def shutdown(self) -> None:
        """Leaves the group. Not collective, but rank 0 of a default group waits for a while until the others leave, too."""
        # A copy, as another thread may add one. Not under the lock, which one may have that waits for ranks to connect.
        ends = [pair.end for pair in list(self._pairs.values())]
        if self._ends_job is not None:
            ends.append(self._job.end)
        else:
            ends += [group.destroy for group in (self._cuda, self._cpu) if group is not None]
            ends.append(let_go_of_ended_groups)
        errors = []
        for end in ends:
            try:
                end()
            except Exception as error:
                errors.append(error)
        if errors:
            raise errors[0]

    # ---- Other groups of its ranks, and memory

    def split_group(
        self, new_ranks: Sequence[int], timeout: Optional[timedelta] = None, opts: Any = None, group_name: Optional[str] = None,
        group_desc: Optional[str] = None, device_types: Any = None,
    ) -> Optional[ProcessGroup]:
        """A group of these ranks, in their order; None on the others. The new group's ranks alone wait for each other."""
        name = group_name
        if not name:
            name = f"{self._group_name or self._name} split {self._splits} {list(new_ranks)}"
            self._splits += 1  # also on ranks that are in none: the next group's name is to be the same on all
        if self._rank not in new_ranks:
            return None
        timeout = timeout or getattr(opts, "_timeout", None)
        group = ProcessGroup(
            self._job, f"torch group {name}", new_ranks.index(self._rank), len(new_ranks),
            timeout.total_seconds() if timeout else self._timeout)
        group.setGroupName(name)
        group.setGroupDesc(group_desc or "")
        return group

    _splits = 0

    def get_group_store(self) -> Any:
        return dist.PrefixStore(f"{self._group_name}/", self._job._store)

    def perform_nocolor_split(self, device: Any) -> None:
        """For ranks that join no group of a split: nobody waits for them."""

    def eager_connect_single_device(self, device: Any) -> None:
        """It is connected."""

    @property
    def supports_shrinking(self) -> bool:
        return STAND_IN is not None  # the new group is one of torch's, over a backend

    supports_splitting = supports_shrinking  # older torch splits what is NCCL's

    def shrink(self, ranks_to_exclude: Sequence[int], shrink_flags: int = 0, opts_override: Any = None) -> Any:
        """A backend of the ranks that stay, also of a group that has lost some: see Group.shrink(). It takes this one's place.

        Collective over the ranks that stay. The store that rank 0 serves must live: IoError otherwise.
        """
        lost = {self._cpu.ranks[rank] for rank in ranks_to_exclude}
        group = self._cpu.shrink(list(ranks_to_exclude))
        new = ProcessGroup(self._job, group.name, group.rank, group.size, self._timeout, group)
        if self._ends_job is not None:
            self._job.leave_out(lost, group)
            self._ends_job.detach()
            self._ends_job = None
            new._be_default_of(self._job)
        return STAND_IN.of(new)

    def supports_tensor_alloc(self, device: Any) -> bool:
        return getattr(device, "type", "cpu") == "cpu" and self._size > 1 and bool(self._job.context.is_on_one_host)

    def allocate_tensor(self, size: int, *, dtype: Any, device: Any = None) -> Any:
        """A flat tensor in memory that the ranks share, so that collectives on it copy less. Collective, and blocks."""
        if not self.supports_tensor_alloc(device):
            raise Unavailable(f"allocate_tensor: the ranks share no memory for {device}; supports_tensor_alloc() says so")
        self._memory = self._memory or Memory(self._cpu)
        return self._memory.tensor(size, dtype)

    # ---- How a call is started

    def _group_of(self, tensors: Sequence[Any], call: str) -> _col.Group:
        device = layout.check(tensors, call)
        if device.type == "cpu":
            return self._cpu
        if device.type != "cuda":
            raise Unavailable(f"{call}: backend 'col' has nothing for tensors on {device}; move them to the CPU with cpu()")
        with self._lock:
            self._gpu = self._gpu or device
            if self._cuda is None:  # like NCCL's: the first call on GPUs is one of all ranks
                torch.cuda.synchronize(device)  # col takes the GPU whose context this thread has; some have none yet
                with torch.cuda.device(device):
                    self._cuda = self._job.context.init_group(
                        self._name + " cuda", "nccl", self._timeout, rank=self._rank, world_size=self._size)
                self._side = Side(torch.device(self._cuda.device))
        return self._cuda

    def _group_of_message(self, tensors: Sequence[Any], call: str, peer: int, tag: int) -> Any:
        """On GPUs, a pair of ranks has connections of its own. Messages with a tag may be received from anybody, and so go by
        those of all ranks."""
        device = layout.check(tensors, call)
        if device.type != "cuda" or tag != 0 or self._size < 3 or peer == self._rank:
            return self._group_of(tensors, call)
        if not 0 <= peer < self._size:
            raise InvalidArgument(f"{call}: there is no rank {peer}: the group's count from 0 to {self._size - 1}")
        with self._lock:
            self._gpu = self._gpu or device
            if peer not in self._pairs:
                ranks = sorted([self._rank, peer])
                name = f"{self._name} cuda (ranks {ranks[0]} and {ranks[1]} as 0 and 1)"  # errors count in the pair
                # Its thread does not keep this group, with which older torch ends the job.
                context, place = self._job.context, ranks.index(self._rank)
                timeout = self._timeout if self._changed_timeout is None else self._changed_timeout
                self._pairs[peer] = Pair(
                    peer, 1 - place, self._gpu, timeout,
                    lambda: context.init_group(name, "nccl", timeout, rank=place, world_size=2))
            return self._pairs[peer]

    def _gpu_stream(self) -> Any:
        return torch.cuda.current_stream(self._gpu)

    def _begin(
        self, group: Any, calls: Sequence[tuple[str, dict[str, Any]]], outputs: Any, finish: layout.Finish, opts: Any,
        arguments: Optional[dict[str, Any]] = None,
    ) -> Work:
        self._sequence += 1
        if self._checks_nan:
            layout.check_nan(calls, self._rank, arguments or {})
        more = arguments or {}
        timeout = getattr(opts, "timeout", _NO_TIME)
        if timeout > _NO_TIME:
            more["timeout"] = timeout
        elif self._changed_timeout is not None:
            more["timeout"] = self._changed_timeout
        stream = None
        if group is not self._cpu:
            stream = self._gpu_stream()
            # Messages run in a stream of col's own in any case.
            is_beside = calls[0][0] not in _MESSAGES and is_asynchronous(opts)
            more["stream"] = (self._side.after(stream) if self._side and is_beside else stream).cuda_stream
        if isinstance(group, Pair):
            more["stream"] = stream
        # The i-form also where torch waits at once: one rank may wait and another not (DDP's join() does so), and col's blocking
        # calls do not match its i-forms.
        is_recorded = torch.autograd._profiler_enabled()
        with torch.autograd.profiler.record_function(f"col:{calls[0][0]}") if is_recorded else _UNRECORDED:
            works = [getattr(group, "i" + call)(**own, **more) for call, own in calls]
        if stream is not None:
            for one in works:
                one.then(None)  # counts the timeout and notices lost ranks: for a stream that waits, nobody else does
        work = Work(works, outputs, finish, stream)
        if self._together is not None:
            self._together.append(work)
        return work


def _single(tensors: Sequence[Any]) -> Sequence[Any]:
    if len(tensors) != 1:
        raise InvalidArgument(f"the call takes one tensor, not a list of {len(tensors)} for the GPUs of one process")
    return tensors


STAND_IN = stand_in_of(ProcessGroup)


def _rooted(tensors: Any, opts: Any, root: Optional[int]) -> tuple[Any, Any, int]:
    """torch has broadcast(tensors, options), broadcast(tensor, root) and broadcast(tensor, root=root)."""
    tensors = [tensors] if isinstance(tensors, torch.Tensor) else tensors
    if isinstance(opts, int):
        opts, root = None, opts
    return tensors, opts, opts.rootRank if root is None else root


def _given(tensors: Any, opts: Any, more: dict[str, Any]) -> tuple[Any, Any, Any]:
    """torch has allreduce(tensors, options), allreduce(tensors, op) and allreduce(tensor, op)."""
    tensors = [tensors] if isinstance(tensors, torch.Tensor) else tensors
    if opts is None:
        opts = more.get("opts")
    if opts is None or not hasattr(opts, "reduceOp"):
        return tensors, op_of(more.get("op", dist.ReduceOp.SUM) if opts is None else opts), None
    return tensors, op_of(opts.reduceOp), opts
