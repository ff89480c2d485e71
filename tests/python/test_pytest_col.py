"""The pytest plug-in, by whole sessions of pytest."""

import os
import subprocess
import sys
import textwrap
import xml.etree.ElementTree

import pytest

import col
import processes

pytest_plugins = "pytester"
PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(col.__file__)))
OPTIONS = ("-p", "pytest_col", "-p", "no:cacheprovider", "-p", "no:hypothesispytest")


@pytest.fixture
def session(pytester, monkeypatch):
    """Runs pytest on a text as test_it.py, and returns its result."""
    monkeypatch.setenv("PYTHONPATH", PACKAGE)

    def run(text, *options, plugins=OPTIONS, head=""):
        pytester.makepyfile(test_it=f"{head}\nimport os, sys, time, pytest, col\n{textwrap.dedent(text)}")
        return pytester.runpytest_subprocess(*plugins, *options, timeout=3 * processes.LIMIT)

    return run


def outcomes(result, **expected):
    result.assert_outcomes(**expected)


def test_passes_and_failures(session):
    result = session(
        """
        @pytest.fixture(scope="module")
        def once(tmp_path_factory):
            print("made once")
            return []

        @pytest.mark.ranks(3)
        def test_good(group, rank, once, shared_tmp_path, tmp_path):
            once.append(rank)
            assert (group.rank, group.size) == (rank, 3) and col.get_group().rank == rank
            (shared_tmp_path / str(rank)).touch()
            group.barrier()
            assert len(list(shared_tmp_path.iterdir())) == 3 and not list(tmp_path.iterdir())

        @pytest.mark.ranks(3)
        def test_bad(group, rank):
            print("said by", rank)
            assert rank != 1, "as it should be"
            group.barrier()

        @pytest.mark.ranks(3)
        def test_next(group, rank, once, capsys):
            group.barrier()
            print("captured")
            assert once == [rank] and capsys.readouterr().out == "captured\\n"

        @pytest.mark.ranks(3)
        def test_skip_of_one(group, rank):
            if rank == 1:
                pytest.skip("not here")
            group.barrier()

        @pytest.mark.ranks(3)
        def test_skip(group):
            pytest.skip("nowhere")

        @pytest.mark.ranks(3)
        @pytest.mark.xfail(reason="known", raises=AssertionError)
        def test_xfail(group, rank):
            assert rank == 0
            group.barrier()

        @pytest.mark.ranks(3)
        def test_crash(group, rank):
            if rank == 2:
                os._exit(4)
            group.barrier()

        @pytest.mark.ranks(2, 3)
        def test_sizes(group):
            group.barrier()

        @pytest.fixture
        def bad_end(rank):
            yield
            assert rank != 0, "teardown"

        @pytest.mark.ranks(2)
        def test_teardown(group, bad_end):
            group.barrier()

        def test_ordinary():
            assert "COL_RANK" not in os.environ
        """,
        "--junitxml=it.xml", "-v")
    outcomes(result, passed=6, failed=3, skipped=1, xfailed=1, errors=1)
    result.stdout.fnmatch_lines(["*test_sizes?2 ranks? PASSED*", "*test_sizes?3 ranks? PASSED*"])
    result.stdout.fnmatch_lines(["*AssertionError: as it should be", "*this is of rank 1*", "*rank 0 stdout call*", "said by 0"])
    result.stdout.fnmatch_lines(["rank 1 skipped the test (Skipped: not here), and ranks 0, 2 did not: all ranks must skip, or none"])
    result.stdout.fnmatch_lines(["rank 2's process exited with code 4*"])
    cases = {case.get("name"): case for case in xml.etree.ElementTree.parse("it.xml").iter("testcase")}
    assert [(p.get("name"), p.get("value")) for p in cases["test_bad"].iter("property")] == [("rank", "1")]


def test_subtests(session):
    pytest.importorskip("_pytest.subtests")
    result = session(
        """
        @pytest.mark.ranks(2)
        def test_it(group, rank, subtests):
            with subtests.test("of rank 1"):
                assert rank == 0, "as it should be"
            with subtests.test("that is stopped"):
                group.barrier()
            group.barrier()
            group.barrier()

        @pytest.mark.ranks(2)
        def test_next(group, subtests):
            with subtests.test("good"):
                group.barrier()
        """)
    outcomes(result, passed=1, failed=1)
    result.stdout.fnmatch_lines(["rank 1, test_it ?of rank 1?:", "*as it should be"])


def test_hooks_of_pytest(session):
    """Warnings are errors, and asserts say how two values differ."""
    result = session(
        """
        import warnings

        @pytest.mark.ranks(2)
        @pytest.mark.filterwarnings("error")
        def test_warning(group):
            warnings.warn("as a test wants")

        @pytest.mark.ranks(2)
        def test_values(group):
            assert [1, 2, 3] == [1, 2, 4]
        """)
    outcomes(result, failed=2)
    result.stdout.fnmatch_lines(["*UserWarning: as a test wants", "*At index 2 diff*"])


def test_a_consequence_is_no_cause(session):
    """Rank 0 gets Mismatch in the call, from a fixture of rank 1 that ends because its test has failed."""
    result = session(
        """
        @pytest.fixture
        def meets(group, rank):
            yield
            if rank == 1:
                group.barrier()

        @pytest.mark.ranks(2)
        def test_it(group, rank, meets):
            assert rank == 0, "as it should be"
            import array; group.allreduce(array.array("f", [1.0]))
        """)
    result.stdout.fnmatch_lines(["*AssertionError: as it should be"])


def test_a_rank_in_setup_hides_no_failure(session):
    result = session(
        """
        import signal

        @pytest.fixture
        def slow(rank):
            if rank == 1:
                signal.pause()

        @pytest.mark.ranks(2)
        def test_it(slow, rank):
            assert rank == 1, "as it should be"

        @pytest.mark.ranks(2)
        def test_skip(slow, rank):
            pytest.skip("not here")
        """)
    outcomes(result, failed=2)
    result.stdout.fnmatch_lines(["*as it should be*", "rank 0 skipped the test*"])


def test_a_rank_that_does_not_stop_hides_no_failure(session):
    result = session(
        """
        import signal

        @pytest.mark.ranks(2)
        def test_it(rank):
            assert rank == 1, "as it should be"
            while True:
                try:
                    signal.pause()
                except Exception:
                    pass
        """)
    outcomes(result, failed=1)
    result.stdout.fnmatch_lines(["rank 0 has ended it*", "rank 0 failed:", "*as it should be"])


def test_a_crash_with_new_processes(session):
    result = session(
        """
        @pytest.mark.ranks(2)
        @pytest.mark.parametrize("x", range(2))
        def test_it(group, rank, x):
            if (x, rank) == (0, 1):
                os._exit(4)
            group.barrier()
        """, "--col-fresh")
    outcomes(result, passed=1, failed=1)


def test_ranks_that_do_not_start_are_tried_once(session, pytester):
    result = session(
        """
        if "COL_RANK" in os.environ:
            open("starts", "a").write("x")
            os._exit(3)

        @pytest.mark.ranks(1)
        @pytest.mark.parametrize("x", range(3))
        def test_it(x):
            pass
        """)
    outcomes(result, errors=3)
    assert (pytester.path / "starts").read_text() == "x"


def test_a_rank_whose_pytest_fails(session, pytester):
    pytester.makeconftest("""
        import os
        def pytest_sessionstart():
            assert "COL_RANK" not in os.environ, "as a test wants"
        """)
    outcomes(result := session(FOUR), errors=4)
    result.stdout.fnmatch_lines(["*rank [01] raised RuntimeError: pytest ended on this rank with exit code 3*", "*as a test wants*"])


def test_a_group_outlives_a_skip(session):
    result = session(
        """
        @pytest.fixture(scope="session")
        def first():
            return col.init()

        @pytest.mark.ranks(2)
        def test_skip(first):
            pytest.skip("nowhere")

        @pytest.mark.ranks(2)
        def test_next(first):
            first.barrier()
        """)
    outcomes(result, passed=1, skipped=1)


def test_unused_it_imports_nothing(session):
    result = session(
        """
        def test_modules():
            assert {name for name in MODULES if name.split(".")[0] in ("col", "pytest_col")} == {"pytest_col"}
        """,
        head="import sys; MODULES = set(sys.modules)")
    outcomes(result, passed=1)


@pytest.mark.parametrize("where", ["collection", "setup", "call", "teardown", "exit"])
def test_a_rank_that_hangs(session, where):
    result = session(
        f"""
        import atexit

        def hang(here):
            if here == {where!r} and os.environ.get("COL_RANK") == "1":
                while True:
                    time.sleep(0.01)

        hang("collection")

        @pytest.fixture
        def fixture(rank):
            hang("setup")
            yield
            hang("teardown")

        @pytest.mark.ranks(2)
        def test_it(group, fixture):
            atexit.register(hang, "exit")
            group.barrier()
            hang("call")
            group.barrier()

        def test_other():
            pass
        """,
        "--col-timeout", "8")
    assert result.ret == 1
    if where == "exit":
        outcomes(result, passed=2)
        result.stdout.fnmatch_lines(["*rank 1 of 2 has not exited within 8 s:", "*in hang"])
    else:
        outcomes(result, passed=1, **({"errors": 1} if where == "collection" else {"failed": 1}))
        result.stdout.fnmatch_lines(["time is up after 8 s", "*in hang"])
    if where == "call":
        result.stdout.fnmatch_lines(["rank 0 has waited for * in barrier #2 *test_it.py*", "*test_it.py*in test_it"])


def test_ranks_that_collect_other_tests(session):
    result = session(
        """
        rank = os.environ.get("COL_RANK")

        @pytest.mark.ranks(3)
        @pytest.mark.parametrize("x", [0, 7 if rank == "1" else 1])
        def test_it(group, x):
            group.barrier()
        """)
    outcomes(result, passed=1, errors=1)
    result.stdout.fnmatch_lines(["rank 1 collected other tests, without test_it.py::test_it?1?"])


FOUR = """
    @pytest.mark.ranks(2)
    @pytest.mark.parametrize("x", range(4))
    def test_it(group, rank, x):
        assert (x, rank) != (1, 1)
        group.barrier()
    """


def test_first_last_and_some(session):
    plugins = ("-p", "pytest_col")
    outcomes(session(FOUR, "-x", plugins=plugins), passed=1, failed=1)
    outcomes(session(FOUR, "--lf", plugins=plugins), failed=1)
    outcomes(session(FOUR, "-k", "0 or 3", plugins=plugins), passed=2, deselected=2)
    outcomes(session(FOUR, "--col-ranks", "1,3"), failed=1, passed=7)
    outcomes(session(FOUR, "--col-fresh", "-x"), passed=1, failed=1)


def test_output_is_shown(session):
    result = session(
        """
        @pytest.mark.ranks(2)
        def test_it(group, rank):
            print("hello of", rank)
        """, "-s")
    outcomes(result, passed=1)
    result.stdout.fnmatch_lines_random(["*[[]0] hello of 0", "*[[]1] hello of 1"])


def test_fixtures_of_ordinary_tests_end(session, pytester):
    pytester.makepyfile(test_next="def test_last(): pass")
    result = session(
        """
        @pytest.fixture(scope="module")
        def made():
            yield
            print("it ends")
            assert False, "as a test wants"

        def test_first(made):
            pass

        @pytest.mark.ranks(1)
        def test_it(group):
            pass
        """)
    outcomes(result, passed=3, errors=1)
    result.stdout.fnmatch_lines(["*ERROR at teardown of test_it*", "*as a test wants*"])


def test_several_workers(session):
    pytest.importorskip("xdist")
    result = session(FOUR, "-n", "2", plugins=("-p", "pytest_col"))
    outcomes(result, passed=3, failed=1)


@pytest.mark.parametrize("options, answer", [((), 4), (("--col-ranks", "5,2"), 2), (("other_test.py::test_it",), None)])
def test_workers_of_auto(pytester, monkeypatch, options, answer):
    """A worker has so many ranks. A mark in a comment counts, too; one in a file without tests does not."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(13)))
    pytester.makepyfile(test_it="import pytest\n@pytest.mark.ranks(2, 3)\ndef test_it(group): pass", helpers="# mark.ranks(9)")
    pytester.makepyfile(other_test="import pytest\ndef test_it(): pass")
    config = pytester.parseconfigure(*OPTIONS, *options)
    assert config.pluginmanager.get_plugin("pytest_col").pytest_xdist_auto_num_workers(config) == answer


def test_auto_starts_workers(session):
    pytest.importorskip("xdist")
    result = session(FOUR, "-n", "auto", plugins=("-p", "pytest_col"))
    outcomes(result, passed=3, failed=1)


def test_coverage(session, pytester):
    pytest.importorskip("pytest_cov")
    pytester.makepyfile(covered="def first(rank):\n    if rank == 0:\n        return 1\n    return 2\n")
    (pytester.path / ".coveragerc").write_text("[run]\npatch = subprocess\n")
    result = session(
        """
        import covered
        @pytest.mark.ranks(2)
        def test_it(group, rank):
            assert covered.first(rank) == rank + 1
        """, "--cov=covered", "--cov-report=term-missing")
    outcomes(result, passed=1)
    result.stdout.fnmatch_lines(["covered.py * 100%*"])


@pytest.mark.parametrize("option, words", [
    ("--pdb", "--pdb and --trace do not reach ranks, and test_it.py::test_it?0? runs on some*"),
    ("--col-ranks=0", "*takes numbers of ranks, such as 2,4"), ("--col-timeout=0", "--col-timeout 0: it takes seconds above 0"), ("--col-ranks=x", "*takes numbers of ranks, such as 2,4"),
])
def test_refused(session, option, words):
    result = session(FOUR, option)
    assert result.ret == 4
    result.stderr.fnmatch_lines(["ERROR: " + words])


def test_marks_and_fixtures(session):
    outcomes(session("def test_it(group): pass\ndef test_two(rank): pass"), errors=2)
    result = session("@pytest.mark.ranks('x')\ndef test_it(group): pass")
    result.stdout.fnmatch_lines(["*takes numbers of ranks: ranks(2, 4)*"])


def test_marks_of_other_items(session):
    result = session(
        """
        import unittest
        class Case(unittest.TestCase):
            @pytest.mark.ranks()
            def test_it(self):
                pass
        """)
    result.stderr.fnmatch_lines(["ERROR: *test_it: @pytest.mark.ranks(2) is for test functions, and takes numbers of ranks"])


def test_options_of_the_reporting_session(session, pytester):
    pytester.makeini("[pytest]\nlog_file = it.log\nlog_file_level = INFO")
    result = session(
        """
        import logging

        @pytest.mark.ranks(1)
        def test_it(group):
            logging.getLogger().warning("of a rank")
            group.barrier()
        """, "--setup-show")
    outcomes(result, passed=1)
    assert "of a rank" not in (pytester.path / "it.log").read_text()


def test_two_sessions_at_once(session, pytester):
    text = """
        @pytest.mark.ranks(2)
        def test_it(group, shared_tmp_path):
            import pathlib
            pathlib.Path(f"begun.{os.getppid()}").touch()
            end = time.monotonic() + 60
            while len(list(pathlib.Path().glob("begun.*"))) < 2 and time.monotonic() < end:
                time.sleep(0.01)
            assert len(list(pathlib.Path().glob("begun.*"))) == 2
            group.barrier()
        """
    pytester.makepyfile(test_it="import os, sys, time, pytest, col\n" + textwrap.dedent(text))
    other = subprocess.Popen([sys.executable, "-m", "pytest", *OPTIONS, "test_it.py"], stdout=subprocess.PIPE, text=True)
    outcomes(session(text), passed=1)
    assert "1 passed" in processes.finish(other)[1]
