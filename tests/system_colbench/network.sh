#!/usr/bin/env bash
# Ranks in two network namespaces with a slow link between them: the link is the bound, and nothing is faster than it.
. "$(dirname "$0")/lib.sh"

[ "$(id -u)" -eq 0 ] || { echo "skipped: network namespaces need root"; exit 77; }
for tool in ip tc; do command -v "$tool" >/dev/null || { echo "skipped: $tool is not installed"; exit 77; }; done
ip netns add "coltest$$" 2>"$err" || { echo "skipped: no network namespaces here: $(cat "$err")"; exit 77; }
tc -n "coltest$$" qdisc add dev lo root tbf rate 200mbit burst 32kb limit 4mb 2>"$err"
shaped=$?
ip netns del "coltest$$"
[ "$shaped" = 0 ] || { echo "skipped: the kernel has no tbf queue: $(cat "$err")"; exit 77; }

slow=("$(dirname "$0")/../netns/run_in_netns.sh" 2 200mbit "$COLBENCH")
expect 0 bash "${slow[@]}" allreduce,broadcast,pingpong --size 4M --backend gloo --max-time 2s --min-iters 5 --json "$work/r.json"
says "every row is verified"
python3 - "$work/r.json" <<'P' || fail "the bound is not that of the link"
import json, sys
report = json.load(open(sys.argv[1]))
assert report["machine"]["node_of_rank"] == [0, 1], report["machine"]["node_of_rank"]
assert len(report["cells"]) == 3
for cell in report["cells"]:
    part = cell["bound"]["ns"] / cell["stats"]["p50"]
    print(cell["spec"]["operation"], part, cell["bound"]["how"])
    assert "must pass a node's port" in cell["bound"]["how"], cell["bound"]["how"]
    assert 0.5 < part < 1.02, part
    assert 0.02e9 < cell["spec"]["bytes"] / cell["bound"]["ns"] * 1e9 < 0.03e9, cell["bound"]
P
# The backend that needs no network is not bound by it, and cannot be had.
expect 2 bash "${slow[@]}" allreduce --size 4M --backend shm --max-time 100ms
nothing_left
