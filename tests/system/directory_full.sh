#!/bin/bash
# No room for the job directory: 125 and one line that says what to set, nothing left.
. "$(dirname "$0")/lib.sh"

# A file system of the test's own, in a mount namespace; where that is not allowed there is nothing to test.
unshare -rm true 2>/dev/null || exit 77
try() { # WHAT MOUNT_OPTIONS
  expect_exit 0 unshare -rm bash -c '
    mount -t tmpfs -o "$2" tmpfs "$TMPDIR" || exit 77
    dd if=/dev/zero of="$TMPDIR/filler" bs=1k 2>/dev/null
    files=$(ls "$TMPDIR")
    "$0" -n 2 touch "$1/started"
    code=$?
    [ "$(ls "$TMPDIR")" = "$files" ] || { echo "left: $(ls "$TMPDIR")" >&2; exit 1; }
    [ $code -eq 125 ] || { echo "exit code $code" >&2; exit 1; }' "$COLRUN" "$work" "$2"
  [ ! -e "$work/started" ] || fail "a rank was started"
  expect_lines "$err" 1
  expect_in "$err" "^colrun: cannot $1 .*No space left on device.*; set TMPDIR to a directory with space"
  expect_not_in "$err" COL_CONTROL
}
try 'allocate control page' size=64k
# The root and the filler take the first two; the directory, its store and its page one each.
try 'create the job directory' size=64k,nr_inodes=2
try 'create the job directory .*store:' size=64k,nr_inodes=3
try 'create control page' size=64k,nr_inodes=4
nothing_left
