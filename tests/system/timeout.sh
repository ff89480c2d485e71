#!/bin/bash
# A job that is over its --timeout is ended, with 124, and what it had started is gone.
. "$(dirname "$0")/lib.sh"

# A machine under load may not start all ranks in time, here and below: then they get more of it.
for time in 1 20; do
  expect_exit 124 "$COLRUN" -n 3 --timeout $time sh -c 'sleep 301 & echo $! >>"$0/pids"; setsid sleep 302 & echo $! >>"$0/pids"; exec sleep 300' "$work"
  [ -e "$work/pids" ] && [ "$(wc -l <"$work/pids")" -ge 6 ] && grep -q '^colrun: ended 3 ranks' "$err" && break
done
expect_in "$err" "^colrun: the job did not end within $time\\.0 s \\(--timeout\\)\$"
expect_in "$err" '^colrun: ended 3 ranks \(ranks 0-2\)$'
expect_lines "$err" 2
# shellcheck disable=SC2046
all_gone $(cat "$work/pids") || fail "a grandchild outlived colrun"
nothing_left

# All spellings of a time. A job that ends sooner is not touched.
for time in 200ms 0.2 0.2s 0.004m; do
  expect_exit 124 "$COLRUN" -n 1 --timeout "$time" sleep 300
done
expect_exit 0 "$COLRUN" -n 2 --timeout 1h true
expect_exit 5 "$COLRUN" -n 2 --timeout 20 sh -c 'exit 5'
# Ranks may end as they like when their time is up: with 0, or when killed.
for time in 300ms 3s 20s; do
  expect_exit 124 "$COLRUN" -n 2 --timeout $time --grace 200ms bash -c '[ $RANK = 0 ] && trap "exit 0" TERM || trap "" TERM; await false'
  grep -q 'had to be killed' "$err" && break
done
expect_in "$err" 'rank 1 did not end when told to and had to be killed'
for time in 0 x -1 5d 1e3 ''; do
  expect_exit 2 "$COLRUN" -n 1 --timeout "$time" touch "$work/started"
  expect_lines "$err" 1
done
[ ! -e "$work/started" ] || fail "started in spite of a time that is none"
nothing_left
