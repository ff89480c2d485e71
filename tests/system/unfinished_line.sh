#!/bin/bash
# Text without a newline is kept, and shown while its rank goes on.
. "$(dirname "$0")/lib.sh"

expect_exit 0 "$COLRUN" -n 1 printf 'no newline'
printf 'no newline' | cmp - "$out" || fail "the text is not as it was"
expect_exit 0 "$COLRUN" -n 3 printf 'text'
[ "$(grep -o text "$out" | wc -l)" -eq 3 ] || fail "a rank's text is lost"
# A prompt: the answer comes only after it was seen.
mkfifo "$work/answer"
"$COLRUN" -n 2 sh -c 'if [ $RANK = 0 ]; then printf "name? "; read -r name; echo "hello $name"; fi' \
  <"$work/answer" >"$out" 2>"$err" &
pid=$!
exec 4>"$work/answer"
wait_until 10 "the prompt" grep -q 'name? ' "$out"
echo you >&4
exec 4>&-
expect_status 0 $pid
expect_in "$out" '^name\? hello you$'
nothing_left
