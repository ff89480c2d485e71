#!/bin/bash
# One SIGINT runs every rank's own handler; colrun dies of SIGINT.
. "$(dirname "$0")/lib.sh"

"$COLRUN" -n 3 bash -c 'trap "echo interrupted; : >$0/int.$RANK; exit 0" INT; : >$0/ready.$RANK; await false' "$work" >"$out" 2>"$err" &
pid=$!
wait_until 10 "ranks ready" test -e "$work/ready.0" -a -e "$work/ready.1" -a -e "$work/ready.2"
kill -INT $pid
expect_status 130 $pid
expect_lines "$out" 3
for rank in 0 1 2; do [ -e "$work/int.$rank" ] || fail "rank $rank did not see SIGINT"; done
nothing_left
# Dead of the signal itself, which a shell's 130 cannot tell from an exit code.
"$COLRUN" -n 1 sh -c ': >$0/again; exec sleep 60' "$work" 2>"$err" &
pid=$!
wait_until 10 "rank ready" test -e "$work/again"
kill -INT $pid
wait -f $pid
nothing_left
