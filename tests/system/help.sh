#!/bin/bash
# --version and --help print to stdout and fit a screen.
. "$(dirname "$0")/lib.sh"

expect_exit 0 "$COLRUN" --version
expect_in "$out" '^colrun [0-9]+\.[0-9]+\.[0-9]+$'
expect_exit 0 "$COLRUN" --help
for word in '-n,--np,--nproc-per-node' --standalone --label --help --version Examples: 'colrun -n 4'; do
  expect_in "$out" "$word"
done
[ "$(wc -l <"$out")" -le 30 ] || fail "--help is longer than a screen"
[ "$(wc -L <"$out")" -le 120 ] || fail "--help is wider than a screen"
nothing_left
