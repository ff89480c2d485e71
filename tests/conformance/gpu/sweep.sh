#!/bin/bash
# The sweep of faults, several parts of it at once: a run with a fault mostly waits, for what has failed to end.
set -u
: "${GPU_SWEEP:?}"
parts=6
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for ((part = 1; part <= parts; part++)); do
  COL_SWEEP_PART=$part/$parts "$GPU_SWEEP" "$@" >"$work/$part" 2>&1 &
  pids[part]=$!
done
code=0
for ((part = 1; part <= parts; part++)); do
  wait "${pids[part]}"
  ended=$?
  echo "part $part of $parts: exit code $ended"
  cat "$work/$part"
  [ $ended = 0 ] || code=1
done
exit $code
