#!/bin/bash
# OMP_NUM_THREADS is set when unset. That is said once, for several ranks that leave processors over, and not with -q.
. "$(dirname "$0")/lib.sh"

unset OMP_NUM_THREADS
expect_exit 0 taskset -c "$(allowed_cpus | head -n 1)" "$COLRUN" -n 3 sh -c 'echo $OMP_NUM_THREADS'
[ "$(sort -u "$out")" = 1 ] || fail "not one thread for each rank on one CPU"
[ ! -s "$err" ] || fail "said though it is what everybody expects"
# A machine with three processors, whatever this one has.
cat >"$work/three.c" <<'C'
#define _GNU_SOURCE
#include <sched.h>
int sched_getaffinity(pid_t pid, size_t bytes, cpu_set_t* set) {
  (void)pid;
  CPU_ZERO_S(bytes, set);
  for (int i = 0; i < 3; ++i) CPU_SET_S(i, bytes, set);
  return 0;
}
C
cc -shared -fPIC -o "$work/three.so" "$work/three.c" || fail "cannot compile"
if ! has_cpu_quota; then  # which counts as fewer
  LD_PRELOAD=$work/three.so expect_exit 0 "$COLRUN" --bind-to none -n 2 true
  expect_in "$err" 'OMP_NUM_THREADS was unset; it is 1 in each of the 2 ranks, and 1 of 3 processors are left over'
  expect_lines "$err" 1
fi
LD_PRELOAD=$work/three.so expect_exit 0 "$COLRUN" --bind-to none -q -n 2 true
[ ! -s "$err" ] || fail "said in spite of -q"
LD_PRELOAD=$work/three.so expect_exit 0 "$COLRUN" --bind-to none -n 3 true
[ ! -s "$err" ] || fail "said though nothing is left over"
expect_exit 0 "$COLRUN" -n 1 true
[ ! -s "$err" ] || fail "said for a single rank"
OMP_NUM_THREADS=5 expect_exit 0 "$COLRUN" -n 2 sh -c 'echo $OMP_NUM_THREADS'
[ "$(sort -u "$out")" = 5 ] || fail "a value that was set is changed"
[ ! -s "$err" ] || fail "said though it was set"
