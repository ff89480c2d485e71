"""Each test is in one of the suites that tests/meson.build names; each variant in one third, and nothing else in any.

usage: suites.py BUILD_FOLDER
"""
import json, os, sys

KINDS = {"unit", "long", "conformance", "system", "gpu"}
THIRDS = {"third1", "third2", "third3"}
OTHERS = {"proof", "no_sanitizer", "slow_to_build", "python", "ray", "torch", "variant"}


def complaint(suites):
    if len(suites & KINDS) != 1:
        return "must be in one of " + ", ".join(sorted(KINDS))
    if "variant" in suites and len(suites & THIRDS) != 1:
        return "is a variant, and must be in one third"
    if "variant" not in suites and suites & THIRDS:
        return "is in a third, but no variant"
    if suites - KINDS - THIRDS - OTHERS:
        return "is in a suite that tests/meson.build does not name"
    return ""


def check(tests):
    """The complaints, a line each."""
    found = []
    for test in tests:
        suites = {suite.split(":")[-1] for suite in test["suite"]}
        if complaint(suites):
            found.append(f"{test['name']} ({', '.join(sorted(suites))}) {complaint(suites)}")
    return found


def check_itself():
    """Each planted mistake is found."""
    for suites in (["unit", "variant"], ["unit", "third1"], ["unit", "variant", "third1", "third2"], ["proof"],
                   ["unit", "system"], ["unit", "third4"]):
        assert check([{"name": "planted", "suite": ["col:" + suite for suite in suites]}]), suites
    assert not check([{"name": "fine", "suite": ["col:unit", "col:variant", "col:third2"]}])


def main():
    check_itself()
    with open(os.path.join(sys.argv[1], "meson-info", "intro-tests.json")) as file:
        tests = json.load(file)
    assert tests
    found = check(tests)
    print("\n".join(found))
    sys.exit(1 if found else 0)


main()
