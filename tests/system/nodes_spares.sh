#!/bin/bash
# --spares on several nodes: a rank that is lost is replaced by a spare of its own host, or of another one.
. "$(dirname "$0")/nodes_lib.sh"
: "${RENEWING_JOB:?}"
make_hosts 2
export SPARES_FIRST=yes RENEW_WAIT=20

# Numbers of spares follow those of all ranks, in turns: 4 is the first of n1, 5 that of n2.
for spares in "1 1" "2 0"; do
  read -r on_first on_second <<<"$spares"
  start_node n1 --nnodes 2 --node-rank 0 --rdzv-endpoint n1:29400 -n 2 --spares "$on_first" --json "$work/json" "$RENEWING_JOB" 20 kill:0:7:3
  start_node n2 --nnodes 2 --node-rank 1 --rdzv-endpoint n1:29400 -n 2 --spares "$on_second" --keep-going "$RENEWING_JOB" 20 kill:0:7:3
  expect_node 0 n1 30
  expect_node 0 n2 30
  sort "$work/n1.out" "$work/n2.out" | cmp - <(printf 'rank %d of 4, epoch 1, 20 steps\n' 0 1 2 3) || fail "not four ranks of epoch 1: $(cat "$work"/n?.out "$work"/n?.err)"
  python3 - "$work/json" <<'EOF' || fail "the report: $(cat "$work/json")"
import json, sys
report = json.load(open(sys.argv[1]))
[epoch] = report["epochs"]
assert report["exit_code"] == 0 and epoch["lost"] == [3] and len(epoch["ranks"]) == 4, report
assert sum(rank.get("epoch", 0) for rank in report["ranks"]) == 4, report["ranks"]
EOF
done
nothing_left_soon
