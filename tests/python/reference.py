"""Arrays and tensors that calls are made on, operators, and what must come of the calls: a reference in numpy that uses
nothing of col."""

import ctypes
from functools import reduce
from itertools import accumulate

import ml_dtypes
import numpy as np
import torch

import col

MARGIN = 64  # bytes on both sides of a buffer, which must not change
PATTERN = 0xA5

ROOTED = {"broadcast", "reduce", "gather", "gatherv", "scatter", "scatterv"}
REDUCTIONS = {"allreduce", "reduce", "reduce_scatter", "reduce_scatterv", "scan", "exscan"}
BRINGS_BLOCKS = {"reduce_scatter", "reduce_scatterv", "scatter", "scatterv", "alltoall", "alltoallv", "batch"}
GETS_BLOCKS = {"allgather", "allgatherv", "gather", "gatherv", "alltoall", "alltoallv", "batch", "recv_any"}


# ---- Elements. Data is bytes, because every type has those in each library; a reduction reads them as partial results.


class Type:
    def __init__(self, name):
        self.name = name
        is_float8, is_half = self.name.startswith("float8"), self.name in ("float16", "bfloat16")
        self.is_in_ml_dtypes = is_float8 or self.name == "bfloat16"
        self.partial = np.dtype("float32" if is_half or is_float8 else self.name)
        self.size = 1 if is_float8 else 2 if is_half else self.partial.itemsize
        # For the functions below: every number of theirs is one of the type.
        self.modulus, self.prime = (7, 3) if is_float8 else (127, 11)

    def in_library(self, library):
        if library == "torch":
            return getattr(torch, self.name)
        return np.dtype(getattr(ml_dtypes, self.name) if self.is_in_ml_dtypes else self.name)

    def read(self, data):
        return data.view(self.in_library("numpy")).astype(self.partial)

    def write(self, values):
        with np.errstate(over="ignore"):
            return np.ascontiguousarray(values.astype(self.in_library("numpy"))).view(np.uint8)


# ---- Operators


def whole(values):
    return np.real(values).astype(np.int64)


def addition(type_):
    return lambda left, right: ((whole(left) + whole(right)) % type_.modulus).astype(left.dtype)


def composition(type_):
    """First x -> a x + b of the left one, then that of the right one, modulo n; each is one number, n a + b."""
    n = type_.prime

    def compose(left, right):
        (a, b), (c, d) = divmod(whole(left), n), divmod(whole(right), n)
        return (a * c % n * n + (b * c + d) % n).astype(left.dtype)

    return compose


FUNCTIONS = {
    "sum": np.add, "avg": np.add, "premul_sum": np.add, "product": np.multiply, "min": np.minimum, "max": np.maximum,
    "band": np.bitwise_and, "bor": np.bitwise_or, "bxor": np.bitwise_xor,
}


def scale_of(type_, rank):
    return ([2, -3, 5] if type_.partial.kind in "iu" else [0.5, -1.5, 3])[rank % 3]


def operator(case, type_, rank):
    if case.op == "premul_sum":
        return col.premul_sum(scale_of(type_, rank))
    if case.op in ("user", "ordered"):
        return col.user_op(addition(type_), commutative=True) if case.op == "user" else composition(type_)
    return case.op


def fold(case, type_, contributions, size):
    """In rank order. The values are such that another order gives the same bits."""
    if case.op == "premul_sum":
        contributions = [x * np.array(scale_of(type_, r)).astype(type_.partial) for r, x in enumerate(contributions)]
    own = {"user": addition(type_), "ordered": composition(type_)}
    total = reduce(own[case.op] if case.op in own else FUNCTIONS[case.op], contributions)
    if case.op != "avg":
        return total
    if type_.partial.kind in "iu":  # toward zero
        return total // size + ((total < 0) & (total % size != 0))
    real = total.real.dtype
    return (total.view(real) / real.type(size)).view(total.dtype)


# ---- The reference: what each rank brings, and what it must get


def numbers(case, type_, rank, count):
    """Small whole numbers, powers of two for products: every partial sum is exact. Integers take all their range, and wrap."""
    rng = np.random.default_rng([case.seed, rank])
    kind = type_.partial.kind
    if case.coll not in REDUCTIONS or (kind in "iub" and case.op not in ("user", "ordered")):
        data = np.frombuffer(rng.bytes(count * type_.size), np.uint8)
        data = data & 1 if kind == "b" else data
        return type_.write(type_.read(data) | 1) if case.coll in REDUCTIONS and case.op == "product" else data
    if case.op == "user":
        values = rng.integers(0, type_.modulus, count)
    elif case.op == "ordered":
        values = rng.integers(1, type_.prime, count) * type_.prime + rng.integers(0, type_.prime, count)
    elif case.op == "product":
        values = rng.choice([1, -1, 2, -2, 0.5, -0.5], count) * (3 if rank % 4 == 0 else 1)
        if kind == "c":  # rank 0 alone has both parts, so that no part of a product is a zero, of which there are two
            values = values * (1 + 2j) if rank == 0 else np.where(rng.integers(0, 2, count) == 0, values, 1j * values)
    else:
        values = rng.integers(1, 61, count) * rng.choice([-1, 1], count)
        if kind == "c":
            values = values + 1j * rng.integers(1, 61, count)
    return type_.write(values.astype(type_.partial))


def counts_of(case, n):
    """Elements from each rank (row) to each rank; where there is one direction, those of the rank are in the diagonal."""
    if case.coll not in ("allgatherv", "gatherv", "scatterv", "reduce_scatterv", "alltoallv"):
        return np.full((n, n), case.count)
    counts = np.random.default_rng([case.seed, 1 << 20]).integers(0, 2 * case.count + 1, (n, n))
    # In place, a rank must receive as much as it sends.
    return np.triu(counts) + np.triu(counts, 1).T if case.coll == "alltoallv" and case.inplace else counts


def blocks_of(data, counts, size):
    ends = list(accumulate(counts))
    return [data[(end - count) * size : end * size] for end, count in zip(ends, counts)]


def shift_of(case, n):
    return 0 if n == 1 else 1 + case.seed % (n - 1)


class Part:
    """What rank `me` of `n` brings (bytes, or None if the call does not read an input), what it gets (None: nothing is
    written), how many bytes its output has, and the counts of blocks on both sides."""

    def __init__(self, case, type_, me, n):
        counts = counts_of(case, n)
        diagonal = [int(c) for c in counts.diagonal()]
        pairs = case.coll in ("alltoall", "alltoallv", "batch")
        self.is_root = case.coll not in ROOTED or me == case.root

        def brought(rank):
            return [int(c) for c in counts[rank]] if pairs else diagonal if case.coll in BRINGS_BLOCKS else [diagonal[rank]]

        inputs = [numbers(case, type_, rank, sum(brought(rank))) for rank in range(n)]
        self.in_counts = brought(me)
        self.out_counts = [int(c) for c in counts[:, me]] if pairs else diagonal
        self.input = inputs[me]
        if case.coll == "broadcast":
            self.input, self.output = None, inputs[case.root]
        elif case.coll in ("scatter", "scatterv"):
            self.input = inputs[case.root] if self.is_root else None
            self.output = blocks_of(inputs[case.root], diagonal, type_.size)[me]
        elif pairs:
            self.output = np.concatenate([blocks_of(inputs[r], brought(r), type_.size)[me] for r in range(n)])
        elif case.coll in GETS_BLOCKS:
            self.output = np.concatenate(inputs)
        elif case.coll in REDUCTIONS:
            last = {"scan": me + 1, "exscan": max(me, 1)}.get(case.coll, n)
            self.output = type_.write(fold(case, type_, [type_.read(data) for data in inputs[:last]], n))
            if case.coll.startswith("reduce_scatter"):
                self.output = blocks_of(self.output, diagonal, type_.size)[me]
        else:  # a rotation
            self.output = inputs[(me - shift_of(case, n)) % n]
        self.out_bytes = len(self.output)
        gets = me == case.root if case.coll == "recv_any" else self.is_root or case.coll in ("broadcast", "scatter", "scatterv")
        if not gets or (case.coll == "exscan" and me == 0):
            self.output = None
        # Of this rank's block in the longer of the two.
        blocks = self.in_counts if case.coll in BRINGS_BLOCKS else self.out_counts
        in_one = (case.coll in BRINGS_BLOCKS) == (case.coll in GETS_BLOCKS)
        self.own_offset = 0 if in_one else sum(blocks[:me]) * type_.size


# ---- Memory


class Buffer:
    """Bytes with margins, as an array or a tensor; and what they must be after the call."""

    def __init__(self, case, type_, content):
        self.type, self.library, self.dtype = type_, case.lib, type_.in_library(case.lib)
        self.held = np.full(len(content) + 2 * MARGIN, PATTERN, np.uint8)
        self.held[MARGIN : MARGIN + len(content)] = content
        self.expected = self.held.copy()

    def expect(self, offset, content):
        self.expected[MARGIN + offset : MARGIN + offset + len(content)] = content

    def view(self, offset, size):
        """Of so many bytes."""
        if self.library == "numpy":
            return self.held[MARGIN + offset : MARGIN + offset + size].view(self.dtype)
        if size == 0:  # which frombuffer() refuses
            return torch.empty(0, dtype=self.dtype)
        return torch.frombuffer(self.held, dtype=self.dtype, count=size // self.type.size, offset=MARGIN + offset)

    def problem(self):
        return difference(self.held, self.expected, self.type.size, MARGIN)


def difference(got, expected, size, margin=0):
    if len(got) != len(expected):
        return f"{len(got)} bytes, not {len(expected)}"
    wrong = np.flatnonzero(got != expected)
    if len(wrong) == 0:
        return ""
    byte, length = int(wrong[0]) - margin, len(got) - 2 * margin
    if not 0 <= byte < length:
        return f"a byte beside it was written: {byte}, where it has {length}"
    return f"byte {byte} of {length} (element {byte // size}) is {got[wrong[0]]:#x}, not {expected[wrong[0]]:#x}"


def new_array_problem(case, type_, array, expected):
    """Of what the package has made."""
    wanted = type_.in_library(case.lib)
    if type(array) is not (np.ndarray if case.lib == "numpy" else torch.Tensor) or array.dtype != wanted:
        return f"the new array is {type(array).__name__} of {getattr(array, 'dtype', None)}, not {case.lib}'s of {wanted}"
    if case.lib == "numpy":
        data = array.tobytes()
    else:
        size = array.numel() * type_.size
        data = ctypes.string_at(array.data_ptr(), size) if size else b""
    problem = difference(np.frombuffer(data, np.uint8), expected, type_.size)
    return problem and "the new array: " + problem
