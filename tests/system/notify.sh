#!/bin/bash
# SIGUSR1 and SIGUSR2 reach each rank exactly once and end nothing.
. "$(dirname "$0")/lib.sh"

"$COLRUN" -n 2 bash -c 'trap "echo usr1" USR1; trap "echo usr2; exit 0" USR2; : >$0/ready.$RANK; await false' "$work" >"$out" 2>"$err" &
pid=$!
wait_until 10 "ranks ready" test -e "$work/ready.0" -a -e "$work/ready.1"
kill -USR1 $pid
count() { [ "$(grep -c "$1" "$out")" -eq 2 ]; }
wait_until 10 "SIGUSR1 at both" count usr1
kill -USR2 $pid
expect_status 0 $pid
count usr1 || fail "SIGUSR1 came more than once"
count usr2 || fail "SIGUSR2 did not come once to each"
nothing_left
