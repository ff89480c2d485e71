"""Runs a test with a mutant, where it can reach nothing else: a mutant may send a signal to all processes, remove a folder, or never
end. So each test has its own processes, and what it writes is in memory and gone when it ends.
"""
import collections, json, os, pathlib, subprocess, time

from fates import Fate

Ran = collections.namedtuple("Ran", "code seconds seen words")  # code is None if it was ended at the limit
SKIPPED = 77
HANGS = 2  # tests that a mutant may hang until it is left alone
BUDGET = 120  # seconds of tests, as the map has them, that a mutant lives through until another one takes its place
LAST_WORDS = 20000
# The first process of the namespace: it waits for all others, and they end with it. Everything is read-only, and the build folder
# lies below a layer of memory.
ROOM = r"""
folder=$1; last=$2; shift 2
exec 9>&2 2>&1
places=$(awk '$3 !~ /^(proc|sysfs|cgroup2?|devtmpfs|devpts|tmpfs|mqueue|overlay)$/ || $2 == "/" { print $2 }' /proc/self/mounts)
for place in $places; do mount -o remount,bind,ro "$place" || exit 125; done
mount -t tmpfs -o size=2g,mode=1777 tmpfs /tmp && mount -t tmpfs -o size=2g,mode=1777 tmpfs /dev/shm &&
  mount -t tmpfs -o size=1g tmpfs /mnt && mkdir /mnt/upper /mnt/work &&
  mount -t overlay -o "lowerdir=$folder,upperdir=/mnt/upper,workdir=/mnt/work" overlay "$folder" || exit 125
cd "$PWD" || exit 125
ulimit -c 0; ulimit -d 8388608
"$@" </dev/null >/tmp/mutants.out 9>&-
code=$?
tail -c "$last" /tmp/mutants.out
cat /tmp/mutants.seen >&9 2>/dev/null
exit $code
"""


class Test:
    def __init__(self, described, build):
        suites = [suite.split(":")[-1] for suite in described["suite"]]
        kind = next((suite for suite in ("unit", "conformance", "system") if suite in suites), "other")
        self.name = f"{kind}/{described['name']}"
        self.rank = ("unit", "conformance", "system", "other").index(kind), described["timeout"]
        self.command, self.environment = described["cmd"], described["env"]
        self.folder, self.limit = described.get("workdir") or build, described["timeout"]
        self.needs_mutants = "rest" not in suites and not {"python", "ray", "torch"} & set(suites)


def tests_of(build):
    """The core's, the quick suites first, of programs that could be built."""
    described = json.loads((build / "meson-info/intro-tests.json").read_text())
    tests = [Test(test, build) for test in described]
    return sorted((test for test in tests if test.needs_mutants and is_built(test, build)), key=lambda test: test.rank)


def is_built(test, build):
    values = list(test.command) + list(test.environment.values())
    return all(os.path.exists(value) for value in values if value.startswith(f"{build}/") and ":" not in value)


def run(test, folder, limit, number=0):
    environment = {**os.environ, **test.environment, "COL_MUTANT": str(number), "COL_MUTANT_SEEN": "/tmp/mutants.seen"}
    environment.pop("TMPDIR", None)
    began = time.monotonic()
    # All ends with this script, too, however that ends.
    room = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", "unshare", "--mount", "--propagation", "private", "--pid", "--fork",
                             "--kill-child", "--mount-proc", "bash", "-c", ROOM, "mutants", str(folder), str(LAST_WORDS), *test.command],
                            cwd=test.folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE)
    try:
        words, seen = room.communicate(timeout=limit)
        code = room.returncode
    except subprocess.TimeoutExpired:
        room.kill()
        words, seen = room.communicate()
        code = None
    return Ran(code, time.monotonic() - began, [number for number, byte in enumerate(seen) if byte == 1], words.decode(errors="replace"))


class Map:
    """Which test comes to which mutants, how long it takes, and whether it passes without any: build-mutants/map.json."""

    def __init__(self, path):
        self.path = path
        self.tests = json.loads(path.read_text()) if path.exists() else {}

    def add(self, test, ran):
        self.tests[test.name] = {"code": ran.code, "seconds": ran.seconds, "seen": ran.seen}
        self.path.write_text(json.dumps(self.tests))

    def reaching(self, number, tests):
        """The quickest first."""
        known = [test for test in tests if number in self.tests.get(test.name, {}).get("seen", ()) and self.tests[test.name]["code"] == 0]
        return sorted(known, key=self.seconds)

    def seconds(self, test):
        return self.tests[test.name]["seconds"]

    def limit(self, test):
        # Far above what the test takes, as a deadline of the product is a death, and counts more than ours.
        return min(3 * test.limit, max(60, 10 * self.seconds(test)))


def try_mutant(number, tests, known, folder, killer=""):
    """What becomes of a mutant under the tests that come to it. One that has died before, by the test `killer`, is given all of them."""
    reaching = known.reaching(number, tests)
    if not reaching:
        return Fate("unreached", 0, "")
    reaching.sort(key=lambda test: test.name != killer)
    began, hung, spent, asked = time.monotonic(), [], 0, 0
    for test in reaching:
        spent += known.seconds(test)
        if not killer and spent > BUDGET and asked > 0 or len(hung) == HANGS:
            break
        asked += 1
        ran = run(test, folder, known.limit(test), number)
        if ran.code is None:
            hung.append(test.name)
        # What fails once, and passes then, may have failed for another reason.
        elif ran.code not in (0, SKIPPED) and run(test, folder, known.limit(test), number).code not in (0, SKIPPED):
            (folder / f"died-{number}.txt").write_text(ran.words)
            return Fate("died", round(time.monotonic() - began), test.name)
    result, words = ("hung", "; ".join(hung)) if hung else ("lived", f"{asked} of {len(reaching)} tests")
    return Fate(result, round(time.monotonic() - began), words)
