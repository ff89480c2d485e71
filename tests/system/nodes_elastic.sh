#!/bin/bash
# --nnodes MIN:MAX: a node that comes later or leaves restarts the ranks, and the job goes on with the world it has.
. "$(dirname "$0")/nodes_lib.sh"
make_hosts 2

# What a trainer is here: it says which world it is in, and ends well or fails when told to.
write_program "$work/trainer" <<'SCRIPT'
echo "restart $COL_RESTART_COUNT rank $RANK of $WORLD_SIZE node $GROUP_RANK of $GROUP_WORLD_SIZE" >>"$0.log"
told() { [ -e "$0.end" ] || { [ "$RANK" = 0 ] && [ -e "$0.fail" ]; }; }
await told
[ ! -e "$0.fail" ] || [ "$RANK" != 0 ] || { rm "$0.fail"; exit 3; }
SCRIPT
log=$work/trainer.log
: >"$log"
start_elastic() {
  start_node "$1" --nnodes 1:2 --max-restarts 3 --rdzv-id elastic --rdzv-endpoint n1:29400 -n 2 "$work/trainer"
}
# world_of SIZE: the last generation of the log is a world of that size, and complete.
world_of() {
  local size=$1 last
  last=$(tail -n 1 "$log" | cut -d' ' -f1,2)
  [ -n "$last" ] && [ "$(grep "^$last " "$log" | sed 's/.*rank \([0-9]* of [0-9]*\) node.*/\1/' | sort -n)" = \
    "$(for ((rank = 0; rank < size; ++rank)); do echo "$rank of $size"; done)" ]
}
generation() { tail -n 1 "$log" | cut -d' ' -f2; }

start_elastic n1
wait_until 40 "a world of two ranks" world_of 2
first=$(generation)
[ "$first" = 0 ] || fail "the first generation is $first"
start_elastic n2
wait_until 30 "a world of four ranks" world_of 4
[ "$(generation)" -gt "$first" ] || fail "no new generation when a node came"

# A rank that fails: the same nodes, once more.
before=$(generation)
: >"$work/trainer.fail"
next_generation() { [ "$(generation)" -gt "$before" ] && world_of 4; }
wait_until 20 "a new generation after a failure" next_generation

# The second node goes without a word.
kill -KILL "${node_inner[n2]}"
expect_node 137 n2
wait_until 30 "a world of two ranks again" world_of 2
wait_until 5 "nothing on n2" eval '[ -z "$(processes_on n2)" ]'
expect_in "$work/n1.err" '^colrun: .*n2'

: >"$work/trainer.end"
expect_node 0 n1 15
nothing_left_soon

# Ranks of the old generation are gone before those of the new one begin: each world is seen once, whole.
sort "$log" | uniq -d | grep . >&2 && fail "a rank was started twice in a generation"

# Failures are counted, and one too many ends the job with the rank's code.
rm -f "$work/trainer.end"
: >"$log"
for number in 1 2; do
  start_node n$number --nnodes 2 --max-restarts 1 --rdzv-endpoint n1:29400 -n 1 \
    bash -c 'echo $COL_RESTART_COUNT $RANK >>$0; [ $RANK = 1 ] || exec sleep 60
      await grep -q "^$COL_RESTART_COUNT 0$" $0; exit 4' "$log"
done
expect_node 4 n1 20
expect_node 4 n2 20
sort "$log" | diff <(printf '%s\n' '0 0' '0 1' '1 0' '1 1') - >&2 ||
  fail "not two generations (above: < expected, > seen)"
nothing_left
