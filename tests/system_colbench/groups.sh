#!/usr/bin/env bash
# Several groups at once, of unequal sizes; an operation that some of them refuse; ranks that are bound to cores.
. "$(dirname "$0")/lib.sh"

expect 0 "$COLBENCH" allreduce,allgather --size 4K --groups mod:2 -n 5 --launches 1 --max-time 50ms --check all --bound off
says "every row is verified"
expect 0 "$COLBENCH" bidirectional --size 4K --groups bisect -n 4 --launches 1 --max-time 50ms --bound off
says "every row is verified"
# Of 5 ranks in two groups, those in the group of 3 refuse; the others must not wait for them.
before=$SECONDS
expect 2 "$COLBENCH" allgather -n 5 --groups bisect --algo neighbor --size 4K --launches 1 --bound off
complains "even number"
[ $((SECONDS - before)) -lt 30 ] || fail "the others waited $((SECONDS - before)) s"
expect 2 "$COLBENCH" pingpong --groups mod:2 --size 8
complains "pairs or bisect"
expect 2 "$COLBENCH" allreduce --cache cold --cadence stream --size 8
complains "isolated"
expect 0 "$COLBENCH" allreduce -n 1 --allow-single --place in --size 64K --launches 1 --max-time 50ms
expect 0 "$COLBENCH" allreduce --size 1K --cache rotate --launches 1 --max-time 50ms
says "rotating buffers"
if [ "$(nproc)" -ge 2 ] && [ "$(nproc --all)" -ge 2 ]; then
  expect 0 "$COLRUN" -n 2 bash -c 'exec taskset -c "$COL_LOCAL_RANK" "$0" barrier --max-time 50ms' "$COLBENCH"
  ! grep -q "take turns" "$out" || fail "two ranks on two cores are said to take turns"
fi
nothing_left
