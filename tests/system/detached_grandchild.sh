#!/bin/bash
# What ranks leave running is gone when colrun returns, after a good end and after a failure.
. "$(dirname "$0")/lib.sh"

for code in 0 5; do
  rm -f "$work/pids"
  expect_exit $code "$COLRUN" -n 2 bash -c '
    setsid sleep 300 >/dev/null 2>&1 </dev/null & echo $! >>"$0/pids"
    env -i setsid sleep 301 >/dev/null 2>&1 </dev/null & echo $! >>"$0/pids"
    exit $1' "$work" $code
  # shellcheck disable=SC2046
  all_gone $(cat "$work/pids") || fail "a grandchild outlived colrun"
  nothing_left
done
