#!/bin/bash
# --elastic MIN:MAX: another process is started in the place of a rank that is lost, and the others take it in.
. "$(dirname "$0")/lib.sh"
: "${RENEWING_JOB:?}"
export RENEW_WAIT=20 # the others wait for it as long as that, at most

expect_exit 0 "$COLRUN" -n 3 --elastic 2:3 --max-restarts 1 -l --json "$work/json" "$RENEWING_JOB" 20 kill:0:7:1
sort "$out" | cmp - <(for rank in 0 1 2; do echo "[$rank] rank $rank of 3, epoch 1, 20 steps"; done) || fail "not three ranks of epoch 1"
expect_in "$err" '^colrun: rank 1 \(pid [0-9]+\) was killed by SIGKILL; another process is started in its place \(1 of 1 restarts\)$'
expect_lines "$err" 1
python3 - "$work/json" <<'EOF' || fail "the report: $(cat "$work/json")"
import json, sys
report = json.load(open(sys.argv[1]))
assert report["exit_code"] == 0 and report["restarts"] == 0, report
assert [(rank["rank"], rank["epoch"], rank.get("restarts", 0)) for rank in report["ranks"]] == [(0, 1, 0), (1, 1, 1), (2, 1, 0)]
EOF
nothing_left

# The same place again, after a pause, and then no more: the others go on as long as they are enough.
expect_exit 0 "$COLRUN" -n 3 --elastic 2:3 --max-restarts 2 -q "$RENEWING_JOB" 20 kill:0:3:2 kill:1:5:2
sort "$out" | cmp - <(printf 'rank %d of 3, epoch 2, 20 steps\n' 0 1 2) || fail "not three ranks of epoch 2"
RENEW_WAIT=0 expect_exit 0 "$COLRUN" -n 3 --elastic 2:3 "$RENEWING_JOB" 20 kill:0:3:2
sort "$out" | cmp - <(printf 'rank %d of 2, epoch 1, 20 steps\n' 0 1) || fail "not two ranks of epoch 1"
nothing_left

# Too few are left.
RENEW_WAIT=0 expect_exit 137 "$COLRUN" -n 3 --elastic 3:3 "$RENEWING_JOB" 2000000 kill:0:3:2
expect_in "$err" '^colrun: rank 2 \(pid [0-9]+\) was killed by SIGKILL; 2 of 3 ranks are left, and --elastic 3:3 needs 3: the job ends$'
expect_in "$err" '^colrun: rank 2 \(pid .*was killed by SIGKILL after'
nothing_left

# With a spare, nobody waits for the new process, which sleeps until it is needed.
RENEW_WAIT=0 expect_exit 0 "$COLRUN" -n 3 --elastic 2:3 --spares 1 --max-restarts 1 "$RENEWING_JOB" 20 kill:0:7:1
sort "$out" | cmp - <(printf 'rank %d of 3, epoch 1, 20 steps\n' 0 1 2) || fail "not three ranks of epoch 1"
nothing_left

# A rank that stands still, and that the others have left out, has its time to end. Nobody takes its place.
expect_exit 0 "$COLRUN" -n 3 --elastic 1:3 --max-restarts 1 --grace 100ms --json "$work/json" "$RENEWING_JOB" 20 stop:0:7:2
sort "$out" | cmp - <(printf 'rank %d of 2, epoch 1, 20 steps\n' 0 1) || fail "not two ranks of epoch 1"
expect_in "$err" '^colrun: rank 2 \(pid [0-9]+\) was left out by the others, and has neither noticed nor ended since; killed it$'
expect_lines "$err" 1
python3 - "$work/json" <<'EOF' || fail "the report: $(cat "$work/json")"
import json, sys
report = json.load(open(sys.argv[1]))
[epoch] = report["epochs"]
times = [epoch.pop(name) for name in ("at", "roll_call_seconds", "connect_seconds", "open_seconds")]
assert min(times) >= 0 and sum(times[1:]) <= report["seconds"], times
assert epoch == {"epoch": 1, "ranks": [0, 1], "newcomers": [], "lost": [], "left_out": [2]}, epoch
EOF
nothing_left

# One that leaves as planned is no loss, and the job goes on: another one is lost, and comes again.
expect_exit 0 "$COLRUN" -n 3 --elastic 1:3 --max-restarts 1 --report "$RENEWING_JOB" 20 leave:0:3:2 kill:1:7:1
sort "$out" | cmp - <(printf 'left after 3 steps\n'; printf 'rank %d of 2, epoch 2, 20 steps\n' 0 1) || fail "not two ranks of epoch 2"
expect_in "$err" '^colrun: 1 .* 2 +rank 2 '
expect_in "$err" '^colrun: 2 .* 2 +rank 1 +rank 1 '
expect_not_in "$err" 'when .* ended'
nothing_left

# What a newcomer sees: no rank, and its place's own things.
cat >"$work/job" <<'EOF'
#!/bin/bash
echo "${COL_RANK-no} ${COL_SPARE-no} $COL_LOCAL_RANK $COL_WORLD_SIZE $COL_RESTART_COUNT" >>"$0.seen.$COL_LOCAL_RANK"
exec "$RENEWING_JOB" 20 kill:0:3:1
EOF
chmod +x "$work/job"
expect_exit 0 "$COLRUN" -n 2 --elastic 1:2 --max-restarts 1 --output "file=$work/of.%r" "$work/job"
cmp "$work/job.seen.1" <(printf '1 no 1 2 0\nno 1 1 2 0\n') || fail "$(cat "$work/job.seen.1")"
cmp "$work/of.1" <(echo 'rank 1 of 2, epoch 1, 20 steps') || fail "the file of the place: $(cat "$work/of.1")"

# What does not go together.
refused() {
  local words=$1
  shift
  expect_exit 2 "$COLRUN" "$@" true
  expect_in "$err" "^colrun: .*$words"
}
refused '--elastic 3:8 does not have the 2 ranks that the job begins with in it; change it, or -n' -n 2 --elastic 3:8
refused '--elastic 1:2 does not have the 3 ranks' -n 3 --elastic 1:2
refused "--elastic takes MIN:MAX, two numbers of ranks such as 2:8, not '0:2'" -n 2 --elastic 0:2
refused '--elastic is for one node so far' -n 2 --elastic 1:2 --nnodes 2 --rdzv-endpoint localhost:4711
