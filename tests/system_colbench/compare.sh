#!/usr/bin/env bash
# Two runs are compared row by row; an operation that takes much longer is found, and fails where that is asked for.
. "$(dirname "$0")/lib.sh"

measure() {  # measure FILE OPTION…
  local file=$1
  shift
  expect 0 "$COLBENCH" allreduce --size 64K --max-time 300ms --launches 14 --bound off --json "$file" "$@"
}
# So many launches that even where they resemble each other (a machine that drifts) the difference is certain.
measure "$work/a.json"
measure "$work/b.json" --delay 3ms
expect 0 "$COLBENCH" compare "$work/a.json" "$work/b.json"
says "slower"
expect 4 "$COLBENCH" compare "$work/a.json" "$work/b.json" --fail-over 5%
expect 0 "$COLBENCH" compare "$work/b.json" "$work/a.json" --fail-over 5%
says "faster"
expect 0 "$COLBENCH" compare "$work/a.json" "$work/a.json" --fail-over 5%
says "undecided"
head -c 1000 "$work/a.json" >"$work/cut.json"
expect 2 "$COLBENCH" compare "$work/a.json" "$work/cut.json"
[ "$(wc -l <"$err")" = 1 ] || fail "more than a line"
expect 0 "$COLBENCH" noise allreduce --size 1K --launches 6 --max-time 100ms --bound off
says "launches"
# What checks all this on a quiet machine: here only that it comes to its end.
timeout 120 python3 "$(dirname "$0")/../../scripts/interval" --colbench "$COLBENCH" --runs 3 --operations allreduce --sizes 1K \
  --keep "$work/interval" -- --max-time 50ms >"$out" 2>"$err"
case $? in 0 | 1 | 77) ;; *) fail "scripts/interval ended with an error" ;; esac
says "intervals that hold the median of all runs"
says "compare with a run slowed by 15 %"
nothing_left
