#!/bin/bash
# --inject: a rank is killed, stopped for a while, or slowed down, and it is said.
. "$(dirname "$0")/lib.sh"

state() { sed 's/.*) \(.\).*/\1/' "/proc/$1/stat" 2>/dev/null; }
expect_exit 137 "$COLRUN" -n 3 --inject kill:1@200ms sh -c 'sleep 300 & exec sleep 301'
expect_in "$err" '^colrun: injected SIGKILL into rank 1$'
expect_in "$err" '^colrun: rank 1 \(.*\) was killed by SIGKILL after 0\.[2-9] s$'
expect_in "$err" '^colrun: ended 2 other ranks \(ranks 0, 2\)$'
nothing_left

# Stopped, with what it has started, and going on later.
"$COLRUN" -n 2 --inject stop:1@100ms+1s bash -c 'sleep 300 & echo $! >"$0/helper.$RANK"; say_pid "$0/pid.$RANK"
  await test -e "$0/go"; echo done $RANK' "$work" >"$out" 2>"$err" &
pid=$!
wait_until 10 "ranks ready" test -e "$work/pid.0" -a -e "$work/pid.1"
stopped() { [ "$(state "$(cat "$work/pid.1")")$(state "$(cat "$work/helper.1")")" = TT ]; }
wait_until 10 "rank 1 stopped" stopped
[ "$(state "$(cat "$work/pid.0")")" != T ] || fail "rank 0 was stopped, too"
: >"$work/go"
wait_until 10 "rank 0 done" grep -q 'done 0' "$out"
expect_status 0 $pid
expect_lines "$out" 2
expect_in "$err" '^colrun: injected SIGSTOP into rank 1$'
expect_in "$err" '^colrun: injected SIGCONT into rank 1$'
nothing_left
# All that is said shows at once, also where nothing else happens any more.
"$COLRUN" -n 1 --inject stop:0@50ms+1ms sleep 60 2>"$err" &
pid=$!
wait_until 10 "the last word" grep -q '^colrun: injected SIGCONT into rank 0$' "$err"
kill -TERM $pid
expect_status 143 $pid
# A rank that is stopped for good is ended when the job is.
expect_exit 124 "$COLRUN" -n 2 --timeout 500ms --inject stop:0 sleep 60
expect_exit 137 "$COLRUN" -n 4 --inject stop:0@0s --inject stop:2@10ms --inject kill:3@400ms sleep 60
nothing_left

# Slow: a quarter of the processor time of its twin, in the same time. Told once, not at every step.
"$COLRUN" -n 2 --inject slow:1x4 taskset -c "$(taskset -cp $$ | sed 's/.*[ ,-]//')" sh -c 'while [ ! -e "$0/stop" ]; do :; done; read -r times </proc/self/stat; : ; exec cat /proc/$$/stat' "$work" >"$out" 2>"$err" &
pid=$!
ran_long_enough() {
  local total=0 child
  for child in $(pgrep -P "$(watcher_of $pid)"); do total=$((total + $(awk '{ print $14 + $15 }' "/proc/$child/stat"))); done
  [ $total -ge 100 ]
}
wait_until 30 "a second of processor time" ran_long_enough 2>/dev/null
: >"$work/stop"
expect_status 0 $pid
expect_lines "$out" 2
awk '{ print $14 + $15 }' "$out" | sort -n | awk 'NR == 1 { slow = $1 } END { print slow, $1; exit !(slow * 2 < $1 && slow > 0) }' >"$work/times" ||
  fail "not slower: $(cat "$work/times") ticks"
[ "$(grep -c '^colrun: ' "$err")" -le 2 ] || fail "$(grep -c '^colrun: ' "$err") lines about one rank that is slow"
nothing_left
for fault in kill:9@1s kill:x kill:1@ stop:1@1s+ slow:1 slow:1x0 slow:1x1 slow:1xy burn:1 ''; do
  expect_exit 2 "$COLRUN" -n 2 --inject "$fault" touch "$work/started"
  expect_lines "$err" 1
done
[ ! -e "$work/started" ] || fail "started in spite of a fault that cannot be"
nothing_left
