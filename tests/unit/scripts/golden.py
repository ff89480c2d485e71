"""scripts/golden finds the one word that differs between two builds, masks what chance changes, and says what is missing in one line."""

import pathlib
import subprocess
import sys
import tempfile

GOLDEN = sys.argv[1]
TOOL = """#!/bin/sh
case " $* " in
  *" --list-options "*) printf ';;;\\n--good;;;a flag\\n--json;FILE;<file>;where to\\n' ;;
  *" --json "*) echo "it took {milliseconds} ms and was {word}" ;;
  *) echo "done after {milliseconds} ms" ;;
esac
"""


def golden(*words, code=0):
    done = subprocess.run([sys.executable, "-B", GOLDEN, *map(str, words)], capture_output=True, text=True, timeout=60)
    assert done.returncode == code, (words, done)
    assert code != 2 or done.stdout == "" and done.stderr.startswith("golden: ") and done.stderr.count("\n") == 1, done
    return done.stdout + done.stderr


def build(folder, milliseconds, word):
    for tool in "colrun", "colbench", "colcheck", "coljob":
        program = folder / "src/tools" / tool / tool
        program.parent.mkdir(parents=True)
        program.write_text(TOOL.format(milliseconds=milliseconds, word=word if tool == "colcheck" else "good"))
        program.chmod(0o755)
    return folder


with tempfile.TemporaryDirectory() as name:
    work = pathlib.Path(name)
    before, later, changed = build(work / "before", 12, "good"), build(work / "later", 3.5, "good"), build(work / "changed", 3.5, "bad")
    for side in before, later, changed:
        golden("record", side, work / f"{side.name}.said")
    assert golden("compare", work / "before.said", work / "later.said") == "0 runs differ\n"
    found = golden("compare", work / "before.said", work / "changed.said", code=1)
    assert found.splitlines()[0] == "== colcheck --json" and found.splitlines()[-1] == "1 runs differ", found
    assert "\n-it took N and was good\n+it took N and was bad\n" in found, found
    assert found.count("==") == 1, found

    # A build without a list takes that of another; one of them has to have it.
    silent = work / "silent/src/tools/colrun/colrun"
    build(work / "silent", 12, "good")
    silent.write_text("#!/bin/sh\necho 'unknown option'; exit 2\n")
    assert "colrun does not list its options; name a build" in golden("record", work / "silent", work / "silent.said", code=2)
    golden("record", work / "silent", work / "silent.said", later)
    assert "== colrun --json" in golden("compare", work / "before.said", work / "silent.said", code=1)

    # One line for what is missing or in the way, and nothing is left half done.
    (work / "before.said/coljob.json").unlink()
    assert "coljob.json: No such file or directory; 'golden record BUILD " in golden("compare", work / "before.said", work / "later.said", code=2)
    assert "nowhere/colrun.json: " in golden("compare", work / "nowhere", work / "later.said", code=2)
    assert "there is no program " in golden("record", work / "nowhere", work / "new", code=2)
    assert not (work / "new").exists()
    assert "File exists; name a new one" in golden("record", later, work / "later.said", code=2)
    for words in [], ["compare"], ["record", "one"], ["nonsense", "a", "b"]:
        assert "see golden --help" in golden(*words, code=2)
    assert "golden compare BEFORE AFTER" in golden("--help")
