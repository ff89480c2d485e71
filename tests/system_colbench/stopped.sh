#!/usr/bin/env bash
# A rank that stops: the deadline of an operation ends the run, with exit code 3 and its name.
. "$(dirname "$0")/lib.sh"

COL_FAULT=stop:rank=1,op=300,step=0 expect 3 "$COLBENCH" allreduce --size 1K --launches 1 --bound off --timeout 1s \
  --json "$work/r.json"
says "ended early"
says "rank 1"
[ -s "$work/r.json" ] || fail "no JSON"
# What cannot be printed takes no file with it.
timeout 60 "$COLBENCH" allreduce --size 1K --launches 1 --max-time 50ms --bound off --json "$work/full.json" >/dev/full 2>"$err"
code=$?
[ "$code" = 2 ] || fail "exit code $code, not 2"
complains "cannot write to stdout: No space left on device"
[ -s "$work/full.json" ] || fail "no JSON beside a full disk"
nothing_left
