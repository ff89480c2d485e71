"""Ray's tensor transport "COL": what moves the tensors of a method with @ray.method(tensor_transport="COL").

Ray has the source and the destination each run a task, in a thread beside those of the program. Two actors make a group of
two when the first object goes from one to the other, and keep it. So no group need be declared, the calls of declared groups
never meet those of the transport, and an actor that dies takes no other transfers with it. The destination asks for the
object by its id, and the source sends what it is asked for: a group that the other side has left is noticed before any data
moves, and made anew; and it does not matter if two drivers' tasks come in different orders on the two sides.

To import this module is to register the transport, in this process and in the actors that it starts from then on. It needs
torch.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections import OrderedDict, deque
from dataclasses import dataclass
from typing import Any, Callable, Mapping, Optional, Sequence

from ray._private.ray_constants import RDT_FETCH_FAIL_TIMEOUT_SECONDS
from ray.experimental.rdt.tensor_transport_manager import (
    CommunicatorMetadata, TensorTransportManager, TensorTransportMetadata,
)

from .. import _col
from ..errors import Aborted, Error, InvalidArgument, PeerLost
from . import cluster, direct, pages
from .groups import Job, Member
from .rendezvous import Meeting

NAME = "COL"
KEPT_PAIRS = 64  # those that have not been used for longest are left; a transfer that needs one makes it again
_KEPT_ABORTS = 256
_ANSWER = 5.0  # seconds in which the store of a rank 0 that is there has answered
_TRANSFER_ID_BYTES, _OBJECT_ID_BYTES = 16, 28


@dataclass
class Transfer(CommunicatorMetadata):
    """Of one object. The actors are ids."""

    id: str
    source: str
    destination: str

    def __str__(self) -> str:
        source, destination = cluster.describe_actor(self.source), cluster.describe_actor(self.destination)
        return f"transfer of a tensor from {source} to {destination}"


class ColTransport(TensorTransportManager):
    def __init__(self) -> None:
        self._one_at_a_time = threading.Lock()
        self._pairs: OrderedDict[str, Member] = OrderedDict()  # by the other actor's id; the last used is last
        self._current: Optional[Transfer] = None
        self._aborted: deque[str] = deque(maxlen=_KEPT_ABORTS)  # ids of transfers; the last ones, because some have ended

    # ---- What Ray asks

    def tensor_transport_backend(self) -> str:
        return NAME

    @staticmethod
    def is_one_sided() -> bool:
        return False

    @staticmethod
    def can_abort_transport() -> bool:
        return True  # otherwise Ray kills both actors if a transfer fails

    def actor_has_tensor_transport(self, actor: Any) -> bool:
        return True  # no group is needed

    def extract_tensor_transport_metadata(self, obj_id: str, rdt_object: list[Any]) -> TensorTransportMetadata:
        import torch

        devices = {tensor.device.type for tensor in rdt_object}
        if len(devices) > 1:
            raise InvalidArgument(f"the tensors of an object are on several kinds of devices: {sorted(devices)}")
        if any(tensor.layout != torch.strided for tensor in rdt_object):
            raise InvalidArgument("transport COL moves dense tensors only: call to_dense() first")
        return TensorTransportMetadata(
            tensor_meta=[(tensor.shape, tensor.dtype) for tensor in rdt_object], tensor_device=next(iter(devices), None)
        )

    def get_communicator_metadata(self, src_actor: Any, dst_actor: Any, backend: Optional[str] = None) -> Transfer:
        return Transfer(uuid.uuid4().hex, src_actor._actor_id.hex(), dst_actor._actor_id.hex())

    def recv_multiple_tensors(
        self, obj_id: str, tensor_transport_metadata: TensorTransportMetadata, communicator_metadata: Transfer,
        target_buffers: Optional[list[Any]] = None,
    ) -> list[Any]:
        import torch

        received = target_buffers or [
            pages.prefer_large(torch.empty(shape, dtype=dtype)) for shape, dtype in tensor_transport_metadata.tensor_meta
        ]

        def ask_and_receive(group: _col.Group, source: int, is_new: bool) -> None:
            messages = [_col.Message.recv(each, source) for each in _bytes_of(received)]
            group.send(bytearray.fromhex(communicator_metadata.id + obj_id), source)
            group.batch(messages)

        self._exchange(communicator_metadata, communicator_metadata.source, ask_and_receive)
        return received

    def send_multiple_tensors(
        self, tensors: list[Any], tensor_transport_metadata: TensorTransportMetadata, communicator_metadata: Transfer
    ) -> None:
        own_id, ready = bytes.fromhex(communicator_metadata.id), _bytes_of(tensors)

        def answer(group: _col.Group, destination: int, is_new: bool) -> None:
            asked = bytearray(_TRANSFER_ID_BYTES + _OBJECT_ID_BYTES)
            messages = [_col.Message.send(each, destination) for each in ready]
            group.recv(asked, destination)
            if asked[:_TRANSFER_ID_BYTES] != own_id:
                # Asked for a transfer whose task has failed here before it came to this, or for one of another driver's.
                if not is_new:
                    raise PeerLost("the destination may have left the group since it asked for this")
                found = direct.tensors(asked[_TRANSFER_ID_BYTES:].hex())
                messages = [_col.Message.send(each, destination) for each in _bytes_of(found)]
            group.batch(messages)

        self._exchange(communicator_metadata, communicator_metadata.destination, answer)

    def garbage_collect(self, obj_id: str, tensor_transport_meta: TensorTransportMetadata, tensors: list[Any]) -> None:
        pass  # nothing is kept of an object

    def abort_transport(self, obj_id: str, communicator_metadata: Transfer) -> None:
        """Ends the transfer if it is running here, and otherwise as soon as it begins. Does not wait for that."""
        self._aborted.append(communicator_metadata.id)

    # ---- How it is done

    def _exchange(self, transfer: Transfer, peer: str, move: Callable[[_col.Group, int, bool], None]) -> None:
        """Calls move with the group of this actor and the peer, the peer's rank, and whether the group is new. If it is not,
        and the peer, or its process before a restart, has left it, calls move again with a new one."""
        with self._one_at_a_time:
            self._current = transfer
            try:
                while True:
                    is_new = peer not in self._pairs
                    try:
                        self._raise_if_aborted()
                        group = self._pair(peer).group
                        return move(group, 1 - group.rank, is_new)
                    except Exception as error:
                        self._leave(peer)
                        if not isinstance(error, Error):
                            raise
                        if is_new or not isinstance(error, (PeerLost, Aborted)):
                            raise type(error)(f"{transfer}: {error}") from None
            finally:
                self._current = None

    def _pair(self, peer: str) -> Member:
        if peer in self._pairs:
            self._pairs.move_to_end(peer)
            return self._pairs[peer]
        while len(self._pairs) >= KEPT_PAIRS:
            self._leave(next(iter(self._pairs)))
        actors = sorted((cluster.own_actor_id(), peer))
        meeting = _Meeting(actors, 1 - actors.index(peer), self._raise_if_aborted)
        context = meeting.run()
        backend = "shm" if context.is_on_one_host else "gloo"
        group = context.init_group("transfer", backend, RDT_FETCH_FAIL_TIMEOUT_SECONDS)
        self._pairs[peer] = Member(group, Job(context, meeting.server))
        return self._pairs[peer]

    def _leave(self, peer: str) -> None:
        if peer in self._pairs:
            self._pairs.pop(peer).end()

    def _raise_if_aborted(self) -> None:
        if self._current is not None and self._current.id in self._aborted:
            raise Aborted("the other actor has failed or died, or it took too long; its log says more")


class _Meeting(Meeting):
    """What waits in it, and in the groups that come of it, ends also if `check` raises."""

    def __init__(self, actors: Sequence[str], rank: int, check: Callable[[], None]) -> None:
        members = {actor: rank for rank, actor in enumerate(actors)}
        super().__init__(f"transfer/{actors[0]}/{actors[1]}", rank, 2, RDT_FETCH_FAIL_TIMEOUT_SECONDS, members)
        self._check = check

    def _join(self, record: Mapping[str, Any]) -> _col.Context:
        if self._rank == 1:  # rank 0 waits already, or has died
            self._budget = min(self._budget, time.monotonic() - self._began + _ANSWER)
        return super()._join(record)

    def _watch(self) -> None:
        self._check()
        super()._watch()


def _bytes_of(tensors: Sequence[Any]) -> list[Any]:
    """Each, in order; those that have none are left out."""
    return [direct.bytes_of(tensor) for tensor in tensors if tensor.numel()]


def _check_destinations() -> None:
    """Calls are refused whose actor could not take the tensors: Ray does not ask, and their transfers would hold up each other,
    and the calls of the actor."""
    import ray
    from ray.experimental.rdt.rdt_manager import RDTManager

    trigger = RDTManager.queue_or_trigger_out_of_band_tensor_transfer

    def check_and_trigger(self: Any, dst_actor: Any, task_args: Sequence[Any]) -> None:
        for argument in task_args:
            known = self.get_rdt_metadata(argument.hex()) if isinstance(argument, ray.ObjectRef) else None
            if known is not None and known.tensor_transport_backend == NAME:
                direct.check_holds(dst_actor)
        trigger(self, dst_actor, task_args)

    RDTManager.queue_or_trigger_out_of_band_tensor_transfer = check_and_trigger


def _register() -> None:
    import torch
    from ray.experimental.rdt import util

    if NAME not in util.transport_manager_info:
        util.register_tensor_transport(NAME, ["cpu"], ColTransport, torch.Tensor)
    _check_destinations()
    # Ray 2.60 makes its manager of such tensors when it is first asked for it, and without a lock. At an actor's first
    # transfer, two threads may ask at once and get one each. Then what one thread receives, the other never finds: it gives
    # up after 60 s. So this asks before any transfer.
    direct.manager()


# When it is imported: Ray sends the class to the actors by its name, so that they import this, too. It does not do so for an
# actor that has been started again; that one imports this when it is sent a Transfer, or by runtime_env().
_register()
