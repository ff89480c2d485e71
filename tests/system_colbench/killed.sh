#!/usr/bin/env bash
# A rank that dies in mid-run: one line, exit code 5, and what had been found is in the JSON.
. "$(dirname "$0")/lib.sh"

killed() {
  COL_FAULT=kill:rank=1,op=3000,step=0 expect 5 "$COLBENCH" allreduce --sizes 8,16,32 --no-shuffle --launches 1 --max-time 60s \
    --ci 0.0001% --bound off --quiet --json "$work/r.json"
  complains "rank 1"
  complains "SIGKILL"
  [ "$(wc -l <"$err")" -le 2 ] || fail "more than who died and what the ranks were in"
  says "ended early"
  python3 - "$work/r.json" <<'P' || fail "the JSON has nothing of what was found"
import json, sys
report = json.load(open(sys.argv[1]))
assert "rank 1" in report["ended_early"], report["ended_early"]
assert report["exit_code"] == 5
assert sum(cell["stats"]["n"] for cell in report["cells"] if cell["stats"]) > 100
P
}
again killed
nothing_left
