#!/bin/bash
# A SIGTERM handler ends in its own time, which is --term-grace, not --grace; colrun dies of SIGTERM.
. "$(dirname "$0")/lib.sh"

# It goes on until colrun does what is due long after a --grace.
"$COLRUN" -n 2 --grace 100ms --inject stop:1@1s+300ms bash -c 'trap "await grep -q \"injected SIGCONT\" \"\$0/err\"; echo saved; exit 0" TERM
  : >"$0/ready.$RANK"; await false' "$work" >"$out" 2>"$err" &
pid=$!
wait_until 10 "ranks ready" test -e "$work/ready.0" -a -e "$work/ready.1"
kill -TERM $pid
expect_status 143 $pid
[ "$(grep -c '^saved$' "$out")" -eq 2 ] || fail "a handler was cut short"
nothing_left
