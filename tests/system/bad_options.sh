#!/bin/bash
# A bad command line: exit 2, one line that says what to do, nothing started.
. "$(dirname "$0")/lib.sh"

touch_file=$work/started
try() { # EXPECTED OPTIONS…
  local expected=$1
  shift
  expect_faster 1000 expect_exit 2 "$COLRUN" "$@" touch "$touch_file"
  expect_lines "$err" 1
  expect_in "$err" "^colrun: .*$expected.*; see colrun --help\$"
  [ ! -s "$out" ] || fail "something on stdout"
  [ ! -e "$touch_file" ] || fail "a rank was started"
}
for value in 0 x -1 4097 99999999999999999999 1.5 4x ''; do
  try "from 1 to 4096, not '$value'" -n "$value"
  try "from 1 to 4096, not '$value'" -np "$value"
done
try "unknown option '--bogus'" --bogus
try "unknown option '-q'" -q -n 2
try '--standalone takes no value' --standalone=no
try '--label takes no value' --label=3
try '-l takes no value' -l=3
try '--help takes no value' --help=3
try '--np needs a value' --np=
try '-n was given twice; give it once' -n 2 -n 3
try '-n was given twice; give it once' -n2 --np 3
for words in '-n 2' '--label' '--' ''; do
  # shellcheck disable=SC2086
  expect_exit 2 "$COLRUN" $words
  expect_in "$err" '^colrun: no program to run'
done
expect_exit 2 "$COLRUN" -n
expect_in "$err" '^colrun: -n needs a value'
nothing_left
