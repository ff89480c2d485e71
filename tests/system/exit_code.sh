#!/bin/bash
# The exit code of the rank that fails is that of the job, at once.
. "$(dirname "$0")/lib.sh"

ready=$work/ready
mkdir "$ready"
expect_exit 7 "$COLRUN" -n 4 bash -c '
  if [ $RANK = 2 ]; then await files "$0" 3; exit 7; fi
  : >"$0/$RANK"; exec sleep 60' "$ready"
expect_in "$err" '^colrun: rank 2 \(pid [0-9]+, host .+\) exited with code 7 after [0-9.]+ s$'
expect_in "$err" '^colrun: ended 3 other ranks \(ranks 0-1, 3\)$'
expect_lines "$err" 2
nothing_left
