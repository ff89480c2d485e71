#!/bin/bash
# Ranks that were given another launcher's variables are one world.
. "$(dirname "$0")/adopt_lib.sh"

for launcher in torchrun slurm openmpi nameless; do
  one_world 4 "$each" "$launcher" 4 "$HELLO"
  one_world 1 "$each" "$launcher" 1 "$HELLO"
done

# Again and again under one name, as a script would: no run takes an earlier one's directory for its own.
for ((run = 0; run < 10; ++run)); do one_world 3 "$each" torchrun 3 "$HELLO"; done

# Several at once, under different names and, as ports are used again, under the same.
runs=()
for ((run = 0; run < 4; ++run)); do
  PORT=$((29500 + run % 3)) timeout -k 1 30 "$each" torchrun 2 "$HELLO" >"$work/run.$run" 2>&1 &
  runs+=($!)
done
for run in "${runs[@]}"; do expect_status 0 "$run"; done
cat "$work"/run.* | sort | uniq -c >"$out"
expect_lines "$out" 2
expect_in "$out" '4 rank 1 of 2: the sum is 3'
nothing_left

# Pods share nothing but what they are given.
expect_exit 134 "$each" kubernetes 2 "$HELLO"
expect_in "$err" 'unavailable: .*set COL_RDZV_ENDPOINT=host:port'
export COL_STORE=file://$work/store
expect_exit 0 "$each" kubernetes 3 "$HELLO"
expect_in "$out" 'rank 2 of 3: the sum is 6'
nothing_left
