"""A rank of `colcheck --python`: colcheck's cases as calls of this package.

colcheck starts `python3 -m col.check`, and both speak in lines of JSON on standard input and output. This process begins: what
it has. colcheck says who this rank is, and gives orders. For each, this process says the number of each case that begins, what
it finds in it unless the case passes, and at last "end", with the reason if no group could be made.
"""

import faulthandler
import json
import math
import os
import platform
import signal
import sys
from types import SimpleNamespace

import numpy as np

import col

from .check_data import (
    BRINGS_BLOCKS, MARGIN, PATTERN, REDUCTIONS, ROOTED, Buffer, Part, Skip, Type, new_array_problem, operator, shift_of, torch,
)

PASS, SKIP, FAIL = 0, 1, 2
IN_PLACE_WITHOUT_OUT = {"allreduce", "reduce"}


def parse(token):
    """A case from colcheck's text, which leaves out what is as it usually is."""
    case = SimpleNamespace(
        np=1, coll="barrier", algo="", dtype="uint8", op="sum", count=0, root=0, inplace=False, is_async=False, tag=0, seed=0, lib="")
    for part in token.split(",")[1:]:
        key, _, value = part.partition("=")
        key = "is_async" if key == "async" else key
        usual = getattr(case, key, "")
        setattr(case, key, True if usual is False else int(value, 0) if isinstance(usual, int) else value)
    return case


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


# ---- Orders


def finding(rank, index, verdict, text, error=None):
    blames_another = error is not None and error.rank not in (-1, rank)
    return json.dumps(
        {"index": index, "verdict": verdict, "text": text, "digest": None, "blames_another": blames_another}
    )


def findings(group, tokens, say):
    """Until the group cannot be used any more: then it returns False."""
    for index, token in enumerate(tokens):
        say(str(index))
        verdict, text, usable, cause = PASS, "", True, None
        try:
            text = run_case(group, parse(token))
            verdict = FAIL if text else PASS
        except Skip as skip:
            verdict, text = SKIP, str(skip)
        except col.Error as error:
            verdict, text, cause = FAIL, str(error), error
            usable = isinstance(error, (col.InvalidArgument, col.Unavailable))  # which leave a group as it was
        except Exception as error:
            verdict, text, usable = FAIL, f"{type(error).__name__}: {error}", False
        if verdict != PASS:
            say(finding(group.rank, index, verdict, text, cause))
        if not usable:
            return False
    return True


def carry_out(rank, say, number, timeout, order):
    name = f"colcheck/{number}"
    try:
        group = col.init_collective_group(order["ranks"], rank, order["backend"], name, timeout=timeout)
    except Exception as error:
        say("end " + " ".join(str(error).split()))
        return
    usable = findings(group, order["cases"], say)
    try:
        col.destroy_collective_group(name)
    except col.Error as error:
        # If a case has failed, this error only follows from it.
        if usable:
            say(finding(rank, len(order["cases"]) - 1, FAIL, str(error), error))
    say("end")


def main():
    faulthandler.enable()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # colcheck gets it too, and ends the talk
    talk = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what others print

    def say(line):
        print(line, file=talk)

    has = f"Python {platform.python_version()}, numpy {np.__version__}"
    say(json.dumps({"has": has + (f", torch {torch.__version__}" if torch else ", no torch")}))
    first = sys.stdin.readline()
    if not first:
        return
    me = json.loads(first)
    col.init(**me)
    for line in sys.stdin:
        message = json.loads(line)
        carry_out(me["rank"], say, **message)
    col.finalize()


if __name__ == "__main__":
    main()
