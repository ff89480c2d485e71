#!/bin/bash
# --version, --help and --help-all print to stdout; --help fits a screen.
. "$(dirname "$0")/lib.sh"

expect_exit 0 "$COLRUN" --version
expect_in "$out" '^colrun [0-9]+\.[0-9]+\.[0-9]+$'
expect_exit 0 "$COLRUN" --help
for word in '-n,--np,--nproc-per-node' --label --help-all Examples: 'colrun -n 4'; do
  expect_in "$out" "$word"
done
expect_not_in "$out" '--(nproc_per_node|agent|rdzv-backend|version)'
[ "$(wc -l <"$out")" -le 24 ] || fail "--help is longer than a screen"
expect_exit 0 "$COLRUN" --help-all
for word in --version --standalone --rdzv-backend --inject COLRUN_CONFIG; do expect_in "$out" "$word"; done
expect_not_in "$out" '--agent'
for option in --help --help-all; do
  expect_exit 0 "$COLRUN" $option
  [ -z "$(cat -s "$out" | diff - "$out")" ] || fail "$option has several empty lines in a row"
  [ "$(wc -L <"$out")" -le 80 ] || fail "$option is wider than a screen"
done
# When nobody can get the text, that is said.
for option in --version --help --help-all; do
  expect_exit 125 sh -c '"$0" "$1" >/dev/full' "$COLRUN" $option
  expect_in "$err" '^colrun: cannot write to stdout: No space left on device; '
  expect_lines "$err" 1
  expect_exit 125 sh -c '"$0" "$1" >&-' "$COLRUN" $option
  expect_in "$err" '^colrun: cannot write to stdout: Bad file descriptor; '
  expect_lines "$err" 1
done
nothing_left
