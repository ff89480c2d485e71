#!/bin/bash
# With --label every line begins with its rank, also when it is written in parts or has no end.
. "$(dirname "$0")/lib.sh"

expect_exit 0 "$COLRUN" --label -n 3 sh -c 'printf part; sleep 0.3; printf "ial\nsecond\n"; printf last'
expect_lines "$out" 9
for rank in 0 1 2; do
  [ "$(grep -n "^\[$rank\] " "$out" | cut -d: -f2- | paste -sd,)" = "[$rank] partial,[$rank] second,[$rank] last" ] ||
    fail "rank $rank's lines are not whole"
done
expect_exit 0 "$COLRUN" -l -n 2 sh -c 'echo error >&2'
sort "$err" | cmp - <(printf '[0] error\n[1] error\n') || fail "stderr is not labelled"
nothing_left
