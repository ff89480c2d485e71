#!/bin/bash
# A SIGTERM handler that needs three seconds ends in its own time; colrun dies of SIGTERM.
. "$(dirname "$0")/lib.sh"

"$COLRUN" -n 2 bash -c 'trap "sleep 3; echo saved; exit 0" TERM; : >$0/ready.$RANK; while :; do sleep 0.05; done' "$work" >"$out" 2>"$err" &
pid=$!
wait_until 10 "ranks ready" test -e "$work/ready.0" -a -e "$work/ready.1"
kill -TERM $pid
expect_status 143 $pid
[ "$(grep -c '^saved$' "$out")" -eq 2 ] || fail "a handler was cut short"
nothing_left
