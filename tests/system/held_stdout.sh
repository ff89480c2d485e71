#!/bin/bash
# A grandchild that holds the output open does not delay colrun.
. "$(dirname "$0")/lib.sh"

expect_exit 0 "$COLRUN" -n 2 bash -c 'sleep 60 & setsid sleep 61 & echo text; exit 0'
expect_lines "$out" 2
nothing_left
# Nor does the watcher keep the user's pipe open when colrun was killed: this pipeline ends.
{ "$COLRUN" -n 2 sh -c 'echo ready; exec sleep 60' 2>"$err" & echo $! >"$work/pid"; wait; } | {
  read -r _
  await test -s "$work/pid"
  kill -KILL "$(cat "$work/pid")"
  timeout 20 cat >/dev/null || fail "the pipe stayed open"
}
[ "${PIPESTATUS[1]}" -eq 0 ] || exit 1
nothing_left_soon
