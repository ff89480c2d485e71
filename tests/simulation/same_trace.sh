#!/bin/bash
# same_trace.sh PROGRAM COUNT: a seed is a run. Two processes, each with addresses of its own, write the same trace of a
# seed, byte by byte; and so does a process that has simulated other jobs before.
set -euo pipefail
program=$1
count=$2
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

for ((seed = 1; seed <= count; seed++)); do
  for run in a b; do
    "$program" --seed "$seed" --trace "$dir/$run" >"$dir/said.$run" || { cat "$dir/said.$run"; exit 1; }
  done
  cmp "$dir/a" "$dir/b"
  [ -s "$dir/a" ] || { echo "seed $seed has no trace" >&2; exit 1; }
done
"$program" --seeds 1 "$count" --hashes | grep '^hash' >"$dir/batch"
for ((seed = 1; seed <= count; seed++)); do
  "$program" --seeds "$seed" 1 --hashes | grep '^hash'
done | cmp - "$dir/batch"
[ "$(cut -d' ' -f3 "$dir/batch" | sort -u | wc -l)" -eq "$count" ] || { echo "two seeds with one trace" >&2; exit 1; }
