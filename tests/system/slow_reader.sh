#!/bin/bash
# A slow reader loses nothing, and colrun does not buffer for it without bound.
. "$(dirname "$0")/lib.sh"

mkfifo "$work/pipe"
"$COLRUN" -n 4 awk 'BEGIN { for (i = 0; i < 100000; i++) print "line", i, "of the rank whose number is", ENVIRON["RANK"] }' \
  >"$work/pipe" 2>"$err" &
pid=$!
exec 5<"$work/pipe"
watcher=
has_watcher() { watcher=$(watcher_of $pid); }
wait_until 10 "the watcher" has_watcher
# Until everything stands still: no rank runs, for the pipes are full.
blocked() {
  local child
  for child in $(pgrep -P "$watcher"); do grep -q '^State:.S' "/proc/$child/status" || return 1; done
  [ "$(pgrep -P "$watcher" | wc -l)" -eq 4 ]
}
wait_until 10 "ranks blocked" blocked
resident_kb=$(awk '/^VmRSS/ { print $2 }' "/proc/$watcher/status")
[ "$resident_kb" -lt 32768 ] || fail "the watcher holds $resident_kb kB"
cat <&5 >"$out"
expect_status 0 $pid
expect_lines "$out" 400000
nothing_left
