#!/bin/bash
# Orphans that end while the job goes on do not stay behind as zombies.
. "$(dirname "$0")/lib.sh"

mkfifo "$work/go"
"$COLRUN" -n 1 bash -c 'for i in $(seq 20); do (sleep 0.01 & exec true); done; : >"$0/ready"; read -r _ <"$0/go"' "$work" 2>"$err" >"$out" &
pid=$!
wait_until 10 "rank ready" test -e "$work/ready"
watcher=$(watcher_of $pid)
one_child() { [ "$(pgrep -P "$watcher" | wc -l)" -eq 1 ]; }
wait_until 10 "orphans reaped" one_child
echo go >"$work/go"
expect_status 0 $pid
nothing_left
