#!/bin/bash
# --start-timeout: a job whose ranks cannot all be started in time is ended with 125, and what was started is gone.
. "$(dirname "$0")/lib.sh"

expect_faster 3000 expect_exit 125 "$COLRUN" -n 500 --start-timeout 1ms sh -c ': >"$0/$RANK.started"; exec sleep 60' "$work"
expect_lines "$err" 1
expect_in "$err" '^colrun: only [0-9]+ of 500 ranks were started within .* \(--start-timeout\)$'
nothing_left
# It is for the start alone.
expect_exit 0 "$COLRUN" -n 2 --start-timeout 10s sh -c 'sleep 0.2'
nothing_left
