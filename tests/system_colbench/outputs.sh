#!/usr/bin/env bash
# Every kind of output is written, and is what it should be.
. "$(dirname "$0")/lib.sh"

expect 0 "$COLBENCH" allreduce,gather --sizes 8:64K:x32 --algo auto,linear --place both --max-time 50ms --launches 2 --seed 7 \
  --json "$work/r.json" --csv "$work/r.csv" --html "$work/r.html" --plot "$work/r.svg"
python3 - "$work" <<'P' || fail "an output is not what it should be"
import csv, json, sys, xml.etree.ElementTree as xml
work = sys.argv[1]
report = json.load(open(work + "/r.json"))
assert 0 <= report["run"]["other_work"] <= 1, report["run"]
assert report["schema"] == "colbench" and report["run"]["launches"] == 2, report["run"]
measured = [cell for cell in report["cells"] if cell["note"] is None]
assert measured and all(cell["valid"] is True for cell in measured)
for cell in measured:
    samples = sorted(t for launch in cell["launches"] for t in launch["ns"])
    assert cell["stats"]["n"] == len(samples) > 0
    assert samples[0] <= cell["stats"]["p50"] <= samples[-1]
    assert cell["check"]["wrong"] == 0 and cell["check"]["elements"] > 0, cell["check"]
    assert cell["bound"]["ns"] > 0 and (cell["bound"]["calibrations"] >= 5 or "hand-over" in cell["bound"]["how"]), cell["bound"]
rows = list(csv.reader(open(work + "/r.csv")))
assert len(rows) == 1 + len(report["cells"]), len(rows)
assert all(len(row) == len(rows[0]) for row in rows)
assert xml.parse(work + "/r.svg").getroot().tag.endswith("svg")
page = open(work + "/r.html").read()
assert "<svg" in page and "http://" not in page.replace("http://www.w3.org", "") and "src=" not in page
P
nothing_left
