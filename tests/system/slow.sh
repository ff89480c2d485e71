#!/bin/bash
# --report: how long calls took, and the rank that holds up the others, with its reason. In a job without such a rank,
# nobody is named.
. "$(dirname "$0")/lib.sh"
: "${STEADY_JOB:?set STEADY_JOB to the steady_job program}"
type python3 >/dev/null 2>&1 || { echo "python3 is missing: nothing to read JSON with"; exit 77; }
json=$work/report.json

# check EXPRESSION: of `report`, and `rank(n)`, the first call of rank n.
check() {
  python3 - "$json" "$1" <<'P' || fail "the report is not as expected: $1"
import json, sys
report = json.load(open(sys.argv[1]))
rank = lambda n: report["ranks"][n]["times"]["calls"][0]
own = lambda n: report["ranks"][n]["times"]["own"]
if not eval(sys.argv[2]):
    print(json.dumps(report["slow"], indent=2), [rank["times"] for rank in report["ranks"]], file=sys.stderr)
    sys.exit(1)
P
}

# ---- Rank 1 sleeps for 6 ms more before each call
expect_exit 0 "$COLRUN" -n 3 --report --json "$json" "$STEADY_JOB" 300 500 1 6000 sleep
expect_in "$err" "^colrun: rank 1 was last in ([6-9][0-9]|100) % of [0-9]+ allreduces of group 'default', and the others waited [0-9.]+ ms for it then, [0-9.]+ s in all; (it sleeps, or waits for something that is not of col|its processor is busy)"
expect_in "$err" '^colrun: group +call +calls +took +waiting +last to come'
expect_in "$err" '^colrun: default +allreduce +300 +[0-9.]+ s +[0-9.]+ s +rank 1: [0-9]+ %, by [0-9.]+ ms$'
check 'report["slow"]["rank"] == 1 and report["slow"]["op"] == "allreduce" and report["slow"]["sentence"]'
check 'rank(1)["calls"] == rank(0)["calls"] == 300 and rank(1)["bytes"] == 300 * 1024'
# All calls fit into the recorder between two looks: nearly all are compared.
check 'rank(1)["compared"] >= 290 and rank(1)["last"] >= 0.6 * rank(1)["compared"]'
# 6 ms each, and more where the machine is busy.
check '4e-3 <= report["slow"]["late_seconds"] <= report["seconds"] / rank(1)["last"]'
check 'rank(0)["waited_seconds"] >= 1.2 and rank(1)["waited_seconds"] <= rank(0)["waited_seconds"] / 4'
check 'own(1)["outside_seconds"] >= own(1)["seconds"] / 2 and own(1)["cpu_seconds"] <= own(1)["seconds"] / 3'

# ---- It computes: the reason is another one
expect_exit 0 "$COLRUN" -n 2 --report --json "$json" "$STEADY_JOB" 200 500 0 6000 compute
check 'report["slow"]["rank"] == 0 and report["slow"]["last"] >= 0.6 * report["slow"]["compared"]'
expect_in "$err" '^colrun: rank 0 was last .*; (it computes: its main thread was on|its processor is busy: it was ready to run)'

# ---- All are alike: nobody is named, unless for what others do on this machine, and the table is there
expect_exit 0 "$COLRUN" -n 2 --report --json "$json" "$STEADY_JOB" 300 4000
check '(report["slow"] is None or "its processor is busy" in report["slow"]["sentence"]) and rank(0)["compared"] >= 290'
if grep -E 'rank [0-9] was last in' "$err" | grep -v 'its processor is busy'; then fail "somebody is named"; fi
expect_in "$err" '^colrun: default +allreduce +300 '

# ---- Without being asked, nothing is watched; of programs without col, nothing is said
expect_exit 0 "$COLRUN" -n 2 "$STEADY_JOB" 20 500
[ ! -s "$err" ] || fail "a report that nobody asked for"
expect_exit 0 "$COLRUN" -n 2 --report true
if grep -q 'last to come' "$err"; then fail "a table of calls that there were not"; fi
nothing_left
