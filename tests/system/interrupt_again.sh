#!/bin/bash
# Ranks that ignore SIGINT get SIGTERM at the second, SIGKILL at the third.
. "$(dirname "$0")/lib.sh"

"$COLRUN" -n 2 --grace 60s bash -c 'trap ": >>$0/int.$RANK" INT; trap ": >>$0/term.$RANK" TERM; : >$0/ready.$RANK; await false' "$work" 2>"$err" &
pid=$!
both() { test -e "$work/$1.0" -a -e "$work/$1.1"; }
wait_until 10 "ranks ready" both ready
kill -INT $pid
wait_until 10 "SIGINT at both" both int
kill -INT $pid
wait_until 30 "SIGTERM at both" both term
kill -INT $pid
expect_status 130 $pid
expect_in "$err" 'ranks 0-1 did not end when told to and had to be killed'
nothing_left
