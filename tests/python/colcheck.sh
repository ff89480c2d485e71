#!/usr/bin/env bash
# colcheck --python: the cases pass through the package on numpy and torch; a method that is wrong is found, and its case
# named; a rank that crashes ends the run; and a Python that cannot be used is said in one line. $PYTHON has numpy and torch.
. "$(dirname "$0")/../system_colcheck/lib.sh"
: "${PYTHON:?set PYTHON to the Python of the package}"
check=("$COLCHECK" --python --interpreter "$PYTHON")

expect 0 "${check[@]}" --only exact --np 1,3 --require torch --json "$work/r.json" --junit "$work/r.xml"
says ', through Python 3.'
says ' 0 failed'
"$PYTHON" - "$work" <<'PY' || fail "the reports are not about numpy and torch"
import json, sys
import xml.etree.ElementTree as tree
report = json.load(open(sys.argv[1] + "/r.json"))
assert report["run"]["python"].startswith("Python 3."), report["run"]
assert report["totals"]["failed"] == 0 and report["totals"]["holes"] == 0, report["totals"]
cases = report["cases"]
draws = tree.parse(sys.argv[1] + "/r.xml").getroot().iterfind(".//property[@name='draw']")
assert sorted(draw.get("value") for draw in draws) == sorted(case["token"] for case in cases)
for library in "numpy", "torch":
    passed = [case for case in cases if f",lib={library}," in case["token"] and case["verdict"] == "passed"]
    assert len(passed) > 300, (library, len(passed))
    assert {case["ranks"] for case in passed} == {1, 3} and {case["in_place"] for case in passed} == {True, False}
    assert {case["asynchronous"] for case in passed} == {True, False}
skips = {case["text"] for case in cases if case["verdict"] == "skipped"}
assert all(text.startswith("torch ") for text in skips), skips
PY
nothing_left

# A method of the package that gives a wrong result: the run fails, and names the case; so does the case alone, as long as
# the method is wrong.
mkdir "$work/wrong"
cat >"$work/wrong/sitecustomize.py" <<'PY'
import sys

if "-m" in sys.orig_argv and "col.check" in sys.orig_argv:
    import col

    right = col.Group.reduce_scatter

    def wrong(group, x, *args, **options):
        result = right(group, x, *args, **options)
        if group.size > 1 and len(result) > 1:
            result[0], result[1] = 1, 0
        return result

    col.Group.reduce_scatter = wrong
PY
PYTHONPATH=$work/wrong expect 1 "${check[@]}" --only exact --np 2 --backend shm
says 'coll=reduce_scatter'
says 'smallest: '
! grep -q '✘ exact.*coll=[^r]' "$out" || fail "another collective fails too"
token=$(grep -o 'exact,backend=shm,np=2,coll=reduce_scatter[^:]*' "$out" | grep -v async | head -n 1)
PYTHONPATH=$work/wrong expect 1 "$COLCHECK" --interpreter "$PYTHON" --repro "$token"
says "$token"
expect 0 "$COLCHECK" --interpreter "$PYTHON" --repro "$token"
says '1 case passed'

# A rank whose Python dies: the run ends, and says where.
mkdir "$work/crash"
cat >"$work/crash/sitecustomize.py" <<'PY'
import sys

if "-m" in sys.orig_argv and "col.check" in sys.orig_argv:
    import os
    import signal

    import col

    right = col.Group.scan

    def crash(group, *args, **options):
        if group.rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        return right(group, *args, **options)

    col.Group.scan = crash
PY
PYTHONPATH=$work/crash expect 5 "${check[@]}" --only exact --np 2 --backend shm
says 'rank 1: its Python process was ended by signal 9'
says 'coll=scan'
nothing_left

# One that hangs in code of its own: it is killed, and the others end by themselves.
mkdir "$work/hang"
sed 's/os.kill(os.getpid(), signal.SIGKILL)/import time; time.sleep(300)/' "$work/crash/sitecustomize.py" >"$work/hang/sitecustomize.py"
PYTHONPATH=$work/hang expect 5 "${check[@]}" --only exact --np 2 --backend shm --timeout 4s
says 'rank 1: its Python process did not go on, and was killed'
says 'coll=scan'
nothing_left

# One that is late for a moment is not: the timeout is that of the command line, 20 s.
mkdir "$work/late"
sed 's/os.kill(os.getpid(), signal.SIGKILL)/import time; time.sleep(0.05); col.Group.scan = right/' \
  "$work/crash/sitecustomize.py" >"$work/late/sitecustomize.py"
PYTHONPATH=$work/late expect 0 "${check[@]}" --only exact --np 2 --backend shm
says ' 0 failed'

# Without torch, its cases are skipped, and say so.
mkdir "$work/torchless"
echo 'import sys; sys.modules["torch"] = None' >"$work/torchless/sitecustomize.py"
PYTHONPATH=$work/torchless expect 0 "${check[@]}" --only roots --np 2 --backend shm
says ', no torch;'
says 'skipped: torch cannot be imported: '
PYTHONPATH=$work/torchless expect 2 "${check[@]}" --require torch
complains "'torch' is required"

# What cannot be checked is said in a line, before any rank starts.
refused() {  # refused TEXT ARGUMENT…
  expect 2 "$COLCHECK" "${@:2}"
  complains "$1"
  [ "$(wc -l <"$err")" = 1 ] || fail "more than a line for '${*:2}'"
  [ ! -s "$out" ] || fail "something was started for '${*:2}'"
}
mkdir "$work/bare"
printf '#!/bin/sh\nexec %q -S -I "$@"\n' "$PYTHON" >"$work/bare/python3"
chmod +x "$work/bare/python3"
refused "cannot find the program '/nowhere/python3'" --python --interpreter /nowhere/python3
refused "No module named" --python --interpreter "$work/bare/python3"
refused "another Python with --interpreter" --python --interpreter /bin/true
refused "'wrap' is not checked through Python" --python --only wrap
refused "leave out --faults" --python --faults
refused "leave out --device" --python --device cuda
refused "not --backend nccl" --python --backend nccl
refused "is about --python" --interpreter "$PYTHON"
refused "is about --python" --require torch
refused "lib=numpy" --python --repro exact,backend=shm,np=2
refused "no such case with lib=torch" --repro wrap,backend=shm,np=2,lib=torch
