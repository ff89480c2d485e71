#!/bin/bash
# SIGKILL to colrun: ranks, detached grandchildren and files are gone within a second.
. "$(dirname "$0")/lib.sh"

once() {
  rm -f "$work"/ready.* "$work/pids"
  "$COLRUN" -n 3 bash -c '
    setsid sleep 300 & echo $! >>"$0/pids"
    (setsid sh -c "sleep 301 & echo \$! >>$0/pids") &
    env -i setsid sleep 302 & echo $! >>"$0/pids"
    trap "" TERM INT HUP; : >"$0/ready.$RANK"; while :; do sleep 0.05; done' "$work" >/dev/null 2>"$err" &
  pid=$!
  wait_until 10 "ranks ready" test -e "$work/ready.0" -a -e "$work/ready.1" -a -e "$work/ready.2"
  wait_until 10 "grandchildren" eval 'test "$(wc -l <"$work/pids")" -eq 9'
  killed=$(date +%s%N)
  kill -KILL $pid
  wait $pid 2>/dev/null
  # shellcheck disable=SC2046
  wait_until 10 "grandchildren gone" all_gone $(cat "$work/pids")
  nothing_left_soon
  took=$((($(date +%s%N) - killed) / 1000000))
  [ $took -lt $((1000 * ${COLTEST_SLACK:-1})) ]
}
for attempt in 1 2 3 4 5; do if once; then break; fi; done
[ $took -lt $((1000 * ${COLTEST_SLACK:-1})) ] || fail "took $took ms"
