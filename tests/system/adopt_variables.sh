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

# Ranks that were told different world sizes, and a rank that was started twice: nobody waits for all of the time.
refused() {
  local code=$1 count=$2 words=$3 began=$SECONDS
  shift 3
  PLACES="$*" expect_exit "$code" "$each" "$launcher" 2 "$HELLO"
  expect_not_in "$err" 'timeout:'
  expect_in "$err" "$words"
  [ "$(grep -c 'what():' "$err")" = "$count" ] || fail "not $count ranks were told so"
  [ $((SECONDS - began)) -lt 20 ] || fail "they have waited for all of the time"
}
for launcher in torchrun nameless; do
  refused 134 2 'mismatch: .*ranks disagree on the world size: rank [01] says [23], and rank [01] says [23]' 0:2 1:3
  refused 134 3 'mismatch: .*world size: .*ranks 1, 2 say 3' 0:2 1:3 2:3
  refused 134 3 'already_initialized: .*rank 1 was started twice: processes [0-9]+ and [0-9]+' 0:3 1:3 1:3
done
one_world 2 "$each" torchrun 2 "$HELLO"  # which removes what those have left

# Pods share nothing but what they are given.
expect_exit 134 "$each" kubernetes 2 "$HELLO"
expect_in "$err" 'unavailable: .*set COL_RDZV_ENDPOINT=host:port'
export COL_STORE=file://$work/store
expect_exit 0 "$each" kubernetes 3 "$HELLO"
expect_in "$out" 'rank 2 of 3: the sum is 6'
nothing_left
