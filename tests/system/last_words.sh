#!/bin/bash
# The last line before a rank's sudden end is never lost, in a thousand runs.
. "$(dirname "$0")/lib.sh"

ulimit -c 0
for attempt in $(seq 500); do
  words=$("$COLRUN" -n 1 sh -c 'echo "last words $0"; kill -SEGV $$' "$attempt" 2>"$err")
  code=$?
  [ $code -eq 139 ] || fail "attempt $attempt: code $code"
  [ "$words" = "last words $attempt" ] || fail "attempt $attempt: '$words' of a rank that crashed"
  words=$("$COLRUN" -n 1 sh -c 'echo "last words $0" >&2; exit 3' "$attempt" 2>&1 >/dev/null)
  code=$?
  [ $code -eq 3 ] || fail "attempt $attempt: code $code"
  [ "${words%%$'\n'*}" = "last words $attempt" ] || fail "attempt $attempt: '$words' of a rank that exited"
done
# Others run on, and are ended.
for attempt in $(seq 20); do
  expect_exit 139 "$COLRUN" -n 2 bash -c 'echo "last $RANK"; [ $RANK = 1 ] && kill -SEGV $$; exec sleep 60'
  expect_in "$out" '^last 1$'
done
nothing_left
