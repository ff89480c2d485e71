"""The collectives of torch.distributed, each as a function that makes the call in a Trial and returns what is in the tensors
afterwards, beside what must be."""

import warnings

import torch
import torch.distributed as dist

from trial import DEVICE, UNTOUCHED

warnings.filterwarnings("ignore", category=UserWarning, module="torch.distributed")
warnings.filterwarnings("ignore", category=FutureWarning)


def reduced(tensors, op="SUM"):
    """What a reduction of them is, in their type."""
    wide = [tensor if tensor.is_complex() else tensor.to(torch.float64 if tensor.is_floating_point() else torch.int64)
            for tensor in tensors]
    total = wide[0]
    for one in wide[1:]:
        if op in ("SUM", "AVG"):
            total = total + one
        elif op == "PRODUCT":
            total = total * one
        elif op == "MIN":
            total = torch.minimum(total, one)
        elif op == "MAX":
            total = torch.maximum(total, one)
        elif op == "BAND":
            total = total & one
        elif op == "BOR":
            total = total | one
        elif op == "BXOR":
            total = total ^ one
    return (total / len(wide) if op == "AVG" else total).to(tensors[0].dtype)


def shape_of(count):
    """Two axes where that is possible, so that layouts can differ."""
    return (count // 5, 5) if count % 5 == 0 else (count,)


def all_reduce(trial, count, op="SUM"):
    inputs = trial.of_ranks(*shape_of(count))
    x = trial.lay(inputs[trial.rank])
    trial.call(dist.all_reduce, x, op=getattr(dist.ReduceOp, op))
    return [(x, reduced(inputs, op))]


def all_reduce_coalesced(trial, count):
    lists = [trial.of_ranks(*shape_of(c)) for c in (count, 3, count + 2)]
    xs = [trial.lay(inputs[trial.rank]) for inputs in lists]
    trial.call(dist.all_reduce_coalesced, xs)
    return [(x, reduced(inputs)) for x, inputs in zip(xs, lists)]


def broadcast(trial, count):
    root = trial.random.randrange(trial.size)
    inputs = trial.of_ranks(*shape_of(count))
    x = trial.lay(inputs[trial.rank])
    trial.call(dist.broadcast, x, root)
    return [(x, inputs[root])]


def reduce(trial, count, op="SUM"):
    root = trial.random.randrange(trial.size)
    inputs = trial.of_ranks(*shape_of(count))
    x = trial.lay(inputs[trial.rank])
    trial.call(dist.reduce, x, root, op=getattr(dist.ReduceOp, op))
    return [(x, reduced(inputs, op))] if trial.rank == root else []  # elsewhere, it may be anything


def slices(trial, sizes):
    """Outputs that follow one another in memory, as many libraries pass them."""
    return list(torch.full((sum(sizes),), UNTOUCHED, device=DEVICE).to(trial.dtype).split(sizes))


def all_gather(trial, count):
    inputs = trial.of_ranks(*shape_of(count))
    outputs = [trial.empty(*shape_of(count)) for _ in inputs]
    trial.call(dist.all_gather, outputs, trial.lay(inputs[trial.rank]))
    return list(zip(outputs, inputs))


def all_gather_slices(trial, count):
    inputs = trial.of_ranks(count)
    outputs = slices(trial, [count] * trial.size)
    trial.call(dist.all_gather, outputs, trial.lay(inputs[trial.rank]))
    return list(zip(outputs, inputs))


def all_gather_unequal(trial, count):
    inputs = [trial.values(count + r) for r in range(trial.size)]
    outputs = [trial.empty(count + r) for r in range(trial.size)]
    trial.call(dist.all_gather, outputs, trial.lay(inputs[trial.rank]))
    return list(zip(outputs, inputs))


def all_gather_unequal_slices(trial, count):
    inputs = [trial.values(count + r) for r in range(trial.size)]
    outputs = slices(trial, [count + r for r in range(trial.size)])
    trial.call(dist.all_gather, outputs, trial.lay(inputs[trial.rank]))
    return list(zip(outputs, inputs))


def all_gather_into_tensor(trial, count):
    inputs = trial.of_ranks(*shape_of(count))
    expected = torch.cat(inputs)
    out = trial.empty(*expected.shape)
    trial.call(dist.all_gather_into_tensor, out, trial.lay(inputs[trial.rank]))
    return [(out, expected)]


def all_gather_coalesced(trial, count):
    lists = [trial.of_ranks(*shape_of(c)) for c in (count, 3)]
    outputs = [[trial.empty(*inputs[r].shape) for inputs in lists] for r in range(trial.size)]
    trial.call(dist.all_gather_coalesced, outputs, [trial.lay(inputs[trial.rank]) for inputs in lists])
    return [(outputs[r][i], inputs[r]) for i, inputs in enumerate(lists) for r in range(trial.size)]


def gather(trial, count):
    root = trial.random.randrange(trial.size)
    inputs = trial.of_ranks(*shape_of(count))
    outputs = [trial.empty(*shape_of(count)) for _ in inputs] if trial.rank == root else None
    trial.call(dist.gather, trial.lay(inputs[trial.rank]), outputs, dst=root)
    return list(zip(outputs, inputs)) if outputs else []


def scatter(trial, count):
    root = trial.random.randrange(trial.size)
    inputs = trial.of_ranks(*shape_of(count))
    out = trial.empty(*shape_of(count))
    trial.call(dist.scatter, out, [trial.lay(x) for x in inputs] if trial.rank == root else None, src=root)
    return [(out, inputs[trial.rank])]


def scatter_slices(trial, count):
    root = trial.random.randrange(trial.size)
    whole = trial.values(trial.size * count)
    out = trial.empty(count)
    given = whole.to(DEVICE)
    trial.call(dist.scatter, out, list(given.split(count)) if trial.rank == root and count else
               [given] * trial.size if trial.rank == root else None, src=root)
    return [(out, whole[trial.rank * count : (trial.rank + 1) * count])]


def reduce_scatter(trial, count, op="SUM"):
    lists = [trial.of_ranks(*shape_of(count)) for _ in range(trial.size)]  # [from][to]
    out = trial.empty(*shape_of(count))
    trial.call(dist.reduce_scatter, out, [trial.lay(x) for x in lists[trial.rank]], op=getattr(dist.ReduceOp, op))
    return [(out, reduced([inputs[trial.rank] for inputs in lists], op))]


def reduce_scatter_unequal(trial, count):
    lists = [[trial.values(count + r) for r in range(trial.size)] for _ in range(trial.size)]
    out = trial.empty(count + trial.rank)
    trial.call(dist.reduce_scatter, out, [trial.lay(x) for x in lists[trial.rank]])
    return [(out, reduced([inputs[trial.rank] for inputs in lists]))]


def reduce_scatter_tensor(trial, count, op="SUM"):
    shape = shape_of(count)
    inputs = trial.of_ranks(trial.size * shape[0], *shape[1:])
    out = trial.empty(*shape)
    trial.call(dist.reduce_scatter_tensor, out, trial.lay(inputs[trial.rank]), op=getattr(dist.ReduceOp, op))
    return [(out, reduced([x[trial.rank * shape[0] : (trial.rank + 1) * shape[0]] for x in inputs], op))]


def all_to_all(trial, count):
    lists = [trial.of_ranks(*shape_of(count)) for _ in range(trial.size)]  # [from][to]
    outputs = [trial.empty(*shape_of(count)) for _ in range(trial.size)]
    trial.call(dist.all_to_all, outputs, [trial.lay(x) for x in lists[trial.rank]])
    return [(outputs[r], lists[r][trial.rank]) for r in range(trial.size)]


def all_to_all_unequal(trial, count):
    lists = [[trial.values((count + r + 2 * to) % 7) for to in range(trial.size)] for r in range(trial.size)]
    outputs = slices(trial, [inputs[trial.rank].numel() for inputs in lists])
    trial.call(dist.all_to_all, outputs, [trial.lay(x) for x in lists[trial.rank]])
    return [(outputs[r], lists[r][trial.rank]) for r in range(trial.size)]


def all_to_all_single(trial, count):
    inputs = trial.of_ranks(trial.size, *shape_of(count))
    out = trial.empty(*inputs[0].shape)
    trial.call(dist.all_to_all_single, out, trial.lay(inputs[trial.rank]))
    return [(out, torch.stack([x[trial.rank] for x in inputs]))]


def all_to_all_single_splits(trial, count):
    rows = [[(count + r + 2 * to) % 4 for to in range(trial.size)] for r in range(trial.size)]
    inputs = [trial.values(sum(split), 3) for split in rows]
    expected = torch.cat([x.split(split)[trial.rank] for x, split in zip(inputs, rows)])
    out = trial.empty(*expected.shape)
    trial.call(dist.all_to_all_single, out, trial.lay(inputs[trial.rank]),
               [split[trial.rank] for split in rows], rows[trial.rank])
    return [(out, expected)]


REDUCTIONS = [all_reduce, all_reduce_coalesced, reduce, reduce_scatter, reduce_scatter_unequal, reduce_scatter_tensor]
OTHERS = [
    broadcast, all_gather, all_gather_slices, all_gather_unequal, all_gather_unequal_slices, all_gather_into_tensor,
    all_gather_coalesced, gather, scatter, scatter_slices, all_to_all, all_to_all_unequal, all_to_all_single,
    all_to_all_single_splits,
]
