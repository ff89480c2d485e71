#!/bin/bash
# Without memory that has no name, and /dev/shm small, full or roomy: an error or success, never SIGBUS.
. "$(dirname "$0")/lib.sh"

expect_exit 0 "$COLCHECK" --faults --only shm_full --backend shm --np 4 --seed 1 --no-progress
expect_in "$out" '^shm_full .*holds'
if ! grep -q ' 0 skipped' "$out"; then
  echo "not all cases can be tried here: $(tail -n 1 "$out")"
  exit 77
fi
nothing_left
