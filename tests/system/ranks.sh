#!/bin/bash
# Each rank runs once and knows its number.
. "$(dirname "$0")/lib.sh"

expect_exit 0 "$COLRUN" -n 4 sh -c 'echo $RANK/$WORLD_SIZE $LOCAL_RANK $COL_RANK/$COL_WORLD_SIZE $COL_JOB_ID'
expect_lines "$out" 4
for rank in 0 1 2 3; do
  [ "$(grep -c "^$rank/4 $rank $rank/4 " "$out")" -eq 1 ] || fail "rank $rank is not there exactly once"
done
[ "$(cut -d' ' -f4 "$out" | sort -u | wc -l)" -eq 1 ] || fail "the ranks do not agree on the job id"
[ ! -s "$err" ] || fail "colrun has something to say about a job that is well"
nothing_left
