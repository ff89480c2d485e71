#!/bin/bash
# A job directory that cannot be made: 125 and one line.
. "$(dirname "$0")/lib.sh"

try() { # MESSAGE
  expect_exit 125 "$COLRUN" -n 2 touch "$work/started"
  expect_lines "$err" 1
  expect_in "$err" "^colrun: cannot create the job directory $TMPDIR/col-.*: $1; set TMPDIR"
  [ ! -e "$work/started" ] || fail "a rank was started"
}
here=$TMPDIR
export TMPDIR=$here/missing
try 'No such file or directory'
touch "$here/file"
export TMPDIR=$here/file
try 'Not a directory'
rm "$here/file"
mkdir -m 555 "$here/locked"
if ! touch "$here/locked/x" 2>/dev/null; then # root may write anywhere
  export TMPDIR=$here/locked
  try 'Permission denied'
fi
rm -rf "$here/locked"
export TMPDIR=$here
nothing_left
