#!/bin/bash
# --exit-timeout: a rank that goes on for too long after another has ended well is ended and named, with 124.
. "$(dirname "$0")/lib.sh"

expect_soon 3000 expect_exit 124 "$COLRUN" -n 2 --exit-timeout 2 sh -c '[ $RANK = 0 ] || exec sleep 60'
expect_in "$err" '^colrun: rank 1 did not end within 2\.0 s after another rank had ended well \(--exit-timeout\)$'
expect_in "$err" '^colrun: ended 1 rank \(rank 1\)$'
nothing_left
# It may ignore SIGTERM.
expect_faster 10000 expect_exit 124 "$COLRUN" -n 3 --exit-timeout 300ms --grace 300ms bash -c '[ $RANK = 0 ] && exit 0; trap "" TERM; while :; do sleep 0.02; done'
expect_in "$err" '^colrun: ranks 1-2 did not end within'
expect_in "$err" 'ranks 1-2 did not end when told to and had to be killed'
# No time runs before the first has ended, nor when the others follow, nor without the option.
expect_exit 0 "$COLRUN" -n 2 --exit-timeout 200ms sleep 0.6
expect_exit 0 "$COLRUN" -n 2 --exit-timeout 20 sh -c '[ $RANK = 0 ] || sleep 0.3'
expect_exit 0 "$COLRUN" -n 2 sh -c '[ $RANK = 0 ] || sleep 0.6'
[ ! -s "$err" ] || fail "said something of a job that is well"
# A failure is not an end that starts the time.
expect_exit 6 "$COLRUN" -n 2 --keep-going --exit-timeout 200ms sh -c '[ $RANK = 0 ] && exit 6; sleep 0.8'
nothing_left
