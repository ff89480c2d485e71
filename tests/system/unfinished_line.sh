#!/bin/bash
# Text without a newline is kept, and shown soon while its rank goes on.
. "$(dirname "$0")/lib.sh"

expect_exit 0 "$COLRUN" -n 1 printf 'no newline'
printf 'no newline' | cmp - "$out" || fail "the text is not as it was"
expect_exit 0 "$COLRUN" -n 3 printf 'text'
[ "$(grep -o text "$out" | wc -l)" -eq 3 ] || fail "a rank's text is lost"
# A prompt: the answer comes only after it was seen.
once() { # OPTIONS…
  rm -f "$work/answer"
  mkfifo "$work/answer"
  : >"$out"
  "$COLRUN" -n 2 "$@" sh -c 'if [ $RANK = 0 ]; then date +%s%N >"$0/asked"; printf "name? "; read -r name; echo "hello $name"; fi' "$work" \
    <"$work/answer" >"$out" 2>"$err" &
  pid=$!
  exec 4>"$work/answer"
  wait_until 10 "the prompt" grep -q 'name? ' "$out"
  took=$((($(date +%s%N) - $(cat "$work/asked")) / 1000000))
  echo you >&4
  exec 4>&-
  expect_status 0 $pid
  expect_in "$out" '^(\[0\] )?name\? hello you$'
  [ $took -lt $((200 * ${COLTEST_SLACK:-1})) ]
}
for options in '' -l; do
  for attempt in 1 2 3 4 5; do
    # shellcheck disable=SC2086
    if once $options; then break; fi
  done
  [ $took -lt $((200 * ${COLTEST_SLACK:-1})) ] || fail "the prompt took $took ms"
done
nothing_left
