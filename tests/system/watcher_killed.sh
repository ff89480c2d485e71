#!/bin/bash
# SIGKILL to the watcher: colrun itself ends ranks and detached grandchildren, and removes the files.
. "$(dirname "$0")/lib.sh"

"$COLRUN" -n 3 bash -c '
  setsid sleep 300 & echo $! >>"$0/pids"
  (setsid sh -c "sleep 301 & echo \$! >>$0/pids") &
  env -i setsid sleep 302 & echo $! >>"$0/pids"
  trap "" TERM INT HUP; : >"$0/ready.$RANK"; await false' "$work" >/dev/null 2>"$err" &
pid=$!
wait_until 10 "ranks ready" test -e "$work/ready.0" -a -e "$work/ready.1" -a -e "$work/ready.2"
wait_until 10 "grandchildren" eval 'test "$(wc -l <"$work/pids")" -eq 9'
kill -KILL "$(watcher_of $pid)"
expect_status 125 $pid
expect_in "$err" "^colrun: the job.s watcher process .* was killed by SIGKILL"
nothing_left
# shellcheck disable=SC2046
wait_until 10 "grandchildren gone" all_gone $(cat "$work/pids")
nothing_left_soon
