#!/bin/bash
# Orphans that end while the job goes on do not stay behind as zombies.
. "$(dirname "$0")/lib.sh"

mkfifo "$work/go" "$work/end"
exec 5<>"$work/end"
"$COLRUN" -n 1 bash -c 'for i in $(seq 20); do (read -r _ <"$0/end" & exec true); done; : >"$0/ready"; read -r _ <"$0/go"' "$work" 2>"$err" >"$out" &
pid=$!
wait_until 10 "rank ready" test -e "$work/ready"
watcher=$(watcher_of $pid)
children() { [ "$(pgrep -P "$watcher" | wc -l)" -eq "$1" ]; }
wait_until 10 "the rank and its orphans" children 21
printf '\n%.0s' {1..20} >&5
wait_until 10 "orphans reaped" children 1
echo go >"$work/go"
expect_status 0 $pid
nothing_left
