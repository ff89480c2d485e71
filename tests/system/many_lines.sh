#!/bin/bash
# Eight ranks print 20,000 lines each: every line whole, in order, none lost.
. "$(dirname "$0")/lib.sh"

expect_exit 0 "$COLRUN" -n 8 awk -v padding="$(printf 'x%.0s' {1..80})" 'BEGIN {
  for (i = 0; i < 20000; i++) print "r" ENVIRON["RANK"], i, padding, "end" }'
expect_lines "$out" 160000
awk 'NF != 4 || $4 != "end" || length($3) != 80 || next_line[$1]++ != $2 { bad++ } END { exit bad > 0 }' "$out" ||
  fail "a line is torn or out of order"
nothing_left
