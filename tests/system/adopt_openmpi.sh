#!/bin/bash
# Ranks that Open MPI's mpirun starts are one world.
. "$(dirname "$0")/adopt_lib.sh"
need mpirun.openmpi openmpi-bin

ranks() {
  local ranks=$1
  shift
  one_world "$ranks" mpirun.openmpi --allow-run-as-root --oversubscribe -n "$ranks" "$@"
}
ranks 4 "$HELLO"
ranks 1 "$HELLO"
ranks 3 sh -c 'exec "$0"' "$HELLO"

# mpirun may kill the survivors of a crash before they can tidy up; the next job does.
COL_FAULT=kill:rank=1,op=1,step=0 expect_exit 137 mpirun.openmpi --allow-run-as-root --oversubscribe -n 3 "$HELLO"
ranks 2 "$HELLO"
