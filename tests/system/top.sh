#!/bin/bash
# coljob top and colrun --watch: in terminals of several sizes, with all keys, and on every way out; and without a
# terminal.
OWN_PROCESSES=${OWN_PROCESSES:-yes}
. "$(dirname "$0")/lib.sh"
: "${COLJOB:?set COLJOB to the coljob program}" "${STEADY_JOB:?set STEADY_JOB to the steady_job program}"
type python3 >/dev/null 2>&1 || { echo "python3 is missing: no terminal to test with"; exit 77; }
terminal=$(cd "$(dirname "$0")" && pwd)/top.py
in_terminal() { (cd "$work" && timeout -k 1 100 python3 "$terminal" "$@" >"$out" 2>"$err") || fail "$*"; }

# ---- No job, no terminal
expect_exit 3 "$COLJOB" top
expect_in "$err" '^coljob: no job of this user runs on this host'
expect_exit 2 "$COLJOB" top --json
expect_exit 2 "$COLRUN" --watch -n 2 true
expect_in "$err" '^colrun: --watch shows a live view, and stdin and stdout are no terminal'

# ---- A job that runs
STEADY_LABEL=backward "$COLRUN" -n 3 "$STEADY_JOB" 0 2000 >"$work/job" 2>&1 &
job=$!
row='[0-9]+ .*allreduce #[0-9]+.* +backward +default +[0-9.]+k? +[0-9]+% +[0-9.]+[BKM]? +[0-9.]+[KM] +[0-9]+%'
moves() { "$COLJOB" top >"$out" 2>"$err" && [ "$(grep -cE "^ +[0-2] +$row" "$out")" = 3 ]; }
wait_until 30 "a frame without a terminal" moves
expect_in "$out" '^[0-9]{8}-[0-9]{6}-[0-9]+-[0-9a-f]{8} +3 ranks +[0-9.]+ s +[0-9].*steady_job 0 2000$'
expect_in "$out" '^rank +pid +state +.*label +group +calls/s +wait +data/s +RSS +CPU'
# What its calls are for is in every view.
expect_exit 0 "$COLJOB" ps
expect_in "$out" '^job +ranks +since +state +label +command'
expect_in "$out" '^[0-9-]+-[0-9a-f]+ +3 +[0-9.]+ s +[a-z]+ +backward +steady_job 0 2000$'
expect_exit 0 "$COLJOB" stacks
expect_in "$out" "^coljob: stack of ranks? [0-2].* \([a-z/-]+\), (in|after) 'backward':$"
in_terminal top "$COLJOB" $job
expect_status 143 $job
ls "$work"/coljob-*.json >/dev/null || fail "no dump"
expect_exit 3 "$COLJOB" top
nothing_left

# ---- A job that shows itself
in_terminal watch "$COLRUN" "$STEADY_JOB"
gone_all() { [ -z "$(job_processes)" ]; }
wait_until 20 "processes that are left" gone_all
