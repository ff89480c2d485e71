#!/bin/bash
# A job that hangs: the report names the call and the rank that never came to it.
. "$(dirname "$0")/lib.sh"
: "${LATE_RANK:?set LATE_RANK to the late_rank program}"

expect_exit 124 "$COLRUN" -n 4 --timeout 1500ms "$LATE_RANK" 1 "$work"
expect_in "$err" "^colrun: ranks 0, 2-3 have waited for .* s in allreduce #3 of group 'default' \\(100 float32\\): rank 1 \\(pid [0-9]+\\) has not called it: it is in its own code, for .* s \\(last: barrier #2\\)\$"
nothing_left
# Who gives up is not to blame, but the one that hangs, with a call in flight; by whatever way it came to stand still.
rm -f "$work"/[0-3]
expect_exit 1 "$COLRUN" -n 4 --json "$work/report" "$LATE_RANK" 2 "$work" 1500
expect_in "$out" 'timeout: .*: rank 2 did not enter it \(last seen (in|after) allreduce'  # its part may have been complete
expect_in "$err" "^colrun: .*: rank 2 \\(pid [0-9]+\\) has not called it: it is in its own code"
expect_in "$err" '^colrun: rank [013] .* exited with code 1'
expect_in "$work/report" '"culprit": 2,'
expect_in "$work/report" '"first_failure": [013],'
nothing_left
rm -f "$work"/[0-3]
"$COLRUN" -n 3 --json "$work/report" "$LATE_RANK" 1 "$work" 1500 >"$out" 2>"$err" &
pid=$!
wait_until 10 "rank 1 has made its calls" test -s "$work/1"
kill -STOP "$(cat "$work/1")"
expect_status 1 $pid
expect_in "$out" "timeout: .*rank 1 \\(pid [0-9]+\\) stands still"
expect_in "$err" '^colrun: .*: rank 1 \(pid [0-9]+\) stands still: a signal .SIGSTOP, .Z. or a debugger has stopped it'
expect_in "$work/report" '"culprit": 1,'
nothing_left
# The same when somebody loses patience before the limit does, and when the late rank is killed instead.
rm -f "$work"/[0-3]
"$COLRUN" -n 3 --json "$work/report" --inject kill:2@1500ms "$LATE_RANK" 2 "$work" >"$out" 2>"$err"
code=$?
[ $code -eq 137 ] || fail "code $code"
expect_in "$err" '^colrun: rank 2 .* was killed by SIGKILL'
# The others may have noticed by then.
expect_in "$err" "^colrun: ranks 0-1 (wait|are|were) in allreduce #3"
expect_in "$work/report" 'allreduce'
nothing_left
# A program that does not use col is not spoken of in these words.
expect_exit 124 "$COLRUN" -n 2 --timeout 300ms sleep 60
expect_lines "$err" 2
nothing_left
