#!/bin/bash
# While a group is being made: a rank that ends before it joined is named soon, not after the whole timeout; one that is
# stopped is named in the log soon, and by the timeout.
. "$(dirname "$0")/lib.sh"
: "${HELLO:?set HELLO to the hello program}"

# With any exit code. It ends when the others wait; these, who do not catch the error, are no cause.
for code in 0 7; do
  expect_exit $((code == 0 ? 134 : code)) env COL_TIMEOUT=25 "$COLRUN" -n 3 --keep-going bash -c \
    '[ "$RANK" = 2 ] || { : >"$1/$RANK"; exec "$0"; }; await test -e "$1/0" -a -e "$1/1"; exit '$code \
    "$HELLO" "$work"
  cat "$out" "$err" >"$work/said"
  expect_in "$work/said" "peer_lost: group 'default': rank 2 \\(pid [0-9]+\\) ended with exit code $code before it joined group 'default'"
  expect_not_in "$work/said" 'peer_lost: .*: rank [01] '
  rm -f "$work"/[01]
  nothing_left
done

# One that goes on in time is waited for.
COL_TIMEOUT=25 "$COLRUN" -n 2 bash -c '[ "$RANK" = 0 ] || { echo $$ >"$1/pid"; kill -STOP $$; }; exec "$0"' "$HELLO" "$work" \
  >"$out" 2>"$err" &
pid=$!
wait_until 10 "a word about the rank that stands still" grep -qE "waits for rank 1 \(pid [0-9]+\), which stands still" "$err"
kill -CONT "$(cat "$work/pid")"
expect_status 0 $pid
nothing_left

# One that does not is named by the timeout, and by colrun.
expect_exit 134 env COL_TIMEOUT=2 "$COLRUN" -n 2 --json "$work/report" bash -c '
  if [ "$RANK" = 0 ]; then await stands "$1"; else say_pid "$1"; kill -STOP $$; fi; exec "$0"' "$HELLO" "$work/stands"
cat "$out" "$err" >"$work/said"
expect_in "$work/said" "timeout: .*: rank 1 \\(pid [0-9]+\\) stands still"
expect_in "$err" "^colrun: rank 0 has waited .*in the making of group 'default': rank 1 \\(pid [0-9]+\\) stands still"
expect_in "$work/report" '"culprit": 1,'
nothing_left
