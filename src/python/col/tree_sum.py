"""A sum of contributions that a rank adds one by one, in the order of Order::tree: the same bits at any number of ranks."""

import numpy as np

from .errors import InvalidArgument, Mismatch


class TreeSum:
    """The sum of `total` contributions, numbered over all ranks; this rank adds those from number `first` on, as many as it likes.

        gradients = col.TreeSum(first=rank * 8 // size, total=8)
        for batch in mine:
            gradients.add(gradient_of(batch))
        sum = gradients.allreduce(group, op="avg")

    The bits are those of `group.allreduce(..., order="tree")` with all contributions at once, in less memory: what is complete
    is added up at once, so that of k contributions at most 2 log2 k + 1 sums are kept. Elements are real numbers in host memory,
    of NumPy or torch; floats of 16 bits are added in float32, and rounded once.
    """

    def __init__(self, first: int, total: int):
        if not 0 <= first <= total or total == 0:
            raise InvalidArgument(f"TreeSum(first={first}, total={total}): of at least one contribution, first is one, or their number")
        self._first, self._total = first, total
        self._restart()

    def _restart(self):
        self._next, self._like, self._sums = self._first, None, []

    def add(self, x):
        """Adds the next contribution. It is copied: x may be used again."""
        if self._next == self._total:
            raise InvalidArgument(f"TreeSum.add(): this is contribution {self._next}, and total is {self._total}")
        value = _widened(x)
        if self._like is not None and (value.size, _type_of(x)) != (self._sums[0][2].size, _type_of(self._like)):
            raise InvalidArgument(
                f"TreeSum.add(): contribution {self._next} has {value.size} elements of {_type_of(x)}, those before it "
                f"{self._sums[0][2].size} of {_type_of(self._like)}"
            )
        self._like = x
        _push(self._sums, (self._next, self._next + 1, value), self._total)
        self._next += 1

    def allreduce(self, group, out=None, *, op: str = "sum"):
        """The sum, or the average ("avg"), of what all ranks have added; all call it. Into `out`, which a rank that has added nothing
        must pass, else into a new array like what was added. Then the next sum begins. A Mismatch says who gave what."""
        like = self._like if out is None else out
        if like is None:
            raise InvalidArgument("TreeSum.allreduce(): this rank has added nothing; pass out=, whose length and type all have")
        if op not in ("sum", "avg"):
            raise InvalidArgument(f"TreeSum.allreduce(): op is 'sum' or 'avg', not {op!r}")
        kind = _widened(like).dtype
        if op == "avg" and kind.kind != "f":
            raise InvalidArgument(f"TreeSum.allreduce(): avg is of floats, not of {kind}")
        size = _widened(like).size
        told = group.allgather(np.array([self._first, self._next, size], np.int64)).reshape(-1, 3).tolist()
        _check(told, self._total)
        whole = _owned(group, self._sums, [_subtrees(first, last, self._total) for first, last, _ in told], size, kind)
        if op == "avg":
            whole /= kind.type(self._total)
        whole = group.allgather(whole)[:size]
        self._restart()
        return _as(like, whole, out)


def _owned(group, sums, subtrees, size, kind):
    """Of the result, the block of this rank. Each rank sends every other one that one's block of its sums."""
    block = -(-size // group.size)
    mine = np.zeros((group.size, len(sums), block), kind)
    for i, (_, _, value) in enumerate(sums):
        for to, part in enumerate(mine[:, i]):
            piece = value[to * block : (to + 1) * block]
            part[: piece.size] = piece
    theirs = group.alltoallv(mine.reshape(-1), [len(sums) * block] * group.size, [len(all_) * block for all_ in subtrees])
    folded: list = []
    leaves = [leaf for all_ in subtrees for leaf in all_]
    for (first, last), value in zip(leaves, theirs.reshape(len(leaves), block)):
        _push(folded, (first, last, value), leaves[-1][1])
    return folded[0][2]


def _push(sums, one, total):
    """Adds what follows on the others, and puts together what is now a subtree."""
    sums.append(one)
    while len(sums) > 1 and _is_subtree(sums[-2][0], sums[-1][1], total):
        _, last, right = sums.pop()
        first, _, left = sums.pop()
        if left is not None:
            left += right
        sums.append((first, last, left))


def _is_subtree(first, last, total):
    """Neighbours are combined level by level, and an odd last one goes up as it is."""
    size = 1 << (last - first - 1).bit_length()
    return first % size == 0 and last == min(first + size, total)


def _subtrees(first, last, total):
    """The largest subtrees of contributions [first, last)."""
    sums: list = []
    for leaf in range(first, last):
        _push(sums, (leaf, leaf + 1, None), total)
    return [(begin, end) for begin, end, _ in sums]


def _check(told, total):
    at = 0
    for first, last, _ in told:
        if first not in (at, last):
            break
        at = last if first != last else at
    else:
        if at == total and len({size for _, _, size in told}) == 1:
            return
    gave = "; ".join(f"rank {r} has added {last - first} from number {first} on, of {size} elements" for r, (first, last, size) in enumerate(told))
    raise Mismatch(f"TreeSum.allreduce(): these are not contributions 0 to {total - 1} of equal length, rank by rank: {gave}")


def _is_torch(x):
    return type(x).__module__.partition(".")[0] == "torch"


def _type_of(x):
    return str(x.dtype) if _is_torch(x) else str(np.asarray(x).dtype)


def _widened(x):
    """A copy, of one axis."""
    if _is_torch(x):
        x = x.detach()
        x = (x.float() if x.is_floating_point() and x.element_size() < 4 else x).cpu().numpy()
    array = np.asarray(x)
    if array.dtype.kind not in "fiu":
        raise InvalidArgument(f"TreeSum: elements are real numbers, not {array.dtype}")
    return np.array(array, np.float32 if array.dtype == np.float16 else array.dtype).reshape(-1)


def _as(like, values, out):
    if _is_torch(like):
        import torch

        made = torch.from_numpy(values).to(like.dtype).reshape(like.shape)
        return made if out is None else out.copy_(made)
    made = values.astype(np.asarray(like).dtype).reshape(np.shape(like))
    if out is None:
        return made
    out[...] = made
    return out
