"""Ray's compiled graphs over col.

    from ray.dag import InputNode, MultiOutputNode

    from col.ray.graph import allreduce  # instead of ray.experimental.collective's

    with InputNode() as batch:
        gradients = [actor.gradients.bind(batch) for actor in actors]
        sums = allreduce.bind(gradients)
        graph = MultiOutputNode([actor.update.bind(s) for actor, s in zip(actors, sums)])
    compiled = graph.experimental_compile()

bind() makes a Communicator of the actors, which is Ray's interface for such a thing. One that the program has made itself
serves several nodes, Ray's own operators among them: allreduce.bind(gradients, transport=communicator).

This module imports Ray and torch: a class of Ray's is the base of Communicator.
"""

from __future__ import annotations

import contextlib
import functools
import threading
from typing import Any, Callable, ContextManager, Optional, Sequence

from ..errors import Error, InvalidArgument, Mismatch, PeerLost
from . import cluster, direct, groups, pages
from .types import op_of

ray = cluster.ray_module()  # says what to install

import torch
from ray.dag import DAGContext
from ray.exceptions import RayChannelError, RayTaskError
from ray.experimental import collective
from ray.experimental.channel import ChannelContext
from ray.experimental.channel.cpu_communicator import CPUCommunicator
from ray.experimental.channel.shared_memory_channel import CompositeChannel, SharedMemoryType
from ray.experimental.channel.torch_tensor_accelerator_channel import (
    TorchTensorAcceleratorChannel, _TorchTensorAcceleratorChannel,
)
from ray.experimental.channel.torch_tensor_type import TorchTensorType
from ray.experimental.channel.utils import split_readers_by_locality
from ray.experimental.util.types import ReduceOp

__all__ = ["Communicator", "ReduceOp", "allgather", "allreduce", "reducescatter"]

_START, _LEAVE = 300.0, 30.0  # seconds that the driver waits for actors that are to be up, or to leave
_SAME_END = 1.0  # and within these the end of a graph comes to all of its actors


class Communicator(CPUCommunicator):  # Ray lets actors without a GPU into no other one
    """A group of actors for the nodes of a compiled graph. Actor i of the list is rank i.

    `timeout`, in seconds (None: 5 minutes), bounds every wait in the actors: for all of them when the graph is compiled, and
    for each call. So it must exceed the time that one computes while another one waits. `backend`: see types.Backend.

    An error other than InvalidArgument breaks the group. Tear the graph down and compile it again: that makes a new group.
    """

    def __init__(self, actors: Sequence[Any], backend: Any = "auto", timeout: Optional[float] = None) -> None:
        handles = list(actors)
        if not handles or not all(hasattr(handle, "_actor_id") for handle in handles):
            raise InvalidArgument("Communicator: give it handles of actors, as Worker.remote() returns them, one at least")
        if len(set(handles)) != len(handles):
            raise InvalidArgument("Communicator: an actor is in the list twice")
        super().__init__(len(handles), handles)
        self.name = cluster.new_id("graph")
        self._backend, self._timeout = backend, timeout
        self._group: Any = None
        self._transport: Optional[str] = None

    # ---- In the driver

    def get_transport_name(self) -> str:
        """What with_tensor_transport() makes of this communicator. "cpu" is Ray's own channel, in shared memory."""
        if self._transport is None:
            counts = [actor.__ray_call__.remote(_count_gpus) for actor in self._actor_handles]
            on_gpus = all(ray.get(counts, timeout=_START))
            self._transport = TorchTensorType.ACCELERATOR if on_gpus else TorchTensorType.CPU
        return self._transport

    def carry(self, node: Any) -> Any:
        """The tensors in what `node` returns go through this communicator to the actors that read it. Returns the node.

        with_tensor_transport(transport=communicator) does this for actors with GPUs only.
        """
        node.type_hint = _CarriedType(self)
        return node

    # ---- In the actors: the graph calls these

    def initialize(self, rank: int) -> None:
        """Joins the group. Blocks until all actors have."""
        groups.leave(self.name)  # that of an earlier graph
        ranks = {actor: i for i, actor in enumerate(self._actor_ids())}
        self._ended = threading.Event()
        self._group = groups.join(self._world_size, rank, self._backend, self.name, self._timeout, ranks)
        self._rank = rank

    def allreduce(self, send_buf: torch.Tensor, recv_buf: torch.Tensor, op: ReduceOp = ReduceOp.SUM) -> None:
        self._collective("allreduce", send_buf, recv_buf, op=op_of(op))

    def reducescatter(self, send_buf: torch.Tensor, recv_buf: torch.Tensor, op: ReduceOp = ReduceOp.SUM) -> None:
        self._collective("reduce_scatter", send_buf, recv_buf, op=op_of(op))

    def allgather(self, send_buf: torch.Tensor, recv_buf: torch.Tensor) -> None:
        self._collective("allgather", send_buf, recv_buf)

    def send(self, value: torch.Tensor, peer_rank: int) -> None:
        self._call("send", direct.bytes_of(value), peer_rank)

    def recv(
        self, shape: Sequence[int], dtype: torch.dtype, peer_rank: int,
        allocator: Optional[Callable[..., torch.Tensor]] = None,
    ) -> torch.Tensor:
        buffer = torch.empty(shape, dtype=dtype) if allocator is None else allocator(shape, dtype)
        self._call("recv", direct.bytes_of(pages.prefer_large(buffer)), peer_rank)
        return buffer

    @property
    def recv_stream(self) -> ContextManager[Any]:
        """A blocking call of col's has ended when it returns, for every stream: it needs no stream of its own."""
        return contextlib.nullcontext()

    send_stream = recv_stream

    # ---- In both

    def destroy(self) -> None:
        """Ends the group: in the driver for all its actors, in an actor for this one. What waits in a call ends.

        A second call does nothing. The end of a graph does it, except if Ray's own bind() has made all of its nodes.
        """
        if self._rank is None:
            cluster.run_on(self._actor_handles, _destroy_copies, self.name, timeout=_LEAVE)
            return
        group, self._group = self._group, None
        self._ended.set()
        if group is not None and groups.find(self.name) is group:
            groups.leave(self.name)

    def _skip(self) -> None:
        """An exception has kept this actor from a collective, and Ray does not tell the others, which are in it or will be.

        They learn it from a call that differs. If all have skipped it, their calls are the same, and the graph goes on. It goes by
        messages: an actor that waits finds it only when it looks why, and the exception itself, or the end of the graph, is first.
        """
        group = self._group
        if group is not None:
            with contextlib.suppress(Error):  # the group is broken already
                group.ibarrier(algorithm="dissemination")

    def _collective(self, name: str, x: torch.Tensor, out: torch.Tensor, **options: Any) -> None:
        into = pages.prefer_large(out).contiguous()  # Ray makes outputs with the strides of their inputs
        self._call(name, x.detach().contiguous(), into.detach(), **options)
        if into is not out:
            out.copy_(into)

    def _call(self, name: str, tensor: torch.Tensor, *arguments: Any, **options: Any) -> None:
        group = self._group
        if group is None:
            raise self._destroyed()
        if tensor.is_cuda:  # after what the graph has put on its stream
            options["stream"] = torch.cuda.current_stream(tensor.device).cuda_stream
        try:
            getattr(group, name)(tensor, *arguments, **options)
        except Error as error:
            if isinstance(error, Mismatch):
                # The end of a graph comes to one actor after the other: one that has left already makes another call.
                self._ended.wait(_SAME_END)
            if self._group is None:  # another thread has destroyed it meanwhile
                raise self._why_destroyed() from error
            raise self._with_actor(error) from None

    def _destroyed(self) -> RayChannelError:
        """Ray's loop in the actor takes this one for the end of the graph."""
        return RayChannelError(f"communicator {self.name} has been destroyed")

    def _why_destroyed(self) -> Exception:
        """When an actor dies, Ray tears the graph down, and may be faster than col."""
        for rank, actor in enumerate(self._actor_ids()):
            if cluster.has_died(actor):
                return PeerLost(
                    f"rank {rank} of group '{self.name}' has died: {cluster.describe_actor(actor)}", rank, rank, self.name
                )
        return self._destroyed()

    def _with_actor(self, error: Error) -> Error:
        if not 0 <= error.rank < self._world_size:
            return error
        actor = cluster.describe_actor(self._actor_ids()[error.rank])
        return type(error)(f"{error}. Rank {error.rank} is {actor}", error.rank, error.world_rank, error.group)

    def _actor_ids(self) -> list[str]:
        return [actor._actor_id.hex() for actor in self._actor_handles]


def _count_gpus(actor: Any) -> int:
    return len(ray.get_gpu_ids())


def _copies(name: str) -> dict[str, Communicator]:
    """Those of this process, by Ray's ids for them, oldest first: each compilation makes one."""
    known = ChannelContext.get_current().communicators
    return {key: copy for key, copy in known.items() if isinstance(copy, Communicator) and copy.name == name}


def _destroy_copies(name: str) -> None:
    for communicator in _copies(name).values():
        communicator.destroy()


# ---- The operators


_OPS_OF_RAY = {op_of(op): op for op in ReduceOp}


class Operator:
    """One of ray.experimental.collective, with col's communicator."""

    def __init__(self, of_ray: Any) -> None:
        self._of_ray = of_ray

    def bind(self, input_nodes: Sequence[Any], op: Any = None, transport: Any = None) -> Any:
        """As Ray's. Without a transport, the actors of the nodes get a Communicator for this node alone.

        `op`: Ray's or col's, for those that reduce. With a transport that is not col's, this is Ray's own bind().
        """
        if transport is None:
            nodes = input_nodes[0] if input_nodes and isinstance(input_nodes[0], list) else input_nodes
            transport = Communicator([node._get_actor_handle() for node in nodes])
        options = {} if op is None else {"op": _OPS_OF_RAY.get(op_of(op), op)}
        outputs = self._of_ray.bind(input_nodes, transport=transport, **options)
        for output in outputs if isinstance(transport, Communicator) else ():
            node = output[0].get_args()[0] if isinstance(output, list) else output  # of lists, one node has the call
            node.type_hint = _WatchedType(transport.name)
        return outputs


allgather = Operator(collective.allgather)
allreduce = Operator(collective.allreduce)
reducescatter = Operator(collective.reducescatter)


class _WatchedType(SharedMemoryType):
    """Ray's type for the output of a node, which here also tells the communicator what Ray does not."""

    def __init__(self, communicator: str) -> None:
        super().__init__(num_shm_buffers=DAGContext.get_current().max_inflight_executions)  # as Ray's default
        self._communicator = communicator

    def create_channel(
        self, writer: Any, reader_and_node_list: Any, driver_actor_id: Optional[str] = None
    ) -> _WatchedChannel:
        *_, communicator_id = _copies(self._communicator)  # that of this compilation
        return _WatchedChannel(
            writer, reader_and_node_list, self._num_shm_buffers, driver_actor_id, communicator_id=communicator_id
        )


class _WatchedChannel(CompositeChannel):
    def __init__(self, *arguments: Any, communicator_id: str) -> None:
        super().__init__(*arguments)
        self._communicator_id = communicator_id

    def __reduce__(self) -> tuple[Any, ...]:
        _, arguments = super().__reduce__()
        return functools.partial(_WatchedChannel, communicator_id=self._communicator_id), arguments

    def write(self, value: Any, timeout: Optional[float] = None) -> None:
        communicator = self._communicator_here()
        if communicator is not None and isinstance(value, RayTaskError):
            communicator._skip()
        super().write(value, timeout)

    def close(self) -> None:
        super().close()
        communicator = self._communicator_here()
        if communicator is not None:
            communicator.destroy()

    def _communicator_here(self) -> Optional[Communicator]:
        """The driver closes channels, too, and has none."""
        return ChannelContext.get_current().communicators.get(self._communicator_id)


# ---- Tensors from actor to actor


class _CarriedType(TorchTensorType):
    """What Communicator.carry() makes of a node: Ray's type for accelerators, on the CPU as well."""

    def __init__(self, communicator: Communicator) -> None:
        super().__init__(transport=TorchTensorType.ACCELERATOR)
        self._communicator = communicator

    def create_channel(
        self, writer: Any, reader_and_node_list: Any, driver_actor_id: Optional[str] = None,
        _cpu_data_channel: Any = None, _tensor_metadata_channel: Any = None,
    ) -> TorchTensorAcceleratorChannel:
        others, _ = split_readers_by_locality(writer, reader_and_node_list)
        tensors = _TensorChannel(writer, others, self, _tensor_metadata_channel)
        return TorchTensorAcceleratorChannel(
            writer, reader_and_node_list, self, driver_actor_id, None, _cpu_data_channel, tensors
        )

    def __deepcopy__(self, memo: Any) -> _CarriedType:
        copy = _CarriedType(self._communicator)
        copy._communicator_id = self._communicator_id
        return copy


class _TensorChannel(_TorchTensorAcceleratorChannel):
    """Ray's own asserts in these two that the process has an accelerator."""

    def ensure_registered_as_writer(self) -> None:
        pass

    def ensure_registered_as_reader(self) -> None:
        pass
