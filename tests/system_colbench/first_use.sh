#!/usr/bin/env bash
# The first thing that a user tries: a verified row, in a pipe without a progress line, in little time.
. "$(dirname "$0")/lib.sh"

before=$SECONDS
expect 0 "$COLBENCH" allreduce --size 32M
[ $((SECONDS - before)) -lt 150 ] || fail "it took $((SECONDS - before)) s"
says "allreduce"
says "32M"
says "every row is verified"
says "%bound"
! grep -q $'\r' "$out" "$err" || fail "a progress line in a pipe"
[ "$(awk '{ print length }' "$out" | sort -n | tail -1)" -le 400 ] || fail "lines without end"
expect 0 "$COLBENCH" allreduce,barrier,sendrecv --sizes 8:32K:x64 --max-time 50ms --launches 2 --legend
says "pingpong"
says "bidirectional"
says "barrier"
says "2 launches"
says "no interval of the median"
expect 0 "$COLBENCH" all --size 4K --max-time 30ms --launches 1 -n 3 -q
[ ! -s "$err" ] || fail "-q is not quiet: $(cat "$err")"
for name in allreduce reduce broadcast allgather allgatherv reduce_scatter reduce_scatterv gather gatherv scatter scatterv \
            alltoall alltoallv scan exscan barrier pingpong; do
  grep -qE "^$name " "$out" || fail "no row for $name"
done
says "3 ranks on"
expect 0 "$COLBENCH" allreduce -b 8 -e 128 -f 4 -n 20 -w 1 -c 1
[ "$(grep -cE '^allreduce .* 20 ' "$out")" = 3 ] || fail "not three rows of 20 iterations"
expect 0 "$COLBENCH" --help
says "self-test"
nothing_left
