"""The proof that a change of the tests loses nothing: mutants, small changes of the sources that some test has to notice. The same
mutants have to die before and after.

A mutant is a condition that is turned, a bound that is moved by one, an early return or throw that is dropped, a memory order that is
relaxed, or an assignment that is skipped. One build (build-mutants/) holds all of them, and a variable, COL_MUTANT, picks one when a
program starts. tests/mutants.txt lists them by function and text, so that each is found again after files have moved, and
tests/mutants.log has a line for what became of each; a later call goes on behind it.

  draw      draws so many of each room, by a seed, and writes the list
  find      says which of them the sources do not have any more, and what is nearest; --accept takes that
  build     builds all; those that do not compile are dropped
  map       runs the tests without any mutant, to know which of them come to which
  run       runs, for each mutant, the tests that come to it, the quickest first, until one fails. Another of its room takes the place
            of one that lives; it ends when 10 of each room have died
  report    prints a table by rooms, and those that live

After a change: find, build, map, and `run --again`, which begins a new chapter of the log, for all that died in the first one. It needs
root, as each test runs in namespaces of its own.
"""
import argparse, concurrent.futures, os, pathlib, sys, time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import fates, sites, tree, trial

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
FOLDER = ROOT / "build-mutants"
LIST, LOG = ROOT / "tests/mutants.txt", ROOT / "tests/mutants.log"


def parse():
    parser = argparse.ArgumentParser(prog="scripts/dev mutants", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    add = lambda name: commands.add_parser(name, prog=f"scripts/dev mutants {name}")
    draw = add("draw")
    draw.add_argument("--seed", help="eight hexadecimal digits; default: those with which the last commit begins")
    draw.add_argument("--count", type=int, default=fates.DRAWN, help=f"of each room; default: {fates.DRAWN}")
    add("find").add_argument("--accept", action="store_true", help="takes what is nearest into the list")
    building = add("build")
    building.add_argument("--jobs", type=int, default=2, help="compilers at a time; default: 2")
    building.add_argument("tests", nargs="*", help="programs of these tests alone; default: of the core")
    mapping = add("map")
    mapping.add_argument("tests", nargs="*", help="these tests alone; default: the core")
    running = add("run")
    running.add_argument("--again", action="store_true", help="begins a new chapter of the log")
    running.add_argument("--jobs", type=int, default=1, help="mutants at a time; default: 1")
    running.add_argument("--only", metavar="ROOM|NUMBER", help="those of a room, or one")
    for command in (mapping, running):
        command.add_argument("--minutes", type=float, default=1e9, help="begins nothing new after so many")
    add("report")
    return parser.parse_args()


def read_list():
    if not LIST.exists():
        sys.exit("there is no list of mutants yet: run scripts/dev mutants draw")
    return fates.read_list(LIST)


def draw(arguments):
    log = fates.Log(ROOT, LOG)
    if any(log.chapters):
        sys.exit(f"{LOG} tells of mutants that were drawn before: remove it first, if they are to be forgotten")
    seed = arguments.seed or log.git("rev-parse", "HEAD").stdout[:8]
    mutants = fates.draw(sites.named(tree.sources(ROOT)), seed, arguments.count)
    fates.write_list(LIST, seed, mutants)
    log.write(f"drawn seed {seed}: {len(mutants)} mutants of {len(fates.of_rooms(mutants))} rooms")


def find(arguments):
    seed, mutants = read_list()
    named = sites.named(tree.sources(ROOT))
    results = []
    for mutant in mutants:
        results.append(mutant)
        if fates.name_of(mutant) in named:
            continue
        near = fates.nearest(mutant, named)
        print(f"{mutant.number} {mutant.room}: {mutant.function} has no '{mutant.text}'" + (f"; {near[1]} has '{near[2]}'" if near else ""))
        if near and arguments.accept:
            kind, function, text, which = near
            results[-1] = mutant._replace(kind=kind, function=function, text=text, which=which)
    lost = sum(fates.name_of(mutant) not in named for mutant in results)
    print(f"{len(mutants) - lost} of {len(mutants)} mutants are there.")
    if arguments.accept:
        fates.write_list(LIST, seed, results)
    return 1 if lost else 0


def build(arguments):
    mutants, log = read_list()[1], fates.Log(ROOT, LOG)
    named = sites.named(tree.sources(ROOT))
    dropped = {number for number, fate in log.chapters[-1].items() if fate.result == "uncompiled"}
    placed = {mutant.number: named[fates.name_of(mutant)] for mutant in mutants
              if mutant.number not in dropped and fates.name_of(mutant) in named}
    drop = lambda numbers: [log.add(number, fates.Fate("uncompiled", 0, "")) for number in numbers]
    tree.build(ROOT, FOLDER, placed, drop, arguments.tests, arguments.jobs)
    (FOLDER / "map.json").unlink(missing_ok=True)
    print(f"{len(placed)} mutants are in {FOLDER}, {len(mutants) - len(placed)} are not.")


def tests():
    if os.geteuid() != 0:
        sys.exit("run this as root: a mutant must not reach the machine's other processes and files, and namespaces see to that")
    if not (FOLDER / "build/meson-info/intro-tests.json").exists():
        sys.exit("there is no build yet: run scripts/dev mutants build")
    return trial.tests_of(FOLDER / "build")


def until(arguments):
    end = time.monotonic() + 60 * arguments.minutes
    return lambda: time.monotonic() < end


def make_map(arguments):
    known, is_time = trial.Map(FOLDER / "map.json"), until(arguments)
    for test in tests():
        is_chosen = not arguments.tests or test.name.split("/")[1] in arguments.tests
        if test.name in known.tests or not is_chosen or not is_time():
            continue
        ran = trial.run(test, FOLDER, 3 * test.limit)
        known.add(test, ran)
        failure = "" if ran.code in (0, trial.SKIPPED) else f", FAILED with {ran.code}"
        print(f"{test.name}: {ran.seconds:.1f} s, {len(ran.seen)} mutants{failure}", flush=True)
        if ran.code != 0:
            (FOLDER / f"failed-{test.name.replace('/', '-')}.txt").write_text(ran.words)
    failed = [name for name, test in known.tests.items() if test["code"] not in (0, trial.SKIPPED)]
    seen = set().union(*(test["seen"] for test in known.tests.values()))
    print(f"{len(known.tests)} tests come to {len(seen)} mutants. Not used, as they fail without one: {', '.join(failed) or 'none'}")


def run(arguments):
    (_, mutants), log, known = read_list(), fates.Log(ROOT, LOG), trial.Map(FOLDER / "map.json")
    all_tests, is_time = tests(), until(arguments)
    if not known.tests:
        sys.exit("it is not known which tests come to which mutants: run scripts/dev mutants map")
    if arguments.again:
        log.begin_again()
    is_whole = all(test.name in known.tests for test in all_tests)
    under_way = {}
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        while True:
            while len(under_way) < arguments.jobs and is_time():
                number = fates.next_to_run(mutants, log, arguments.only, under_way.values())
                if number is None:
                    break
                under_way[pool.submit(trial.try_mutant, number, all_tests, known, FOLDER, log.killer(number))] = number
            if not under_way:
                break
            for done in concurrent.futures.wait(under_way, return_when="FIRST_COMPLETED").done:
                # Only one that died needs no look at the tests that the map does not have yet.
                log.add(under_way.pop(done), done.result(), is_whole or done.result().result == "died")
    if not is_whole:
        print("The map lacks tests: what did not die is not in the log. Run scripts/dev mutants map for them.")


def report(_):
    (seed, mutants), log = read_list(), fates.Log(ROOT, LOG)
    results = ("died", "lived", "unreached", "hung", "uncompiled")
    print(f"seed {seed}, chapter {len(log.chapters)} of tests/mutants.log")
    print(f"{'room':18}" + "".join(f"{result:>11}" for result in results) + f"{'to run':>11}")
    chosen = {mutant.number for mutant in fates.to_run(mutants, log)}
    rows = list(fates.of_rooms(mutants).items()) + [("all", mutants)]
    for room, of_room in rows:
        fate_of = [log.chapters[-1][mutant.number].result for mutant in of_room if mutant.number in log.chapters[-1]]
        left = sum(mutant.number in chosen and mutant.number not in log.chapters[-1] for mutant in of_room)
        print(f"{room:18}" + "".join(f"{fate_of.count(result):11}" for result in results) + f"{left:11}")
    times = [fate.seconds for fate in log.chapters[-1].values() if fate.result != "uncompiled"]
    if times:
        print(f"A mutant took {sum(times) / len(times):.0f} s.")
    for mutant in mutants:
        fate = log.chapters[-1].get(mutant.number)
        if fate and fate.result in ("lived", "hung", "unreached"):
            print(f"{fate.result}: {mutant.number} {mutant.room}, {mutant.kind} in {mutant.function}: {mutant.text} ({fate.test})")
    return 1 if not log.is_first() and any(not fates.died(log.chapters[-1], mutant) for mutant in mutants if mutant.number in chosen) else 0


if __name__ == "__main__":
    arguments = parse()
    sys.exit({"draw": draw, "find": find, "build": build, "map": make_map, "run": run, "report": report}[arguments.command](arguments))
