#!/bin/bash
# No room for the job directory: 125 and one line, nothing left.
. "$(dirname "$0")/lib.sh"

# A file system of the test's own, in a mount namespace; where that is not allowed there is nothing to test.
unshare -rm true 2>/dev/null || exit 77
expect_exit 0 unshare -rm bash -c '
  mount -t tmpfs -o size=64k tmpfs "$TMPDIR" || exit 77
  dd if=/dev/zero of="$TMPDIR/filler" bs=1k 2>/dev/null
  "$0" -n 2 touch "$1/started"
  code=$?
  [ "$(ls "$TMPDIR")" = filler ] || { echo "left: $(ls "$TMPDIR")" >&2; exit 1; }
  [ $code -eq 125 ] || { echo "exit code $code" >&2; exit 1; }' "$COLRUN" "$work"
[ ! -e "$work/started" ] || fail "a rank was started"
expect_lines "$err" 1
expect_in "$err" '^colrun: .*(No space left|room)'
nothing_left
