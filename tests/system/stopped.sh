#!/bin/bash
# ^Z stops colrun and the ranks; continued, all go on.
. "$(dirname "$0")/lib.sh"

state() { sed 's/.*) \(.\).*/\1/' "/proc/$1/stat" 2>/dev/null; }
all_stopped() {
  local pid
  for pid in "$@"; do [ "$(state "$pid")" = T ] || return 1; done
}
job='sleep 300 & echo $! >"$0/helper.$RANK"; say_pid "$0/ready.$RANK"
  await test -e "$0/go"; echo done'
start() { # [COMMAND]
  rm -f "$work"/ready.* "$work/go"
  "$@" "$COLRUN" -n 2 bash -c "$job" "$work" >"$out" 2>"$err" </dev/null &
  pid=$!
  wait_until 10 "ranks ready" test -e "$work/ready.0" -a -e "$work/ready.1"
}

set -m # colrun gets a process group of its own, as at a prompt
start env
set +m
ranks="$(cat "$work"/ready.*) $(cat "$work"/helper.*)"
kill -TSTP $pid
# shellcheck disable=SC2086
wait_until 10 "all stopped" all_stopped $pid $ranks
: >"$work/go"
kill -CONT $pid
expect_status 0 $pid
expect_lines "$out" 2
nothing_left

# A stopped job can be killed, and interrupted once it is continued.
set -m
start env
set +m
kill -TSTP $pid
# shellcheck disable=SC2046
wait_until 10 "all stopped" all_stopped $pid $(cat "$work"/ready.*)
kill -TERM $pid
kill -CONT $pid
expect_status 143 $pid
nothing_left
set -m
start env
set +m
kill -TSTP $pid
# shellcheck disable=SC2046
wait_until 10 "all stopped" all_stopped $pid $(cat "$work"/ready.*)
kill -KILL $pid
wait $pid 2>/dev/null
nothing_left_soon

# Where no shell could continue it, it does not stop, and the ranks see no signal: stopped and continued at once, a rank
# that was just about to fork left a child that stayed stopped.
job="trap 'echo continued' CONT; trap ': >\"\$0/noticed.\$RANK\"' WINCH; $job"
start setsid
kill -TSTP $pid
kill -WINCH $pid # passed on behind it
wait_until 10 "SIGWINCH passed on" test -e "$work/noticed.0" -a -e "$work/noticed.1"
: >"$work/go"
expect_status 0 $pid
expect_lines "$out" 2
expect_not_in "$out" continued
nothing_left
