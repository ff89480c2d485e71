#!/bin/bash
# The last lines on stderr of the rank that failed are repeated at the end, and nobody else's.
. "$(dirname "$0")/lib.sh"

expect_exit 3 "$COLRUN" -n 3 bash -c 'echo "noise of $RANK" >&2; : >"$0/$RANK"; [ $RANK = 1 ] || exec sleep 60
  await test -e "$0/0" -a -e "$0/2"
  for i in $(seq 30); do echo "line $i" >&2; done; printf "no end" >&2; exit 3' "$work"
sed -n '/^colrun: its last lines on stderr:$/,$p' "$err" >"$work/tail"
expect_in "$work/tail" '^colrun:   line 30$'
expect_in "$work/tail" '^colrun:   no end$'
[ "$(grep -c '^colrun:   ' "$work/tail")" -eq 20 ] || fail "$(grep -c '^colrun:   ' "$work/tail") lines instead of 20"
expect_in "$work/tail" '^colrun:   line 12$'
expect_not_in "$work/tail" 'line 11$|noise'
# A traceback is all there when the job is large, too, and labels are not part of it.
expect_exit 1 "$COLRUN" -l -n 40 sh -c '[ $RANK = 17 ] || exec sleep 60; printf "Traceback:\n  File x\nValueError: 17\n" >&2; exit 1'
expect_in "$err" '^colrun:     File x$'
expect_in "$err" '^colrun:   ValueError: 17$'
# Nothing to repeat: nothing said.
expect_exit 3 "$COLRUN" -n 2 sh -c '[ $RANK = 1 ] || exec sleep 60; echo only stdout; exit 3'
expect_not_in "$err" 'its last lines'
# Colours and progress bars do not spoil the report.
expect_exit 3 "$COLRUN" -n 1 sh -c 'printf "10%%\r20%%\r\033[31mred\033[0m\n" >&2; exit 3'
expect_in "$err" '^colrun:   red$'
nothing_left
