#!/bin/bash
# A program that is not there: 127, one line, at once, nothing started.
. "$(dirname "$0")/lib.sh"

for program in no-such-program ./no-such-program /no/such/program; do
  expect_exit 127 "$COLRUN" -n 4 "$program"
  expect_lines "$err" 1
  expect_in "$err" "^colrun: .*$program"
done
nothing_left
