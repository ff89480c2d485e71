#!/bin/bash
# The first failure is the exit code, not how the others end when told to.
. "$(dirname "$0")/lib.sh"

ready=$work/ready; mkdir "$ready"
expect_exit 1 "$COLRUN" -n 3 bash -c '
  if [ $RANK = 0 ]; then await files "$0" 2; exit 1; fi
  trap "exit 2" TERM; : >"$0/$RANK"; await false' "$ready"
expect_in "$err" 'rank 0 .* exited with code 1'
nothing_left
