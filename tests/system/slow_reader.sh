#!/bin/bash
# A slow reader loses nothing, and colrun does not buffer for it without bound.
. "$(dirname "$0")/lib.sh"

mkfifo "$work/pipe"
try() { # RANKS OPTIONS…
  local ranks=$1
  shift
  "$COLRUN" -n "$ranks" "$@" >"$work/pipe" 2>"$err" &
  pid=$!
  exec 5<"$work/pipe"
  watcher=
  has_watcher() { watcher=$(watcher_of $pid); }
  wait_until 10 "the watcher" has_watcher
  # Until everything stands still: no rank runs, for the pipes are full.
  blocked() {
    local child
    for child in $(pgrep -P "$watcher") $watcher; do grep -q '^State:.S' "/proc/$child/status" || return 1; done
    [ "$(pgrep -P "$watcher" | wc -l)" -eq "$ranks" ]
  }
  blocked_for_long() { local look; for look in 1 2 3 4 5; do blocked || return 1; look_again; done; }
  wait_until 20 "ranks blocked" blocked_for_long
  local process resident_kb
  for process in $pid $watcher; do
    resident_kb=$(awk '/^VmHWM/ { print $2 }' "/proc/$process/status")
    [ "$resident_kb" -lt 65536 ] || fail "process $(cat "/proc/$process/comm") holds $resident_kb kB"
  done
}
lines='BEGIN { for (i = 0; i < 100000; i++) print "line", i, "of the rank whose number is", ENVIRON["RANK"] }'
try 4 awk "$lines"
cat <&5 >"$out"
expect_status 0 $pid
expect_lines "$out" 400000
awk 'NF != 9 || next_line[$9]++ != $2 { bad++ } END { exit bad > 0 }' "$out" || fail "a line is torn or out of order"
nothing_left

# Many ranks that never end their lines, on both streams.
try 64 -l --merge sh -c 'head -c 3000000 /dev/zero | tr "\0" x'
[ "$(tr -dc x <&5 | wc -c)" -eq 192000000 ] || fail "text without line ends is lost"
expect_status 0 $pid
nothing_left
