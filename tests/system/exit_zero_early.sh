#!/bin/bash
# A rank that returns 0 while others go on is no failure.
. "$(dirname "$0")/lib.sh"

expect_exit 0 "$COLRUN" -n 3 bash -c 'if [ $RANK = 1 ]; then say_pid "$0/first"; else await ended "$0/first"; fi; echo done $RANK' "$work"
expect_lines "$out" 3
[ ! -s "$err" ] || fail "reported as a failure"
nothing_left
