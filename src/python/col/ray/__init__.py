"""Collectives under Ray: ray.util.collective with its names and signatures, over col.

    import col.ray as collective

    @ray.remote
    class Worker:
        def train(self, rank):
            collective.init_collective_group(2, rank, group_name="default")
            collective.allreduce(self.gradients, "default")

That import is all that changes in a program for Ray's own module. The same functions work without Ray, under colrun: they
then use the groups of col.init(). Importing this package does not import Ray. docs/ray.md has more.

collective.py has the calls, groups.py the groups of this process, rendezvous.py how their ranks find each other, declare.py the
groups that a driver declares, refs.py the calls that a driver makes on references, transport.py what moves tensors between
actors, register.py the place of col inside Ray's own modules, theirs.py Ray's other modules.
"""

from __future__ import annotations

from ..hints import TYPE_CHECKING
from . import theirs as theirs
from .backend_registry import register_collective_backend
from .collective import (
    allgather, allgather_multigpu, allreduce, allreduce_multigpu, alltoall, barrier, broadcast, broadcast_multigpu,
    create_subgroup, destroy_collective_group, destroy_group, gather, get_collective_group_size, get_group,
    get_group_handle, get_rank, gloo_available, iallreduce, ibarrier, ibroadcast, init_collective_group, irecv, ireduce,
    is_backend_available, is_group_initialized, isend, nccl_available, recv, recv_multigpu, reduce, reduce_multigpu,
    reducescatter, reducescatter_multigpu, scatter, send, send_multigpu, synchronize,
)
from .declare import create_collective_group, declare_collective_group
from .refs import (
    allgather_refs, allreduce_refs, alltoall_refs, broadcast_refs, gather_refs, recv_ref, reduce_refs, reducescatter_refs,
    scatter_refs, send_ref,
)
from .register import register, runtime_env
from .types import Backend, ReduceOp

if TYPE_CHECKING:
    from . import collective_group as collective_group
    from . import const as const
    from . import util as util

__all__ = [
    "Backend", "ReduceOp", "allgather", "allgather_multigpu", "allgather_refs", "allreduce", "allreduce_multigpu",
    "allreduce_refs", "alltoall", "alltoall_refs", "barrier", "broadcast", "broadcast_multigpu", "broadcast_refs",
    "create_collective_group", "create_subgroup", "declare_collective_group", "destroy_collective_group",
    "destroy_group", "gather", "gather_refs", "get_collective_group_size", "get_group", "get_group_handle", "get_rank",
    "gloo_available", "iallreduce", "ibarrier", "ibroadcast", "init_collective_group", "irecv", "ireduce",
    "is_backend_available", "is_group_initialized", "isend", "nccl_available", "recv", "recv_multigpu", "recv_ref",
    "reduce", "reduce_multigpu", "reduce_refs", "reducescatter", "reducescatter_multigpu", "reducescatter_refs",
    "register", "register_collective_backend", "runtime_env", "scatter", "scatter_refs", "send", "send_multigpu",
    "send_ref", "synchronize",
]
