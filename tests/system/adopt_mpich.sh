#!/bin/bash
# Ranks that MPICH's mpiexec (hydra) starts are one world, and hydra sees them leave in good order.
. "$(dirname "$0")/adopt_lib.sh"
need mpirun.mpich mpich

one_world 4 mpirun.mpich -n 4 "$HELLO"
one_world 1 mpirun.mpich -n 1 "$HELLO"
one_world 3 mpiexec.hydra -n 3 sh -c 'exec "$0"' "$HELLO"

# The launcher can be asked for the job's name once in each rank: a second program is told so, and what to do. When one fails, hydra
# ends both ranks: their first programs are through by then.
mkdir "$work/first"
timeout -k 1 30 mpirun.mpich -n 2 bash -c '"$0" && : >"$1/$$" && await files "$1" 2 && "$0"' "$HELLO" "$work/first" >"$out" 2>"$err" &&
  fail "a second program in a rank works"
expect_in "$out" 'rank 1 of 2: the sum is 3'
expect_in "$err" 'unavailable: PMI_FD=[0-9]+: the launcher has closed it.*set COL_STORE'
export COL_STORE=file://$work/store
expect_exit 0 mpirun.mpich -n 2 sh -c '"$0" && "$0"' "$HELLO"
[ "$(grep -c 'of 2: the sum is 3' "$out")" -eq 4 ] || fail "with COL_STORE, two programs in a rank do not work"
unset COL_STORE

# hydra kills the survivors of a crash, perhaps before they can tidy up; the next job does, once they are gone.
COL_FAULT=kill:rank=1,op=1,step=0 timeout -k 1 30 mpirun.mpich -n 3 "$HELLO" >"$out" 2>"$err" && fail "a crash is exit code 0"
no_hello() {
  local pid
  for pid in $(tagged); do [ "$(cat "/proc/$pid/comm" 2>/dev/null)" != hello ] || return 1; done
}
wait_until 10 "the end of the survivors" no_hello
one_world 2 mpirun.mpich -n 2 "$HELLO"
