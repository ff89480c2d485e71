#!/bin/bash
# The last line before a crash is never lost.
. "$(dirname "$0")/lib.sh"

for attempt in $(seq 40); do
  expect_exit 139 "$COLRUN" -n 2 bash -c 'ulimit -c 0; echo "last $RANK"; [ $RANK = 1 ] && kill -SEGV $$; exec sleep 60'
  expect_in "$out" '^last 1$'
done
nothing_left
