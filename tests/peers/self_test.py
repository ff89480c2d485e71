"""What makes numbers into verdicts: states, rounds, intervals, and what the document says about who is not in it."""

import math
import os
import pathlib
import tempfile
import unittest

import gains
import loss
import picture
import plan
import report
import states
import targets
from comparison import ratio_of
from contestants import OVERLAP
from rows import Measured

FAST, SLOW = 65.0, 310.0


def launch(contestant, number, us, probes=(FAST, FAST), cell=("allreduce", 8), ranks=2, **more):
    line = {"operation": cell[0], "bytes": cell[1], "wrong": 0, "samples": 50, "median_us": us, "spent_s": 0.1}
    return {"contestant": contestant, "round": number, "ranks": ranks, "cells": [list(cell)], "trouble": "",
            "foreign": 0.0, "seconds": 0.5, "probes_ns": list(probes), "lines": [line], **more}


def run_of(launches, absent=()):
    return {"started": "2026-01-31", "command": "scripts/dev peers", "launches": launches, "colbench": [],
            "machine": {"cpu": "a processor", "processors": 2, "kernel": "6", "versions": {"MPICH 5": "5.0"}},
            "absent": dict.fromkeys(absent, "not built")}


class Picture(unittest.TestCase):
    ROOT = pathlib.Path(__file__).resolve().parents[2]

    def test_the_one_in_the_readme_is_of_the_document(self):
        if not (colbench := os.environ.get("COLBENCH")):
            self.skipTest("COLBENCH names no program")
        with tempfile.TemporaryDirectory() as folder:
            picture.write(colbench, self.ROOT / "docs/performance.md", pathlib.Path(folder) / "now.svg")
            self.assertEqual((self.ROOT / "docs/pictures/allreduce.svg").read_text(), (pathlib.Path(folder) / "now.svg").read_text(),
                             "python3 tests/peers/picture.py COLBENCH docs/performance.md docs/pictures/allreduce.svg")

    def test_the_opening_of_the_document_is_of_its_tables(self):
        page = (self.ROOT / "docs/performance.md").read_text()
        begin, end = report.marks(gains.COMMAND)
        self.assertIn(f"{begin}\n{gains.text(page)}\n{end}", page, "python3 tests/peers/gains.py docs/performance.md")

    def test_a_document_without_such_a_table_is_said_to_be_that(self):
        with self.assertRaisesRegex(SystemExit, "no table of 4 ranks"):
            picture.results("### 2 ranks, 60 ns\n\n| operation | size |\n|---|---|\n")

    def test_marks_and_dashes_are_no_times(self):
        self.assertEqual([picture.microseconds(cell) for cell in ["1,234†‡ copy", "3.9", "–", "hung"]], [1234, 3.9, None, None])


class States(unittest.TestCase):
    PROBES = [62, 310, 63, 68, 305, 300, 65, 320, 66]

    def test_two_are_found_whatever_the_machine_is(self):
        for factor in (1, 0.1, 37):
            found = states.find([probe * factor for probe in self.PROBES])
            self.assertEqual([(state.low_ns, state.high_ns) for state in found],
                             [(62 * factor, 68 * factor), (300 * factor, 320 * factor)])

    def test_what_differs_by_some_percent_is_one(self):
        self.assertEqual(len(states.find([62, 80, 70, 95, 88])), 1)

    def test_a_stray_probe_is_none(self):
        found = states.find([62 + i % 5 for i in range(60)] + [2_000_000])
        self.assertEqual(len(found), 1)
        self.assertIsNone(states.state_during((62, 2_000_000), found))
        self.assertIsNone(states.state_during((62, None), found))

    def test_strays_in_between_do_not_join_two(self):
        probes = [62 + i % 7 for i in range(40)] + [300 + i % 20 for i in range(40)]
        found = states.find(probes + [80, 95, 115, 140, 180, 230])
        self.assertEqual([state.name for state in found], ["62 to 68 ns", "300 to 319 ns"])
        self.assertEqual(states.state_during((64, 70), found), found[0])
        self.assertIsNone(states.state_during((64, 115), found))

    def test_without_probes_all_is_one(self):
        launches = [launch("col", 0, 1.0, (None, None))]
        self.assertEqual(states.of_launches(launches), ([states.ANY], [states.ANY]))
        self.assertEqual(states.find([1.3 ** i for i in range(50)]), [states.ANY])

    def test_a_launch_in_which_it_changed_is_left_out_and_counted(self):
        launches = [launch("col", 0, 1.0), launch("col", 1, 99.0, (FAST, SLOW)), launch("col", 2, 3.0, (SLOW, SLOW))]
        measured = Measured(run_of(launches), "median_us")
        self.assertEqual([row.us("col") for row in measured.rows], [1.0, 3.0])
        self.assertEqual(measured.changed, 1)
        self.assertIn("Of 3 launches, 1 are left out", report.markdown(run_of(launches), "median_us"))

    def test_a_failure_shows_though_the_state_changed(self):
        failed = launch("col", 0, 1.0, (FAST, SLOW), trouble="hung: over 90 s", lines=[])
        self.assertIn("| hung |", report.markdown(run_of([failed, launch("intel-shm", 0, 1.0)]), "median_us"))


class Ratios(unittest.TestCase):
    def test_the_interval_is_students(self):
        own = dict.fromkeys(range(3), 1.0)
        ratio = ratio_of(own, {number: math.exp(x) for number, x in enumerate((0.1, 0.2, 0.3))})
        self.assertAlmostEqual(ratio.value, math.exp(0.2))
        self.assertAlmostEqual(math.log(ratio.high), 0.2 + 4.303 * 0.1 / math.sqrt(3))
        self.assertAlmostEqual(math.log(ratio.low), 0.2 - 4.303 * 0.1 / math.sqrt(3))

    def test_behind_is_who_is_so_for_certain(self):
        own = dict.fromkeys(range(5), 1.0)
        certain = ratio_of(own, {0: 0.8, 1: 0.81, 2: 0.79, 3: 0.8, 4: 0.8})
        self.assertTrue(certain.is_behind and not certain.may_be_behind)
        scattered = ratio_of(own, {0: 0.5, 1: 1.1, 2: 0.6, 3: 1.2, 4: 0.7})
        self.assertTrue(scattered.may_be_behind and not scattered.is_behind)
        once = ratio_of({0: 1.0}, {0: 0.1})
        self.assertTrue(once.may_be_behind and not once.is_behind)
        self.assertFalse(ratio_of(own, dict.fromkeys(range(5), 0.96)).is_behind)

    def test_only_rounds_of_both_in_one_state_count(self):
        launches = [launch("col", 0, 1.0), launch("intel-shm", 0, 2.0),
                    launch("col", 1, 10.0, (SLOW, SLOW)), launch("intel-shm", 1, 2.0),
                    launch("col", 2, 1.0), launch("intel-shm", 2, 8.0)]
        fast = Measured(run_of(launches), "median_us").rows[0]
        ratio = fast.to_best()
        self.assertEqual(ratio.rounds, 2)
        self.assertAlmostEqual(ratio.value, 4.0)
        self.assertIsNone(ratio_of({0: 1.0}, {1: 1.0}))

    def test_the_best_rival_is_one_that_was_measured_beside_col(self):
        launches = [launch("col", 0, 4.0), launch("intel-shm", 1, 1.0), launch("openmpi5-copy", 0, 2.0),
                    launch("bare", 0, 0.1)]
        row = Measured(run_of(launches), "median_us").rows[0]
        self.assertEqual(row.best(), "openmpi5-copy")
        self.assertAlmostEqual(row.to_best().value, 0.5)

    def test_wrong_data_is_no_time(self):
        wrong = launch("intel-shm", 0, 0.1)
        wrong["lines"][0]["wrong"] = 3
        run = run_of([launch("col", 0, 1.0), wrong])
        self.assertIsNone(Measured(run, "median_us").rows[0].to_best())
        self.assertTrue(report.bad(run))


class Document(unittest.TestCase):
    def test_cells_behind_are_listed_with_who_is_ahead(self):
        launches = [launch(name, number, us) for number in range(4) for name, us in (("col", 2.0), ("mpich5-bound", 1.0))]
        text = report.markdown(run_of(launches), "median_us")
        self.assertIn("| allreduce, 8 B, 2 ranks | 65 to 65 ns | behind | 0.50 (0.50 to 0.50) | 4 | 2 | 1 mpich5-bound |",
                      text)
        self.assertIn("| 2 | 65 to 65 ns | 0.50 in 1 |", text)
        self.assertIn("| mean of best ÷ col, 2 ranks, up to 1 KiB | ≥ 1.05 | 65 to 65 ns | 0.50 | missed |", text)

    def test_a_row_that_col_has_not_in_a_state_is_left_out(self):
        launches = [launch("col", 0, 2.0), launch("intel-shm", 0, 3.0), launch("intel-shm", 1, 77.0, (SLOW, SLOW)),
                    launch("col", 1, 5.0, (SLOW, SLOW), cell=("broadcast", 8))]
        text = report.markdown(run_of(launches), "median_us")
        self.assertIn("| 2 | – | – | – | – | 3 | – |", text)
        self.assertNotIn("77", text)

    def test_who_is_absent_or_unusable_is_named(self):
        barrier = ("barrier", 0)
        launches = [launch("col", 0, 8.0, cell=barrier, ranks=4), launch("mpich5-bound", 0, 26e3, cell=barrier, ranks=4),
                    launch("col", 0, 8.0, ranks=4), launch("intel-shm", 0, 9.0, ranks=4)]
        text = report.markdown(run_of(launches, absent=["Open MPI 5"]), "median_us")
        self.assertIn("Open MPI 5 does not take part: not built.", text)
        self.assertIn("MPICH 5 is unusable with 4 ranks: a barrier takes 26,000 µs, col's 8.", text)

    def test_what_overlap_hides_is_in_parts_of_the_call(self):
        launches = [launch("col", 0, us, cell=(way, 32 << 20)) for way, us in zip(OVERLAP, (4000, 3400, 4100))]
        for one in launches:
            one["lines"][0]["call_us"] = 1000
        lines = list(report.overlaps(Measured(run_of(launches), "median_us")))
        self.assertEqual([line[-1] for line in lines], ["60%", "-10%"])
        self.assertEqual([line[-2] for line in lines], ["0.85", "1.02"])
        judged = targets.judged(Measured(run_of(launches), "median_us"), report.cell_name)
        self.assertEqual([line[-2:] for line in judged], [["0.85", "met"], ["1.02", "met"]])
        launches[1]["lines"][0]["median_us"] = 4300
        judged = targets.judged(Measured(run_of(launches), "median_us"), report.cell_name)
        self.assertEqual([line[-1] for line in judged], ["missed", "met"])

    def test_bfloat16_is_beside_as_many_float32(self):
        launches = [launch("col", 0, us, cell=cell, ranks=8) for cell, us in
                    ((("allreduce_bfloat16", 32 << 20), 6.0), (("allreduce", 64 << 20), 10.0))]
        judged = targets.judged(Measured(run_of(launches), "median_us"), report.cell_name)
        self.assertEqual([line[-2:] for line in judged], [["0.6", "met"]])


    def test_a_target_is_missed_for_certain_or_not_at_all(self):
        cell = ("allreduce", 32 << 20)
        for rounds, alloc, verdict in ((1, 5.0, []), (4, 5.0, ["missed"]), (4, 1.0, ["met"])):
            launches = [launch(name, number, us, cell=cell) for number in range(rounds)
                        for name, us in (("col", 2.0), ("col-alloc", alloc))]
            judged = targets.judged(Measured(run_of(launches), "median_us"), report.cell_name)
            self.assertEqual([line[-1] for line in judged], verdict)

    def test_the_table_goes_between_the_marks(self):
        with tempfile.TemporaryDirectory() as folder:
            page = pathlib.Path(folder) / "page.md"
            begin, end = report.marks(report.COMMAND)
            page.write_text(f"before\n{begin}\nold\n{end}\nafter\n")
            report.write_into(page, "new \\1")
            self.assertEqual(page.read_text(), f"before\n{begin}\nnew \\1\n{end}\nafter\n")
            page.write_text("no marks")
            with self.assertRaises(SystemExit):
                report.write_into(page, "new")


class Losses(unittest.TestCase):
    @staticmethod
    def of(name, number, caught, right, trouble=""):
        return {"name": name, "round": number, "ranks": 8, "caught_ms": caught, "right_ms": right, "trouble": trouble}

    def test_who_fails_is_counted_and_beside_others_only_in_rounds_of_both(self):
        launches = [self.of("col", 0, 5.0, 10.0), self.of("col", 1, 7.0, 20.0), self.of("openmpi5", 0, 9.0, 20.0),
                    self.of("openmpi5", 1, None, None, "hung: over 30 s")]
        text = report.markdown({**run_of([]), "losses": launches}, "median_us")
        self.assertIn("| 8 | col, renew() | 6.0 | 15.0 | 20.0 | 1.00 (1.00 to 1.00) | 0 of 2 |", text)
        self.assertIn("| 8 | Open MPI 5, ULFM | 9.0 | 20.0 | 20.0 | 2.00 (one round) | 1 of 2 |", text)
        self.assertFalse(report.bad({**run_of([]), "losses": launches}))
        self.assertTrue(report.bad({**run_of([]), "losses": [self.of("col", 0, None, None, "a survivor had no right sum")]}))

    def test_a_survivor_that_says_nothing_is_a_failure(self):
        def of(*words):
            script = lambda times: "".join(f"echo {word} >>{times};" for word in words)
            return loss.launch_once(lambda ranks, times, scratch: [(["sh", "-c", script(times)], {})], 2, 20)
        self.assertEqual(of("killed 1000000", "caught 3000000", "right 4500000"), (2.0, 3.5, ""))
        self.assertEqual(of("killed 1000000", "caught 3000000"), (None, None, "a survivor had no right sum"))


class Plan(unittest.TestCase):
    def test_a_cell_is_in_one_turn(self):
        for quick in (False, True):
            cells = [(turn.ranks, cell) for turn in plan.turns([2, 4, 8], quick) for cell in turn.cells]
            self.assertEqual(len(cells), len(set(cells)))

    def test_what_is_left_out_decides_nothing(self):
        launches = [launch("openmpi5-copy", 0, 3.0), launch("intel-shm", 0, 1.0), launch("col", 0, 9.0)]
        launches += [launch("intel-shm", 0, us, cell=(way, 32 << 20)) for way, us in zip(OVERLAP, (9, 5, 1))]
        launches += [launch("openmpi5-copy", 0, 99, cell=(way, 32 << 20)) for way in OVERLAP]
        costs = plan.Costs(launches, 10.0)
        self.assertEqual(plan.leave_out(costs, 5, 1.0, set()), {("openmpi5-copy", "allreduce", 2, 8)})
        self.assertEqual(plan.leave_out(costs, 1, 1000.0, set()), set())


if __name__ == "__main__":
    unittest.main()
