#!/bin/bash
# --spares: processes that sleep in init() until the ranks take them in; not among the ranks, and gone with the job.
. "$(dirname "$0")/lib.sh"
: "${RENEWING_JOB:?}"
export SPARES_FIRST=yes # none is lost before a spare sleeps

# One is killed, and the spare takes its place; the exit code is that of the last epoch.
expect_exit 0 "$COLRUN" -n 3 --spares 1 --json "$work/json" "$RENEWING_JOB" 20 kill:0:7:1
sort "$out" | cmp - <(printf 'rank %d of 3, epoch 1, 20 steps\n' 0 1 2) || fail "not three ranks of epoch 1"
expect_in "$err" '^colrun: rank 1 \(pid [0-9]+\) was killed by SIGKILL; 1 spare can take its place, once the others call renew\(\)$'
expect_lines "$err" 1
python3 - "$work/json" <<'EOF' || fail "the report: $(cat "$work/json")"
import json, sys
report = json.load(open(sys.argv[1]))
assert report["exit_code"] == 0 and report["cause"] == "none" and report["culprit"] is None, report
epochs = {rank["rank"]: (rank.get("epoch", 0), rank["outcome"], rank.get("spare", False)) for rank in report["ranks"]}
assert epochs == {0: (1, "exited", False), 1: (0, "signalled", False), 2: (1, "exited", False), 3: (1, "exited", False)}, epochs
EOF
nothing_left

# Two deaths, two spares; the second one takes the place of one that was a spare itself.
RENEW_WAIT=20 expect_exit 0 "$COLRUN" -n 2 --spares 2 -q "$RENEWING_JOB" 20 kill:0:3:0 kill:1:6:0
sort "$out" | cmp - <(printf 'rank %d of 2, epoch 2, 20 steps\n' 0 1) || fail "not two ranks of epoch 2"
expect_lines "$err" 0
nothing_left

# A job that needs no spare: quiet, and not waited for. None is left when the job fails or is ended.
expect_exit 0 env -u SPARES_FIRST "$COLRUN" -n 2 --spares 2 "$RENEWING_JOB" 5
expect_lines "$out" 2
expect_lines "$err" 0
expect_exit 0 "$COLRUN" -n 2 --spares 1 sh -c 'exec sleep ${COL_SPARE:+300}${COL_RANK:+0}'
expect_lines "$err" 0
nothing_left

# Fewer spares than deaths: the others go on without, and the exit code is theirs.
expect_exit 0 "$COLRUN" -n 3 --spares 1 "$RENEWING_JOB" 20 kill:0:3:0 kill:1:6:1
sort "$out" | cmp - <(printf 'rank %d of 2, epoch 2, 20 steps\n' 0 1) || fail "not two ranks of epoch 2"
expect_in "$err" '^colrun: rank [0-9] .* was killed by SIGKILL; no spare is left to take its place$'
expect_exit 3 "$COLRUN" -n 2 --spares 1 sh -c '"$0" 20 kill:0:3:0; code=$?; [ $code -ne 0 ] || exit 3; kill -9 $$' "$RENEWING_JOB"

# A program that never calls renew() ends with its own error, and its spares with it.
NO_RENEW=1 expect_exit 137 "$COLRUN" -n 2 --spares 1 "$RENEWING_JOB" 20 kill:0:3:1
expect_in "$err" '^renewing_job: .*rank 1'
expect_in "$err" '^colrun: nobody was taken in for those that were lost: no rank has called renew\(\)'
expect_in "$err" '^colrun: rank 1 \(pid .*was killed by SIGKILL'
nothing_left

# A spare that ends before its time is named, and is no failure.
expect_exit 0 "$COLRUN" -n 2 --spares 1 bash -c 'if [ -n "${COL_SPARE:-}" ]; then say_pid "$0/spare"; exit 9; fi; await ended "$0/spare"' "$work"
expect_in "$err" '^colrun: spare 2 \(pid [0-9]+\) exited with code 9 before the others had taken it in; see whether it comes to col::init\(\)'

# One that dies as it is taken: the others do without.
expect_exit 0 "$COLRUN" -n 3 --spares 1 bash -c '[ -z "${COL_SPARE:-}" ] || set -- "$@" kill:1:7:3; exec "$0" "$@"' "$RENEWING_JOB" 20 kill:0:7:1 kill:1:7:1
nothing_left

# What a spare sees: no rank, by any name, and a number that no rank has.
expect_exit 0 "$COLRUN" -n 2 --spares 2 bash -c 'if [ -n "${COL_SPARE:-}" ]; then
  echo "$COL_SPARE $COL_LOCAL_RANK $LOCAL_RANK $COL_WORLD_SIZE $WORLD_SIZE $COL_RESTART_COUNT ${COL_RANK-no} ${RANK-no} ${ROLE_RANK-no}" >"$0/spare.$COL_SPARE.new"
  mv "$0/spare.$COL_SPARE.new" "$0/spare.$COL_SPARE"; exec sleep 300; fi
  echo "${COL_SPARE-none}" >>"$0/ranks"; await test -e "$0/spare.2" -a -e "$0/spare.3"' "$work"
cat "$work/spare.2" "$work/spare.3" | cmp - <(printf '%s %s %s 2 2 0 no no no\n' 2 2 2 3 3 3) || fail "$(cat "$work"/spare.?)"
cmp "$work/ranks" <(printf 'none\nnone\n') || fail "a rank is a spare: $(cat "$work/ranks")"

# Two processes in one place are told so.
expect_exit 0 "$COLRUN" -n 2 --spares 1 bash -c 'if [ -n "${COL_SPARE:-}" ]; then
  "$1" 20 & "$1" 20 & wait -n; : >"$0/told"; wait; else await test -e "$0/told"; fi' "$work" "$RENEWING_JOB"
expect_in "$err" 'rank 2 was started twice'

# colrun is killed: no spare stays. It sleeps until then: nothing has woken it.
"$COLRUN" -n 2 --spares 1 bash -c 'say_pid "$0/pid.${COL_SPARE:-$COL_RANK}"; [ -z "${COL_SPARE:-}" ] || exec "$1" 20; await false' "$work" "$RENEWING_JOB" >"$out" 2>"$err" &
pid=$!
wait_until 10 "the spare" test -s "$work/pid.2"
spare=$(<"$work/pid.2")
sleeps() { [ "$(tr '\0' ' ' <"/proc/$spare/cmdline" 2>/dev/null)" = "$RENEWING_JOB 20 " ] && grep -q '^State:.S' "/proc/$spare/status"; }
wait_until 10 "the spare's sleep" sleeps
kill -KILL $pid
wait $pid 2>/dev/null
wait_until 10 "the spare's end" gone "$spare"
nothing_left_soon

# What does not go together.
refused() {
  local words=$1
  shift
  expect_exit 2 "$COLRUN" "$@" true
  expect_in "$err" "^colrun: .*$words"
}
refused 'needs a job of two ranks or more' -n 1 --spares 1
refused '--max-restarts starts all ranks again, and --spares lets them go on; for single ranks, add --elastic MIN:MAX' -n 2 --spares 1 --max-restarts 2
refused '--spares is for one program' -n 1 --spares 1 true : -n 2
refused '--compat do not go together' -n 2 --spares 1 --compat mpi
