"""Training by DistributedDataParallel: over col and over Gloo, every gradient and parameter is the same to the last bit, because
two numbers have one sum."""

import contextlib

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.distributed.algorithms.join import Join

import col.torch
import members
import trial

STEPS = 5


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.norm, self.last = nn.Linear(10, 40), nn.BatchNorm1d(40), nn.Linear(40, 3)
        self.odd, self.never = nn.Linear(40, 3), nn.Parameter(torch.ones(3))

    def forward(self, x, odd=False):
        return (self.odd if odd else self.last)(torch.relu(self.norm(self.first(x))))


def network(rank, kind=Network):
    torch.manual_seed(rank)  # DDP makes them all as rank 0's
    return kind()


def batch(rank, step, rows=8):
    return torch.randn(rows, 10, generator=torch.Generator().manual_seed(100 * step + rank))


def state(model):
    """All that must be equal."""
    gradients = [torch.zeros(1) if parameter.grad is None else parameter.grad for parameter in model.parameters()]
    return [tensor.detach().clone() for tensor in [*gradients, *model.state_dict().values()]]


def same(groups, train, *args):
    """Trains on both backends, and compares what that leaves on this rank."""
    ours, theirs = (train(groups.rank, group, *args) for group in (groups.col, groups.gloo))
    assert len(ours) == len(theirs) > 3
    for one, other in zip(ours, theirs):
        assert torch.equal(one, other)


def plain(rank, group, options, used=lambda rank, step: {}):
    model = network(rank)
    if not options.get("find_unused_parameters"):
        del model.odd, model.never
    ddp = nn.parallel.DistributedDataParallel(model, process_group=group, **options)
    optimizer = torch.optim.SGD(ddp.parameters(), 0.1, momentum=0.9)
    states = []
    for step in range(STEPS):
        optimizer.zero_grad()
        ddp(batch(rank, step), **used(rank, step)).pow(2).mean().backward()
        states += state(ddp)
        optimizer.step()
    return states + state(ddp)


def odd_once(rank, step):
    return {"odd": (rank + step) % 2 == 1}


SMALL = 40 * 4 / 2**20  # MiB of a bucket: several


@pytest.mark.parametrize("options", [
    {}, {"bucket_cap_mb": SMALL}, {"gradient_as_bucket_view": True, "bucket_cap_mb": SMALL}, {"static_graph": True},
    {"broadcast_buffers": False},
], ids=str)
def test_plain(options):
    members.run(2, same, plain, options)


@pytest.mark.parametrize("view", [False, True])
def test_unused_parameters(view):
    """Each rank uses others, and all leave one out."""
    options = {"find_unused_parameters": True, "bucket_cap_mb": SMALL, "gradient_as_bucket_view": view}
    members.run(2, same, plain, options, odd_once)


def accumulated(rank, group):
    model = network(rank)
    del model.odd, model.never
    ddp = nn.parallel.DistributedDataParallel(model, process_group=group, bucket_cap_mb=SMALL)
    states = []
    for step in range(STEPS):
        with ddp.no_sync() if step % 2 == 0 else contextlib.nullcontext():
            ddp(batch(rank, step)).pow(2).mean().backward()
        states += state(ddp)
    return states


def test_no_sync():
    members.run(2, same, accumulated)


def buffers_of_rank_0(groups):
    """The running means are each rank's own until the next forward of training takes those of rank 0."""
    ddp = nn.parallel.DistributedDataParallel(network(groups.rank), process_group=groups.col, find_unused_parameters=True)
    for step in range(2):
        ddp(batch(groups.rank, step)).sum().backward()
    means = [torch.zeros(40) for _ in range(groups.size)]
    dist.all_gather(means, ddp.module.norm.running_mean)
    assert not torch.equal(means[0], means[1])
    ddp(batch(0, 7)).sum().backward()  # the same on all ranks
    dist.all_gather(means, ddp.module.norm.running_mean)
    assert torch.equal(means[0], means[1])
    ddp.eval()
    with torch.no_grad():
        assert torch.equal(ddp(batch(0, 8)), ddp.module(batch(0, 8)))


def test_buffers_of_rank_0():
    members.run(2, buffers_of_rank_0)


def hooked(rank, group, hook):
    model = network(rank)
    del model.odd, model.never
    # Of several buckets, the calls in callbacks would meet those of backward() in another order on each rank.
    ddp = nn.parallel.DistributedDataParallel(
        model, process_group=group, bucket_cap_mb=25 if hook is waits_in_a_callback else SMALL)
    ddp.register_comm_hook(group, hook)
    optimizer = torch.optim.SGD(ddp.parameters(), 0.1)
    for step in range(STEPS):
        optimizer.zero_grad()
        ddp(batch(rank, step)).pow(2).mean().backward()
        optimizer.step()
    return state(ddp)


def twice_in_a_row(group, bucket):
    """Begins the second call in the first one's function, in a thread of the backend."""
    first = dist.all_reduce(bucket.buffer(), group=group, async_op=True).get_future()
    return first.then(lambda future: future.value()[0].div_(2 * group.size()))


def waits_in_a_callback(group, bucket):
    """As PowerSGD does it, for a second call that others wait for as well."""
    def second(future):
        work = dist.all_reduce(future.value()[0].div_(2), group=group, async_op=True)
        return work.get_future().wait()[0].div_(2)

    return dist.all_reduce(bucket.buffer(), group=group, async_op=True).get_future().then(second)


def by_gathers(group, bucket):
    everyone = [torch.zeros_like(bucket.buffer()) for _ in range(group.size())]
    work = dist.all_gather(everyone, bucket.buffer(), group=group, async_op=True)
    return work.get_future().then(lambda future: everyone[0].add(everyone[1]).div_(2))


def at_once(group, bucket):
    """col's own hook, on col."""
    hook = col.torch.allreduce_hook if group.name() == "col" else default_hooks.allreduce_hook
    return hook(group, bucket)


HOOKS = [
    default_hooks.allreduce_hook, default_hooks.fp16_compress_hook, twice_in_a_row, waits_in_a_callback, by_gathers, at_once,
]


@pytest.mark.parametrize("hook", HOOKS, ids=lambda hook: hook.__name__)
def test_hook(hook):
    members.run(2, same, hooked, hook)


def of_the_default_group(groups):
    """As its docstring says it: DDP looks at the annotations, and the state is None."""
    ddp = nn.parallel.DistributedDataParallel(nn.Linear(3, 1, bias=False))
    ddp.register_comm_hook(None, col.torch.allreduce_hook)
    ddp(torch.full((1, 3), float(groups.rank))).sum().backward()
    return next(ddp.parameters()).grad.tolist()


def test_hook_of_the_default_group():
    assert members.run(3, of_the_default_group) == [[[1.0] * 3]] * 3


def uneven(rank, group, initial, unused, sharded):
    """Rank 0 has fewer batches. initial: gradients are divided by the number of all ranks, else by that of those still there."""
    from torch.distributed.optim import ZeroRedundancyOptimizer

    model = network(rank)
    if not unused:
        del model.odd, model.never
    ddp = nn.parallel.DistributedDataParallel(
        model, process_group=group, bucket_cap_mb=SMALL, find_unused_parameters=unused, broadcast_buffers=False)
    optimizer = torch.optim.SGD(ddp.parameters(), 0.1)
    joining = [ddp]
    if sharded:
        optimizer = ZeroRedundancyOptimizer(ddp.parameters(), torch.optim.SGD, process_group=group, lr=0.1)
        joining.append(optimizer)
    states = []
    with Join(joining, divide_by_initial_world_size=initial):
        for step in range(3 + 2 * rank):
            optimizer.zero_grad()
            ddp(batch(rank, step)).pow(2).mean().backward()
            optimizer.step()
            states += state(ddp)
    return states + state(ddp)


@pytest.mark.parametrize("unused, sharded", [(False, False), (True, False), (False, True)])
@pytest.mark.parametrize("initial", [True, False])
def test_join(initial, unused, sharded):
    members.run(2, same, uneven, initial, unused, sharded)


def sharded_optimizer(rank, group):
    from torch.distributed.optim import ZeroRedundancyOptimizer

    model = network(rank)
    del model.odd, model.never
    ddp = nn.parallel.DistributedDataParallel(model, process_group=group, bucket_cap_mb=SMALL)
    optimizer = ZeroRedundancyOptimizer(ddp.parameters(), torch.optim.Adam, process_group=group, lr=0.01)
    for step in range(STEPS):
        optimizer.zero_grad()
        ddp(batch(rank, step)).pow(2).mean().backward()
        optimizer.step()
    optimizer.consolidate_state_dict(to=0)
    return state(ddp)


def test_zero_redundancy_optimizer():
    members.run(2, same, sharded_optimizer)


def sparse(rank, group):
    model = network(rank, lambda: nn.Sequential(nn.EmbeddingBag(20, 6, sparse=True), nn.Linear(6, 6), nn.Linear(6, 2)))
    ddp = nn.parallel.DistributedDataParallel(model, process_group=group)
    optimizer = torch.optim.SGD(ddp.parameters(), 0.1)
    for step in range(STEPS):
        optimizer.zero_grad()
        words = torch.randint(0, 20, (4, 3), generator=torch.Generator().manual_seed(10 * step + rank))
        ddp(words).pow(2).mean().backward()
        optimizer.step()
    return [tensor.to_dense() if tensor.is_sparse else tensor for tensor in state(ddp)]


def test_sparse_gradients():
    members.run(2, same, sparse)


def double(rank, group):
    model = network(rank, lambda: nn.Sequential(nn.Linear(10, 40), nn.Linear(40, 3)).double())
    ddp = nn.parallel.DistributedDataParallel(model, process_group=group, bucket_cap_mb=SMALL)
    states = []
    for step in range(STEPS):
        ddp(batch(rank, step).double()).pow(2).mean().backward()
        states += state(ddp)
    return states


def test_double():
    members.run(2, same, double)


def different_models(groups):
    group = dist.new_group(timeout=trial.timeout_of(5))
    nn.parallel.DistributedDataParallel(nn.Linear(3, 4 + groups.rank), process_group=group)


def test_models_that_differ():
    with pytest.raises(RuntimeError, match="(?i)mismatch|inconsistent|size"):
        members.run(2, different_models)


def one_skips_backward(groups):
    """Rank 1 does something else than reducing gradients: the error comes out of backward, and names the rank."""
    group = dist.new_group(timeout=trial.timeout_of(3))
    ddp = nn.parallel.DistributedDataParallel(nn.Linear(10, 3), process_group=group)
    loss = ddp(batch(groups.rank, 0)).sum()
    try:
        dist.barrier(group) if groups.rank == 1 else loss.backward()
    except RuntimeError as error:
        return str(error)


def test_error_in_backward():
    for text in members.run(2, one_skips_backward):
        assert "mismatch" in text and "rank 1 called" in text, text
