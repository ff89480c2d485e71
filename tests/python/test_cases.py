"""Calls of every kind, drawn by a seed: every byte of what they write, and of 64 on both sides, against a reference in numpy.

CASES_SEED=7 draws others; a failure names its case.
"""

import math
import os
import random
from dataclasses import dataclass

import numpy as np
import pytest
import torch

import arrays
import col
from reference import (
    BRINGS_BLOCKS, GETS_BLOCKS, MARGIN, PATTERN, REDUCTIONS, ROOTED, Buffer, Part, Type, new_array_problem, operator, shift_of,
)

SEED = int(os.environ.get("CASES_SEED", "1"))
IN_PLACE_WITHOUT_OUT = {"allreduce", "reduce"}
COLLECTIVES = sorted(BRINGS_BLOCKS - {"batch"} | GETS_BLOCKS - {"batch", "recv_any"} | REDUCTIONS | ROOTED) + ["barrier"]
MESSAGES = ["send_recv", "sendrecv", "recv_any", "batch"]
OPERATORS = ["sum", "product", "min", "max", "avg", "band", "bor", "bxor", "premul_sum", "user", "ordered"]
DTYPES = [*arrays.NUMPY_DTYPES, "bool"]
DRAWS = 20  # of each call: every type at least once
# Where the library changes course: messages that are sent whole, parts of longer ones, a ring, a segment.
PIECES = [8 << 10, 32 << 10, 64 << 10, 256 << 10]
MOST_BYTES = 2 << 20  # between all ranks: the reference costs more than the call


@dataclass
class Case:
    coll: str
    lib: str
    dtype: str = "uint8"
    op: str = "sum"
    count: int = 0
    root: int = 0
    inplace: bool = False
    is_async: bool = False
    algo: str = ""
    tag: int = 0
    seed: int = 0


# ---- Which cases


class Decks:
    """Endless draws without bias: each value of a list comes once before one comes again."""

    def __init__(self, rng):
        self.rng, self.left = rng, {}

    def next(self, name, values):
        left = self.left.setdefault(name, [])
        if not left:
            left.extend(self.rng.sample(values, len(values)))
        return left.pop()


def is_defined(op, dtype):
    kind = Type(dtype).partial.kind
    if kind == "b":
        return op not in ("sum", "product", "avg", "premul_sum")
    return op not in ("band", "bor", "bxor") or (kind in "iu" and not Type(dtype).is_in_ml_dtypes)


def is_possible(case):
    """All operators on all types: bits are those of integers, complex numbers have no order, and torch may lack a type."""
    if case.lib == "torch" and not hasattr(torch, case.dtype):
        return False
    has_order = Type(case.dtype).partial.kind != "c"
    return case.coll not in REDUCTIONS or (is_defined(case.op, case.dtype) and (has_order or case.op not in ("min", "max")))


def serves(coll, algorithm, n):
    try:
        col.plan.build(coll, algorithm, n, **({"counts": [1] * n} if coll.endswith("v") else {}))
    except col.InvalidArgument:
        return False
    return True


def drawn_count(decks, coll, n, size):
    kind = decks.next("count", ["none", "one", "fewer", "ranks", "more", "prime", *PIECES])
    if kind in PIECES and n * n * kind <= MOST_BYTES:
        return kind // size + decks.rng.choice([-1, 0, 1])
    usual = {"none": 0, "one": 1, "fewer": n - 1, "ranks": n, "more": n + 1}
    return usual.get(kind, decks.rng.choice([31, 131, 1009]))


def cases_of(coll, group, backend):
    n = group.size
    decks = Decks(random.Random(f"{SEED} {coll} {n} {backend}"))
    built_in = [] if coll in MESSAGES else sorted(col.plan.algorithms(coll))
    own = [] if coll in MESSAGES or n == 1 else [name for name in sorted(group.algorithms(coll)) if name not in built_in]
    algorithms = ["", *(name for name in built_in if serves(coll, name, n)), *own]
    for number in range(DRAWS):
        case = Case(coll, decks.next("library", ["numpy", "torch"]), seed=decks.rng.randrange(1 << 32))
        case.dtype, case.op = decks.next("dtype", DTYPES), decks.next("op", OPERATORS)
        while not is_possible(case):
            case.op = decks.next("op", OPERATORS)
            case.lib = decks.next("library", ["numpy", "torch"])
        case.algo = decks.next("algorithm", algorithms) if case.op != "ordered" else ""
        case.is_async = case.algo not in own and coll != "sendrecv" and decks.next("async", [False, True])
        case.inplace = coll in REDUCTIONS | BRINGS_BLOCKS | GETS_BLOCKS and coll not in MESSAGES and decks.next("place", [False, True])
        case.root = decks.next("root", range(n)) if coll in ROOTED | {"recv_any"} else 0
        case.count = drawn_count(decks, coll, n, Type(case.dtype).size)
        # What a faster rank sends from another case must not be taken for a message of this one.
        case.tag = 100 + number if coll == "recv_any" else number % 3
        yield case


# ---- Calls


def ended(work, way):
    """What the work returns, waited for in one of several ways."""
    polls = 200 if way % 3 else 0
    while polls and not (work.done() if way % 3 == 1 else work.wait_for(5e-5)):
        polls -= 1
    return work.wait() if way % 2 else col.wait_all([work])[0]


def lay_out(case, type_, part, rng):
    """Returns the buffers, x and out of the call, and what it returns if that is no new array."""
    unwritten = np.full(part.out_bytes, PATTERN, np.uint8)
    if case.coll == "broadcast":
        buffer = Buffer(case, type_, part.output if part.is_root else unwritten)
        buffer.expect(0, part.output)
        x = buffer.view(0, part.out_bytes)
        return [buffer], {"x": x}, x
    if case.inplace and (part.is_root or case.coll == "reduce"):
        return lay_out_in_place(case, type_, part, rng)
    buffers, arguments, out = [], {}, None
    if part.input is not None:
        buffers.append(Buffer(case, type_, part.input))
        arguments["x"] = buffers[0].view(0, len(part.input))
    # Where it need not be passed, it is in half of the cases; on a rank that gets nothing, it is left alone.
    needs_out = part.input is None or (case.coll in IN_PLACE_WITHOUT_OUT and part.output is not None)
    if needs_out or rng.integers(2):
        buffers.append(Buffer(case, type_, unwritten))
        out = arguments["out"] = buffers[-1].view(0, part.out_bytes)
        if part.output is not None:
            buffers[-1].expect(0, part.output)
    return buffers, arguments, out


def lay_out_in_place(case, type_, part, rng):
    """The shorter of input and output is a part of the longer."""
    is_longer = len(part.input) >= part.out_bytes
    is_equal = len(part.input) == part.out_bytes and not case.coll.endswith("v")
    offset = 0 if is_equal else part.own_offset
    content = part.input
    if not is_longer:
        content = np.full(part.out_bytes, PATTERN, np.uint8)
        content[offset : offset + len(part.input)] = part.input
    buffer = Buffer(case, type_, content)
    if part.output is not None:
        buffer.expect(offset if is_longer else 0, part.output)
    x = buffer.view(0 if is_longer else offset, len(part.input))
    if case.coll in IN_PLACE_WITHOUT_OUT and rng.integers(2):
        return [buffer], {"x": x}, x
    out = buffer.view(offset if is_longer else 0, part.out_bytes)
    return [buffer], {"x": x, "out": out}, out


def call_collective(group, case, type_, part, rng):
    """Returns the buffers, and what is wrong with the result; empty if nothing is."""
    buffers, arguments, out = ([], {}, None) if case.coll == "barrier" else lay_out(case, type_, part, rng)
    if case.coll == "alltoallv":
        arguments.update(in_counts=part.in_counts, out_counts=part.out_counts)
    elif case.coll.endswith("v") and part.is_root:
        arguments["counts"] = part.in_counts if case.coll in BRINGS_BLOCKS else part.out_counts
    if case.coll in REDUCTIONS:
        arguments["op"] = operator(case, type_, group.rank)
    if case.coll in ROOTED:
        arguments["root"] = case.root
    if case.algo:
        arguments["algorithm"] = case.algo
    if case.is_async:
        result = ended(getattr(group, "i" + case.coll)(**arguments), rng.integers(6))
    else:
        result = getattr(group, case.coll)(**arguments)
    if case.coll == "barrier" or part.output is None:
        return buffers, "" if result is None else f"the call returned {type(result).__name__}, not None"
    if out is None:
        return buffers, new_array_problem(case, type_, result, part.output)
    return buffers, "" if result is out else "the call did not return its output"


def call_messages(group, case, type_, part, rng):
    n, me, tag = group.size, group.rank, case.tag
    source_buffer = Buffer(case, type_, part.input)
    target = Buffer(case, type_, np.full(part.out_bytes, PATTERN, np.uint8))
    if part.output is not None:
        target.expect(0, part.output)
    block = case.count * type_.size
    shift = shift_of(case, n)
    destination, source = (me + shift) % n, (me - shift) % n
    x, out = source_buffer.view(0, len(part.input)), target.view(0, part.out_bytes)
    problem = ""
    if case.coll == "sendrecv":
        result = group.sendrecv(x, destination, out, source, tag=tag)
        problem = "" if result is out else "sendrecv did not return its output"
    elif case.coll == "batch":
        messages = [col.Message.send(source_buffer.view(r * block, block), r, tag) for r in range(n)]
        messages += [col.Message.recv(target.view(r * block, block), r, tag) for r in range(n)]
        rng.shuffle(messages)
        ended(group.ibatch(messages), rng.integers(6)) if case.is_async else group.batch(messages)
    elif case.coll == "recv_any":
        outs = [target.view(r * block, block) for r in range(n)] if me == case.root else []
        if case.is_async:
            works = [group.isend(x, case.root, tag=tag)] + [group.irecv_any(o, tag=tag) for o in outs]
            for work in works:
                ended(work, rng.integers(6))
            sources = [work.source for work in works[1:]]
        else:
            group.send(x, case.root, tag=tag)
            sources = [group.recv_any(o, tag=tag) for o in outs]
        if outs and sorted(sources) != list(range(n)):
            problem = f"recv_any got messages from {sources}"
        elif outs:  # where the ranks they come from belong
            begin = MARGIN
            arrived = [target.held[begin + i * block : begin + (i + 1) * block].copy() for i in range(n)]
            for i, rank in enumerate(sources):
                target.held[begin + rank * block : begin + (rank + 1) * block] = arrived[i]
    elif case.is_async:
        starts = [lambda: group.isend(x, destination, tag=tag), lambda: group.irecv(out, source, tag=tag)]
        rng.shuffle(starts)
        for work in [start() for start in starts]:
            ended(work, rng.integers(6))
    else:
        # Blocking sends may wait for their receives: one rank of every cycle of the rotation receives first.
        receives_first = shift != 0 and me < math.gcd(shift, n)
        for receives in (receives_first, not receives_first):
            group.recv(out, source, tag=tag) if receives else group.send(x, destination, tag=tag)
    return [source_buffer, target], problem


def run_case(group, case):
    """What is wrong; empty if nothing is."""
    type_ = Type(case.dtype)
    type_.in_library(case.lib)
    rng = np.random.default_rng([case.seed, 1 << 21, group.rank])
    part = Part(case, type_, group.rank, group.size)
    call = call_messages if case.coll in ("send_recv", "sendrecv", "recv_any", "batch") else call_collective
    buffers, problem = call(group, case, type_, part, rng)
    for buffer in buffers:
        found = buffer.problem()
        if found:
            return ("input, or both: " if buffer is buffers[0] else "output: ") + found
    return problem


def problems_of(cases, group):
    """Up to the first error, which breaks a group."""
    found = []
    for case in cases:
        try:
            problem = run_case(group, case)
        except Exception as error:
            return [*found, f"{case}: {type(error).__name__}: {error}"]
        found += [f"{case}: {problem}"] if problem else []
    return found


@pytest.fixture
def group_over(group):
    made = []

    def make(backend):
        made.append(f"cases over {backend}")
        return col.init_collective_group(group.size, group.rank, backend, made[-1], timeout=20)

    yield make
    for name in made:
        col.destroy_collective_group(name)


@pytest.mark.parametrize("backend", ["shm", "gloo"])
@pytest.mark.ranks(1, 2, 3, 5)
def test_every_byte(group_over, backend):
    group = group_over(backend)
    for coll in COLLECTIVES + MESSAGES:
        assert problems_of(cases_of(coll, group, backend), group) == []


class Wrong:
    """A group whose results of one call have a wrong byte, or that writes one byte too many."""

    def __init__(self, group, harm):
        self.group, self.harm = group, harm

    def __getattr__(self, name):
        return getattr(self.group, name)

    def reduce_scatter(self, x, out=None, **options):
        result = self.group.reduce_scatter(x, out, **options)
        self.harm(result)
        return result


def wrong_result(result):
    if len(result):
        result[0] = 0 if result[0] else 1


def wrong_place(result):
    if isinstance(result, np.ndarray) and result.base is not None:
        np.frombuffer(result.base, np.uint8)[-1] ^= 1


@pytest.mark.parametrize("harm", [wrong_result, wrong_place])
@pytest.mark.ranks(2)
def test_what_is_wrong_is_found(group, harm):
    cases = list(cases_of("reduce_scatter", group, "shm"))
    found = problems_of(cases, Wrong(group, harm))
    assert found and all("Case(coll='reduce_scatter'" in problem for problem in found)
    assert len(found) < len(cases)  # i-forms, and blocks of no element, are right
    assert any("beside it was written" in problem for problem in found) == (harm is wrong_place)
    assert problems_of(cases, group) == []
