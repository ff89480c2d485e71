#!/bin/bash
# --start-timeout: a job whose ranks cannot all be started in time is ended with 125, and what was started is gone.
. "$(dirname "$0")/lib.sh"

need_processes 500
expect_exit 125 "$COLRUN" -n 500 --start-timeout 1ms sh -c ': >"$0/$RANK.started"; exec sleep 60' "$work"
expect_lines "$err" 1
expect_in "$err" '^colrun: only [0-9]+ of 500 ranks were started within .* \(--start-timeout\)$'
nothing_left
# It is for the start alone: a rank goes on until colrun does what is due after that time. Not every machine starts as soon.
outlives() { # MILLISECONDS
  timeout -k 1 60 "$COLRUN" -n 1 --start-timeout "$1ms" --inject "stop:0@$(($1 + 100))ms+1ms" \
    bash -c 'await grep -q "injected SIGCONT" "$0"' "$err" 2>"$err"
}
outlives 200 || outlives 2000 || outlives 10000 || fail "a rank was not let live for longer than its start may take"
nothing_left
