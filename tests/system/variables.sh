#!/bin/bash
# What libcol says about variables: one that is misspelt, and a backend that there is not.
. "$(dirname "$0")/lib.sh"

# Once per job, and not by every rank.
expect_exit 0 env COL_TIMEOT=5 "$COLRUN" -n 3 "$HELLO"
[ "$(grep -c 'COL_TIMEOT is set, but nothing reads it; did you mean COL_TIMEOUT?' "$err")" -eq 1 ] || fail "not said once"
expect_exit 134 env COL_BACKEND=glo "$COLRUN" -n 1 "$HELLO"
expect_in "$err" 'COL_BACKEND=glo is no backend; use one of automatic, '
nothing_left
