#!/bin/bash
# coljob top, colrun --watch and --metrics show the ranks of all hosts of a job, and which hosts do not answer; --report says
# who on which host came last.
. "$(dirname "$0")/nodes_lib.sh"
: "${COLJOB:?set COLJOB to the coljob program}" "${STEADY_JOB:?set STEADY_JOB to the steady_job program}"
type python3 >/dev/null 2>&1 || { echo "python3 is missing: no terminal to test with"; exit 77; }
terminal=$(cd "$(dirname "$0")" && pwd)/top.py
make_hosts 2
export COL_HOST_TIMEOUT=120s COL_TIMEOUT=120s  # hosts stand still here, and are not lost
# Ranks 0 and 1 on n1, rank 2 on n2.
start_node n1 --nnodes 2 --node-rank 0 --rdzv-endpoint n1:29400 -n 2 "$STEADY_JOB" 0 2000
start_node n2 --nnodes 2 --node-rank 1 --rdzv-endpoint n1:29400 -n 1 --metrics 127.0.0.1:9400 "$STEADY_JOB" 0 2000

# ---- Without a terminal: one frame, the same on either host
rates='default +[0-9.]+k? +[0-9]+% +[0-9.]+[BKM]? +[0-9.]+[KM] +[0-9]+%'
shows_all() {
  on "$1" "$COLJOB" top >"$out" 2>"$err" && [ "$(grep -cE "^ +[01] +n1 .*allreduce #[0-9]+.* $rates" "$out")" = 2 ] &&
    grep -qE "^ +2 +n2 .*allreduce #[0-9]+.* $rates" "$out"
}
for host in n1 n2; do
  wait_until 30 "all ranks, asked on $host" shows_all $host
  expect_in "$out" '^[0-9]{8}-[0-9]{6}-[0-9]+-[0-9a-f]{8} +3 ranks on 2 hosts +[0-9.]+ s +[0-9].*steady_job 0 2000$'
  expect_not_in "$out" 'not answered'
done

# ---- --metrics: from the host that was asked to serve them
get_metrics() {
  on n2 bash -c 'exec 3<>/dev/tcp/127.0.0.1/9400 && printf "GET /metrics HTTP/1.1\r\n\r\n" >&3 && timeout 10 cat <&3' >"$out" ||
    fail "no metrics"
}
get_metrics
calls=$(sed -nE 's/^col_group_calls_total\{group="default",(rank="[0-9]+",host="n[0-9]+")\} [1-9][0-9]*$/\1/p' "$out")
[ "$calls" = $'rank="0",host="n1"\nrank="1",host="n1"\nrank="2",host="n2"' ] || fail "ranks in the metrics: $calls"
expect_in "$out" '^col_hosts_silent 0'
signal_host STOP n1
get_metrics
signal_host CONT n1
expect_in "$out" '^col_hosts_silent 1'
expect_in "$out" '^col_group_calls_total\{group="default",rank="2",host="n2"\}'
expect_not_in "$out" 'host="n1"'

# ---- In a terminal, also while a host, and then the asked launcher, stand still
says() { grep -qF "$1" "$work/said" || { gone $view && fail "the view: $(cat "$work/said" "$work/said.err")"; }; }
view_ended() { wait $view || fail "the view: $(cat "$work/said" "$work/said.err")"; }
(cd "$work" && exec timeout -k 1 100 python3 "$terminal" hosts "$COLJOB" >"$work/said" 2>"$work/said.err") &
view=$!
wait_until 40 "a view of all" says "all are shown"
signal_host STOP n2
wait_until 40 "a mark at n2" says "n2 is silent"
signal_host CONT n2
wait_until 40 "n2 again" says "n2 is back"
watcher=$(pgrep -x --ns "$(host_pid n1)" --nslist pid col-watcher)
kill -STOP "$watcher"
wait_until 40 "a mark at all others" says "n1 is silent"
kill -CONT "$watcher"
view_ended
kill -TERM "${node_inner[n1]}"
expect_node 143 n1
expect_node 143 n2

# ---- colrun --watch
start_node n2 --nnodes 2 --node-rank 1 --rdzv-endpoint n1:29400 -n 1 "$STEADY_JOB" 0 2000
: >"$work/said"  # what the first view has said is not this one's, which may begin late
timeout -k 1 100 python3 "$terminal" watch-hosts "$COLRUN" "$STEADY_JOB" >"$work/said" 2>"$work/said.err" &
view=$!
wait_until 40 "a view of all" says "all are shown"
kill -TERM "${node_inner[n2]}"
expect_node 143 n2
view_ended

# ---- A host whose ranks have ended shows those of the other one, until the job ends: here one that waits for the first
start_node n1 --nnodes 2 --node-rank 0 --rdzv-endpoint n1:29400 -n 1 true
start_node n2 --nnodes 2 --node-rank 1 --rdzv-endpoint n1:29400 -n 1 "$STEADY_JOB" 0 2000
shows_other() {
  on n1 "$COLJOB" top >"$out" 2>"$err" && grep -qE '^ +0 +n1 +([0-9]+ +)?ended' "$out" && grep -qE '^ +1 +n2 .*init_group' "$out"
}
wait_until 30 "the ranks of n2, asked on n1" shows_other
kill -TERM "${node_inner[n2]}"
expect_node 143 n1
expect_node 143 n2
nothing_left

# ---- --report: rank 2, on the other host, sleeps for 6 ms more before each call
for host in 1 2; do
  start_node n$host --nnodes 2 --node-rank $((host - 1)) --rdzv-endpoint n1:29400 -n $((3 - host)) --report --json "$work/report$host.json" \
    "$STEADY_JOB" 300 500 2 6000 sleep
done
expect_node 0 n1 60
expect_node 0 n2 60
expect_in "$work/n1.err" "^colrun: rank 2 \\(host n2\\) was last in ([6-9][0-9]|100) % of [0-9]+ allreduces of group 'default', and the others waited [0-9.]+ ms for it then, to within [0-9.]+ (us|ms), [0-9.]+ s in all; (it sleeps|its processor is busy)"
expect_in "$work/n1.err" '^colrun: group +call +host +calls +took +waiting +last to come'
expect_in "$work/n1.err" '^colrun: default +allreduce +2 hosts +300 +[0-9.]+ s +[0-9.]+ s +rank 2: [0-9]+ %, by [0-9.]+ ms$'
nothing_left
