#!/bin/bash
# When the reader of the output is gone the job ends, with 141.
. "$(dirname "$0")/lib.sh"

once() {
  "$COLRUN" -n 2 sh -c 'while :; do echo line; done' 2>"$err" | head -1 >"$out"
  [ "${PIPESTATUS[0]}" -eq 141 ] || fail "not 141"
  expect_in "$out" '^line$'
}
expect_soon 2000 once
rm "$out"
# Also when the reader goes while ranks are silent, at the next word.
"$COLRUN" -n 2 sh -c 'echo first; until [ -e "$0/gone" ]; do sleep 0.01; done; echo second; exec sleep 60' "$work" 2>"$err" | head -1 >"$out" &
pipeline=$!
wait_until 10 "the first line" test -s "$out"
: >"$work/gone"
expect_faster 10000 wait $pipeline
expect_exit 125 sh -c '"$0" -n 2 echo text >/dev/full' "$COLRUN"
expect_in "$err" '^colrun: cannot write .*No space left'
wait_until 10 "processes left" no_process
nothing_left
