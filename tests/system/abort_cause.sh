#!/bin/bash
# Ranks that use col read in the control page which rank failed, how, and where to look.
. "$(dirname "$0")/lib.sh"

try() { # EXIT_CODE HOW COMMAND…
  local code=$1 how=$2
  shift 2
  rm -f "$work/joined"
  # Rank 0 has time to say it: it does not care about SIGTERM.
  expect_exit "$code" "$COLRUN" -n 2 --grace 60s bash -c '
    [ $RANK = 0 ] && { trap "" TERM; exec "$0" cause "$1/joined"; }
    await test -s "$1/joined"
    shift; ulimit -c 0; "$@"' "$CONTROL_PAGE" "$work" "$@"
  expect_in "$out" "^peer_lost: rank 1 $how; its own output says why\$"
}
try 7 'exited with code 7' eval 'exit 7'
try 139 'was killed by SIGSEGV' eval 'kill -SEGV $$'
nothing_left
