#!/usr/bin/env bash
# The quick run: at least 2,000 cases pass, no cell of the matrix is empty, and the reports say the same.
. "$(dirname "$0")/lib.sh"

expect 0 "$COLCHECK" --quick --junit "$work/r.xml" --json "$work/r.json" --html "$work/r.html"
says 'of its own'
says ' 0 failed'
python3 - "$work" <<'PY' || fail "the reports do not agree"
import json, sys
import xml.etree.ElementTree as tree
work = sys.argv[1]
report = json.load(open(work + "/r.json"))
totals = report["totals"]
assert totals["failed"] == 0 and totals["holes"] == 0, totals
tokens = [case["token"] for case in report["cases"]]
assert len(tokens) >= 2000 and len(set(tokens)) == len(tokens), len(tokens)
suites = tree.parse(work + "/r.xml").getroot()
assert int(suites.get("tests")) == len(tokens), suites.attrib
assert "<html" in open(work + "/r.html").read()
PY
nothing_left
