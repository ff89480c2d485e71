#!/bin/bash
# Ranks that ignore SIGTERM, and stopped ones, are gone soon after the grace of five seconds.
. "$(dirname "$0")/lib.sh"

"$COLRUN" -n 3 bash -c 'trap "" TERM; : >$0/ready.$RANK; [ $RANK = 2 ] && kill -STOP $$; while :; do sleep 0.05; done' "$work" 2>"$err" &
pid=$!
wait_until 10 "ranks ready" test -e "$work/ready.0" -a -e "$work/ready.1" -a -e "$work/ready.2"
kill -TERM $pid
expect_faster 15000 expect_status 143 $pid
expect_in "$err" 'ranks 0-2 did not end when told to and had to be killed'
nothing_left
