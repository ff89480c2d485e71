#!/bin/bash
# --exit-timeout: a rank that goes on for too long after another has ended well is ended and named, with 124.
. "$(dirname "$0")/lib.sh"

expect_exit 124 "$COLRUN" -n 2 --exit-timeout 2 sh -c '[ $RANK = 0 ] || exec sleep 60'
expect_in "$err" '^colrun: rank 1 did not end within 2\.0 s after another rank had ended well \(--exit-timeout\)$'
expect_in "$err" '^colrun: ended 1 rank \(rank 1\)$'
nothing_left
# It may ignore SIGTERM.
expect_exit 124 "$COLRUN" -n 3 --exit-timeout 300ms --grace 300ms bash -c '[ $RANK = 0 ] && exit 0; trap "" TERM; await false'
expect_in "$err" '^colrun: ranks 1-2 did not end within'
expect_in "$err" 'ranks 1-2 did not end when told to and had to be killed'
# Nothing is said of a rank that ends in time after the others.
rank_0_ends='[ $RANK != 0 ] || { say_pid "$0/first"; exit "${2:-0}"; }; await ended "$0/first"'
expect_exit 0 "$COLRUN" -n 2 --exit-timeout 20 bash -c "$rank_0_ends" "$work"
[ ! -s "$err" ] || fail "said something of a job that is well"
# No time runs before the first has ended, nor without the option; and a failure is not an end that starts it. A rank goes on
# until colrun does what is due much later than that time.
outlives() { # CODE RANK COMMAND OPTIONS…
  local code=$1 rank=$2 job=$3
  shift 3
  rm -f "$work/first"
  expect_exit "$code" "$COLRUN" "$@" --inject "stop:$rank@600ms+1ms" bash -c "$job"'await grep -q "injected SIGCONT" "$1"' "$work" "$err" "$code"
  expect_in "$err" '^colrun: injected SIGCONT'
}
outlives 0 0 '' -n 1 --exit-timeout 200ms
outlives 0 1 "$rank_0_ends; " -n 2
outlives 6 1 "$rank_0_ends; " -n 2 --keep-going --exit-timeout 200ms
nothing_left
