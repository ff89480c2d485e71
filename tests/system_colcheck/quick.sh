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
draws = [draw.get("value") for draw in suites.iterfind("./testsuite/testcase/properties/property[@name='draw']")]
assert sorted(draws) == sorted(tokens), (len(draws), len(tokens))
assert int(suites.get("tests")) == len(suites.findall("./testsuite/testcase")), suites.attrib
# Shared memory's own collectives are asked for by name, blocking and not.
by_name = [dict(part.partition("=")[::2] for part in token.split(",")) for token in tokens if ",algo=shared" in token]
blocking, started = ({c.get("coll", "barrier") for c in by_name if ("async" in c) == way} for way in (False, True))
assert blocking == started, f"an i-form by name is missing: {blocking ^ started}"
assert by_name or "backend=shm" not in " ".join(tokens), "nothing of shared memory's own is asked for"
assert "<html" in open(work + "/r.html").read()
PY
nothing_left
