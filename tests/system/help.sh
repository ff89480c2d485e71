#!/bin/bash
# --version and --help print to stdout and fit a screen.
. "$(dirname "$0")/lib.sh"

expect_exit 0 "$COLRUN" --version
expect_in "$out" '^colrun [0-9]+\.[0-9]+\.[0-9]+$'
expect_exit 0 "$COLRUN" --help
for word in '-n,--np,--nproc-per-node' --standalone --label --help --version Examples: 'colrun -n 4'; do
  expect_in "$out" "$word"
done
expect_not_in "$out" '--nproc_per_node'
[ -z "$(cat -s "$out" | diff - "$out")" ] || fail "--help has several empty lines in a row"
[ "$(wc -l <"$out")" -le 30 ] || fail "--help is longer than a screen"
[ "$(wc -L <"$out")" -le 120 ] || fail "--help is wider than a screen"
# When nobody can get the text, that is said.
for option in --version --help; do
  expect_exit 125 sh -c '"$0" "$1" >/dev/full' "$COLRUN" $option
  expect_in "$err" '^colrun: cannot write to stdout: No space left on device; '
  expect_lines "$err" 1
  expect_exit 125 sh -c '"$0" "$1" >&-' "$COLRUN" $option
  expect_in "$err" '^colrun: cannot write to stdout: Bad file descriptor; '
  expect_lines "$err" 1
done
nothing_left
