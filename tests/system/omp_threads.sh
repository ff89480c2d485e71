#!/bin/bash
# OMP_NUM_THREADS is set when unset, and said once for a job of several ranks.
. "$(dirname "$0")/lib.sh"

unset OMP_NUM_THREADS
expect_exit 0 taskset -c 0 "$COLRUN" -n 3 sh -c 'echo $OMP_NUM_THREADS'
[ "$(sort -u "$out")" = 1 ] || fail "not one thread for each rank on one CPU"
expect_in "$err" 'OMP_NUM_THREADS was unset'
expect_lines "$err" 1
expect_exit 0 "$COLRUN" -n 1 true
[ ! -s "$err" ] || fail "said for a single rank"
OMP_NUM_THREADS=5 expect_exit 0 "$COLRUN" -n 2 sh -c 'echo $OMP_NUM_THREADS'
[ "$(sort -u "$out")" = 5 ] || fail "a value that was set is changed"
[ ! -s "$err" ] || fail "said though it was set"
