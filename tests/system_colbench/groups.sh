#!/usr/bin/env bash
# Several groups at once, of unequal sizes; an operation that some of them refuse; ranks that are bound to cores.
. "$(dirname "$0")/lib.sh"

expect 0 "$COLBENCH" allreduce,allgather --size 4K --groups mod:2 -n 5 --launches 1 --max-time 50ms --check all --bound off
says "every row is verified"
expect 0 "$COLBENCH" bidirectional --size 4K --groups bisect -n 4 --launches 1 --max-time 50ms --bound off
says "every row is verified"
# With and without the tree's order, in the same launches; a backend's own collective has it by name.
expect 0 "$COLBENCH" allreduce,reduce,reduce_scatter --backend shm --size 4K --algo auto,shared --order both -n 3 --launches 1 --max-time 50ms \
  --check all --bound off
grep -qE "^reduce_scatter +shared +4092 tree " "$out" || fail "no row of shared in the tree's order"

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
# Ranks that launchers have bound: what counts is the cores of all of them together.
read -r -a cores <<<"$(python3 -c 'import os; print(*sorted(os.sched_getaffinity(0)))')"
bound_to() {  # bound_to CORE CORE: two ranks, one on each
  expect 0 env CORES="$1 $2" "$COLRUN" -n 2 bash -c 'read -r -a cores <<<"$CORES"
    exec taskset -c "${cores[$COL_LOCAL_RANK]}" "$0" barrier --max-time 50ms' "$COLBENCH"
}
bound_to "${cores[0]}" "${cores[0]}"
says "2 ranks on 1 core: they take turns"
if [ "${#cores[@]}" -ge 2 ]; then
  bound_to "${cores[0]}" "${cores[1]}"
  ! grep -q "take turns" "$out" || fail "two ranks on two cores are said to take turns"
else
  echo "not tested: two ranks that are bound to a core each, as there is one core"
fi
nothing_left
