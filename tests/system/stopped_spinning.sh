#!/bin/bash
# A rank is stopped inside of a small call, before it has begun to wait: its record is one word then. Who waits for it names it,
# and so does the report.
. "$(dirname "$0")/lib.sh"
: "${LATE_RANK:?set LATE_RANK to the late_rank program}" "${CONTROL_PAGE:?set CONTROL_PAGE to the control_page program}"

is_stopped() { [ "$(sed 's/.*) \(.\).*/\1/' "/proc/$1/stat")" = T ]; }
# stop_inside RANK PID: false, and it runs on, if it was stopped elsewhere. Most of the time of such a job is in its calls.
stop_inside() {
  kill -STOP "$2"
  wait_until 10 "rank $1 is stopped" is_stopped "$2"
  # shellcheck disable=SC2046
  env -u COLTEST_TAG $(tr '\0' '\n' <"/proc/$2/environ" | grep -E '^COL_(CONTROL|JOB_ID)=') "$CONTROL_PAGE" spins "$1" && return
  kill -CONT "$2"
  return 1
}

for stopped in 0:2 1:2 2:3; do
  rank=${stopped%:*} ranks=${stopped#*:}
  rm -f "$work"/[0-9] "$work/report"
  "$COLRUN" -n "$ranks" --json "$work/report" "$LATE_RANK" none "$work" 10000 >"$out" 2>"$err" &
  pid=$!
  wait_until 20 "rank $rank has made its first calls" test -s "$work/$rank"
  wait_until 20 "rank $rank is stopped inside of a call" stop_inside "$rank" "$(cat "$work/$rank")"
  expect_status 1 $pid
  expect_in "$out" "timeout: .*rank $rank \\(pid [0-9]+\\) stands still"
  expect_in "$err" "^colrun: .* in allreduce .*: rank $rank \\(pid [0-9]+\\) stands still: a signal .SIGSTOP, .Z. or a debugger has stopped it"
  expect_in "$work/report" "\"culprit\": $rank,"
  nothing_left
done
