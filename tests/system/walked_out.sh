#!/bin/bash
# A rank that returns 0 in the middle of a job of libcol is named when the others fail for want of it.
. "$(dirname "$0")/lib.sh"

named() {
  expect_exit 3 "$COLRUN" -n 4 sh -c '[ $RANK = 2 ] && exec "$0" leave; exec "$0" lose 2' "$CONTROL_PAGE"
  expect_in "$err" '^colrun: rank 2 exited with code 0 without col::finalize\(\) while others were waiting for it$'
  expect_in "$err" '^colrun: rank [013] \(.*\) exited with code 3 after'
  expect_in "$err" '^colrun: .*2 other ranks failed likewise \(ranks '
  expect_lines "$err" 3
}
again named

# Nobody waited for it, or somebody failed on his own: there is nothing to say about it.
expect_exit 0 "$COLRUN" -n 2 sh -c '[ $RANK = 1 ] && exec "$0" leave; exit 0' "$CONTROL_PAGE"
[ ! -s "$err" ] || fail "reported though all is well"
expect_exit 9 "$COLRUN" -n 2 sh -c '[ $RANK = 1 ] && exec "$0" leave; "$0" lose 1; rm "$COL_ERROR_FILE"; exit 9' "$CONTROL_PAGE"
expect_not_in "$err" 'finalize'
nothing_left
