#!/bin/bash
# stdout and stderr stay apart; joined by the user, their lines stay whole.
. "$(dirname "$0")/lib.sh"

expect_exit 0 "$COLRUN" -n 3 sh -c 'echo out; echo err >&2'
printf 'out\nout\nout\n' | cmp - "$out" || fail "stdout"
printf 'err\nerr\nerr\n' | cmp - "$err" || fail "stderr"
"$COLRUN" -n 4 awk 'BEGIN { for (i = 0; i < 3000; i++) { print "out line end"; print "err line end" >"/dev/stderr" } }' 2>&1 |
  sort | uniq -c | awk '{ print $1, $2 }' | paste -sd, >"$out"
[ "$(cat "$out")" = "12000 err,12000 out" ] || fail "lines are torn"
nothing_left
