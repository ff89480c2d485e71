#!/bin/bash
# Sixty-four ranks on few CPUs.
. "$(dirname "$0")/lib.sh"

expect_exit 0 "$COLRUN" -n 64 sh -c 'echo $RANK'
sort -n "$out" | cmp - <(seq 0 63) || fail "not each rank once"
nothing_left
