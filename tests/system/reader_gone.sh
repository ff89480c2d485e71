#!/bin/bash
# When the reader of the output is gone the job ends, with 141.
. "$(dirname "$0")/lib.sh"

start=$SECONDS
"$COLRUN" -n 2 sh -c 'while :; do echo line; done' 2>"$err" | head -1 >"$out"
[ "${PIPESTATUS[0]}" -eq 141 ] || fail "not 141"
expect_in "$out" '^line$'
[ $((SECONDS - start)) -lt 15 ] || fail "took too long"
expect_exit 125 sh -c '"$0" -n 2 echo text >/dev/full' "$COLRUN"
expect_in "$err" '^colrun: cannot write .*No space left'
nothing_left
