"""Each test is in one of the suites that tests/meson.build names; the cases that one leaves to the rest are run there.

usage: suites.py BUILD_FOLDER
"""
import collections, json, os, sys

KINDS = {"unit", "conformance", "system", "gpu"}
OTHERS = {"rest", "no_sanitizer", "python", "ray", "torch"}


def suites_of(test):
    return {suite.split(":")[-1] for suite in test["suite"]}


def complaints(test, names):
    suites = suites_of(test)
    if len(suites & KINDS) != 1:
        yield "must be in one of " + ", ".join(sorted(KINDS))
    if suites - KINDS - OTHERS:
        yield "is in a suite that tests/meson.build does not name"
    if "rest" in suites and names[test["name"]] > 1:
        yield "is in the rest, by a name that another test has, too"
    if "[rest]" in test["cmd"] and "rest" not in suites:
        yield "runs the cases of the rest, and is not in it"


def check(tests):
    """The complaints, a line each."""
    names = collections.Counter(test["name"] for test in tests)
    found = [f"{test['name']} ({', '.join(sorted(suites_of(test)))}) {text}" for test in tests for text in complaints(test, names)]
    left = {test["cmd"][0] for test in tests if "~[rest]" in test["cmd"]}
    taken = {test["cmd"][0] for test in tests if "rest" in suites_of(test) and test["cmd"][1:] in ([], ["[rest]"])}
    found += [f"{program} has cases that only the rest would run, and does not" for program in left - taken]
    found += [f"{test['name']} runs what the core runs, too" for test in tests if "[rest]" in test["cmd"] and test["cmd"][0] not in left]
    return found


def planted(name, *suites, cases=None):
    return {"name": name, "suite": ["col:" + suite for suite in suites], "cmd": ["program"] + ([cases] if cases else [])}


def check_itself():
    """Each planted mistake is found."""
    for wrong in ([planted("a", "rest")], [planted("a", "unit", "system")], [planted("a", "unit", "rest4")],
                  [planted("a", "unit", "rest"), planted("a", "unit")],
                  [planted("a", "unit", cases="~[rest]")], [planted("a", "unit", "rest", cases="[rest]")],
                  [planted("a", "unit", cases="~[rest]"), planted("b", "unit", cases="[rest]")]):
        assert check(wrong), wrong
    assert not check([planted("a", "unit", cases="~[rest]"), planted("b", "unit", "rest", cases="[rest]"),
                      planted("c", "unit", "rest", "no_sanitizer")])


def main():
    check_itself()
    with open(os.path.join(sys.argv[1], "meson-info", "intro-tests.json")) as file:
        tests = json.load(file)
    assert tests
    found = check(tests)
    print("\n".join(found))
    sys.exit(1 if found else 0)


main()
