"""What nodes.py and scale.py make of numbers: bounds, bytes of the busiest host, tables, and its exit code."""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

import nodes_report
import nodes_start
import report
import scale_report
from nodes_plan import COLLECTIVES, MIB, PAIR, TWO_BY_FOUR, TWO_BY_TWO, UNEVEN, Layout, bound, bound_seconds, in_turn, turns
from nodes_report import Measured

HERE = pathlib.Path(__file__).resolve().parent


def line(operation, bytes_, us, **more):
    return {"operation": operation, "bytes": bytes_, "bytes_moved": bytes_, "median_us": us, "wrong": 0, **more}


def launch(part, layout, contestant, lines, **more):
    return {"part": part, "counts": list(layout.counts), "in_turn": layout.in_turn, "rate": "", "round": 0,
            "contestant": contestant, "cells": [[one["operation"], one["bytes"]] for one in lines], "trouble": "",
            "lines": lines, "foreign": 0.0, "seconds": 1.0, **more}


def run_of(*launches):
    return {"started": "2026-01-31", "command": "scripts/dev nodes", "launches": list(launches), "absent": {},
            "machine": {"cpu": "a processor", "processors": 2, "kernel": "6", "versions": {}}}


def allreduce(layout, shares, wrong=0):
    """Of 1000 bytes; what each host sends and receives."""
    wire = [[int(1000 * share) for share in shares[host]] for host in layout.hosts]
    return launch("bytes", layout, "col", [line("allreduce", 32 * MIB, 5.0, bytes_moved=1000, wire=wire, wrong=wrong)])


class Layouts(unittest.TestCase):
    def test_ranks_are_dealt(self):
        self.assertEqual(UNEVEN.hosts, [0, 0, 0, 0, 1, 1, 1, 2])
        self.assertEqual(in_turn(UNEVEN).hosts, [0, 1, 2, 0, 1, 0, 1, 0])
        self.assertEqual(in_turn(TWO_BY_TWO).ranks_of(1), [1, 3])
        self.assertEqual([PAIR.name, UNEVEN.name, in_turn(TWO_BY_TWO).name], ["2×1", "4+3+1", "2×2, in turn"])

    def test_bounds(self):
        self.assertEqual([bound(operation, TWO_BY_FOUR) for operation in COLLECTIVES], [1, 0.5, 0.5, 1, 1, 0.5, 0.5, 2])
        self.assertEqual([bound(operation, Layout((2,) * 4)) for operation in COLLECTIVES],
                         [1.5, 0.75, 0.75, 1, 1, 0.75, 0.75, 1.5])
        self.assertEqual([bound(operation, UNEVEN) for operation in ("allgather", "gather", "alltoall")],
                         [0.875, 0.5, 2])
        self.assertAlmostEqual(bound_seconds("allreduce", TWO_BY_FOUR, 8 * MIB, 200e6), 0.3355, 3)

    def test_every_layout_has_all_collectives(self):
        for quick in (False, True):
            for turn in turns(quick)["bytes"]:
                self.assertEqual([operation for operation, _ in turn.cells], list(COLLECTIVES))


class WhoTakesPart(unittest.TestCase):
    def names(self, turn, processors):
        return {name for name, one in nodes_start.BY_NAME.items() if nodes_start.cells_of(one, turn, processors)}

    def test_col_is_in_every_turn_and_others_in_some(self):
        for part, all_turns in turns(quick=False).items():
            for turn in all_turns:
                self.assertEqual(nodes_start.cells_of(nodes_start.BY_NAME["col"], turn, 2), list(turn.cells)
                                 if turn.layout == PAIR else [cell for cell in turn.cells if cell[0] != "round_trip"])
            self.assertTrue(any("openmpi5-han" in self.names(turn, 2) for turn in all_turns), part)

    def test_one_that_needs_a_processor_for_each_rank(self):
        latencies = turns(quick=False)["times"][1]
        self.assertEqual(nodes_start.cells_of(nodes_start.BY_NAME["mpich5"], latencies, 2), [("barrier", 0)])
        self.assertEqual(nodes_start.cells_of(nodes_start.BY_NAME["mpich5"], latencies, 4), list(latencies.cells))


class Tables(unittest.TestCase):
    def test_the_busiest_host_counts(self):
        one = allreduce(in_turn(UNEVEN), [(1.0, 0.2), (0.4, 1.5), (0.1, 0.3)])
        self.assertEqual(nodes_report.busiest(one["lines"][0], in_turn(UNEVEN)), (1.0, 1.5))
        text = nodes_report.markdown(run_of(one))
        self.assertIn("| 4+3+1, in turn | **1.00 / 1.50** [1.33] |", text)
        self.assertIn("| bytes ÷ bound, all but alltoall, the worst | ≤ 1.05 | 1.125 | **missed** |", text)
        text = nodes_report.markdown(run_of(allreduce(TWO_BY_FOUR, [(1.0, 1.01), (1.01, 1.0)])))
        self.assertIn("| 2×4 | 1.01 / 1.01 [1.00] |", text)
        self.assertIn("| 1.010 | met |", text)

    def test_times_beside_others(self):
        cells = {"col": 40.0, "gloo": 60.0, "openmpi5-han": 20.0}
        text = nodes_report.markdown(run_of(*(
            launch("times", TWO_BY_TWO, name, [line("allreduce", 8, us)]) for name, us in cells.items())))
        self.assertIn("| allreduce | 8 B | 40 | 60 | 20 | 1.50 | 0.50 |", text)
        self.assertIn("| allreduce, 8 B, 2×2: not behind Open MPI with HAN | ≤ 20 | 40 | **missed** |", text)
        self.assertIn("| cells behind Gloo | none | none | met |", text)

    def test_a_slow_link_has_a_bound(self):
        slow = launch("slow", TWO_BY_FOUR, "col", [line("allreduce", 8 * MIB, 400e3)], rate="200mbit")
        text = nodes_report.markdown(run_of(slow))
        self.assertIn("### Times in ms, 2×4, 200 Mbit/s", text)
        self.assertIn("| allreduce | 8 MiB | 400 | 336 | 1.19 |", text)

    def test_who_failed_is_named(self):
        failed = launch("times", TWO_BY_TWO, "mpich5", [], trouble="hung: over 60 s", cells=[["allreduce", 8]])
        own = launch("times", TWO_BY_TWO, "col", [line("allreduce", 8, 40.0)])
        run = {**run_of(own, failed), "absent": {"intel": "not built"}}
        text = nodes_report.markdown(run)
        self.assertIn("mpich5 failed in 1 of 1 launches; the last time: hung: over 60 s.", text)
        self.assertIn("intel does not take part: not built.", text)
        self.assertIn("| allreduce | 8 B | 40 | hung |", text)
        self.assertFalse(nodes_report.bad(run))

    def test_the_trainer_and_forming(self):
        trainer = [launch("trainer", TWO_BY_FOUR, "col", [], where=where, images_per_second=rates)
                   for where, rates in (("hosts", [900, 1000, 1100]), ("one host", [2000, 2000, 100]))]
        forming = [launch("formation", Layout((ranks // 2,) * 2), "col",
                          [line("formation", 0, us, store_bytes=ranks * 100, rounds=3, most_rounds=7, most_descriptors=20,
                                split_ms=2.5)]) for ranks, us in ((8, 10e3), (16, 40e3))]
        lost = launch("loss", Layout((8, 8)), "col", [line("loss", 0, us, ranks=16) for us in (3e3, 9e3)])
        text = nodes_report.markdown(run_of(*trainer, *forming, lost))
        self.assertIn("| 1,000 | 2,000 | 0.50 |", text)
        self.assertIn("| the trainer over 2×4 ÷ on one host | ≥ 0.6 | 0.50 | **missed** |", text)
        self.assertIn("Forming a group over two hosts", text)
        self.assertIn("| time, ms | 10 | 40 | 2.00 |", text)
        self.assertIn("| of the bytes that may be | 9% | 9% |", text)
        self.assertIn("| split into two, ms | 2.5 | 2.5 |", text)
        self.assertIn("A rank of 16 is killed: the last of the others knows it after 9 ms.", text)
        self.assertIn("| bytes through the store | 800 | 1,600 | 1.00 |", text)

    def test_rounds_are_medians_but_bytes_are_the_most(self):
        both = [allreduce(TWO_BY_FOUR, [(share, share)] * 2) for share in (1.0, 1.2, 1.0)]
        for one, us in zip(both, (1.0, 9.0, 2.0)):
            one["lines"][0]["median_us"] = us
        measured, key = Measured(run_of(*both)), ("bytes", TWO_BY_FOUR, "", "allreduce", 32 * MIB)
        self.assertEqual((measured.us(key, "col"), measured.bytes(key, "col")), (2.0, (1.2, 1.2)))


class ExitCode(unittest.TestCase):
    def report(self, run):
        """nodes.py --report, with a page to write into: (exit code, the page)."""
        with tempfile.TemporaryDirectory() as folder:
            raw, page = pathlib.Path(folder) / "raw.json", pathlib.Path(folder) / "page.md"
            raw.write_text(json.dumps(run))
            begin, end = report.marks(nodes_report.COMMAND)
            page.write_text(f"before\n{begin}\n{end}\nafter\n")
            done = subprocess.run([sys.executable, "-B", HERE / "nodes.py", "--report", raw, "--document", page],
                                  capture_output=True, text=True, check=False)
            return done.returncode, page.read_text()

    def test_right_data(self):
        code, page = self.report(run_of(allreduce(TWO_BY_FOUR, [(1.0, 1.0)] * 2)))
        self.assertEqual(code, 0)
        self.assertTrue(page.startswith("before\n") and page.endswith("\nafter\n"))
        self.assertIn("All data was verified.", page)
        self.assertIn("### Bytes between hosts, 32 MiB", page)

    def test_wrong_data_is_an_error(self):
        code, page = self.report(run_of(allreduce(TWO_BY_FOUR, [(1.0, 1.0)] * 2, wrong=3)))
        self.assertEqual(code, 1)
        self.assertIn("**some was wrong**", page)

    def test_so_is_a_failure_of_cols(self):
        failed = launch("times", TWO_BY_TWO, "col", [], trouble="exit code 1", cells=[["allreduce", 8]])
        self.assertEqual(self.report(run_of(failed))[0], 1)


def formation(ranks, us, kib=1000, descriptors=20, stored=1000, trouble="", wrong=0):
    lines = [{"ranks": ranks, "median_us": us, "barrier_us": us / 10, "memory_kib": kib, "most_memory_kib": kib + 100,
              "most_descriptors": descriptors, "store_bytes": stored, "wrong": wrong}]
    return {"ranks": ranks, "hosts": 8, "round": 0, "lines": [] if trouble else lines, "trouble": trouble, "foreign": 0.0}


def scale_run(*launches, left_out=()):
    return {"started": "2026-01-31", "command": "scripts/dev scale", "launches": list(launches), "left_out": list(left_out),
            "machine": {"cpu": "a processor", "processors": 2, "kernel": "6"}}


class Scale(unittest.TestCase):
    def test_growth(self):
        value, words = scale_report.extrapolated("power", [(64, 100), (128, 400)], 256)
        self.assertAlmostEqual(value, 1600)
        self.assertEqual(words, "n^2.00")
        value, words = scale_report.extrapolated("line", [(64, 100), (128, 164), (256, 292)], 1000)
        self.assertAlmostEqual(value, 1036)
        self.assertEqual(words, "+1 a rank")
        self.assertEqual(scale_report.extrapolated("line", [(64, 100), (128, 90)], 1000)[0], 90)  # it does not shrink
        self.assertEqual(scale_report.extrapolated("power", [(64, 100)], 256), (None, ""))

    def test_model(self):
        self.assertEqual(scale_report.barrier_us(10_000, 157), 2 * 6 * 1 + 8 * 20)
        self.assertEqual(scale_report.store_bytes(512, 8), 512 * 1024 + 64 * 512 * 8)

    def test_table(self):
        table = scale_report.markdown(scale_run(formation(64, 1e6), formation(64, 3e6), formation(64, 2e6), formation(512, 16e6)))
        self.assertIn("10,000 ranks over 157", table)
        self.assertIn("| time to form, ms |  | 2,000 | 16,000 | n^1.00 | 312,500 | – |", table)
        self.assertIn("| descriptors of a rank, most | 16 + N + L | 20 | 20 |  | – | 237 |", table)
        self.assertIn("| 512 ranks over 8 hosts: form | ≤ 10.00 s | 16.00 s | **missed** |", table)
        self.assertIn("| 512 ranks over 8 hosts: memory of a rank, the most | ≤ 4.00 MiB | 1.07 MiB | met |", table)

    def test_trouble(self):
        run = scale_run(formation(64, 1e6), formation(128, 0, trouble="hung: over 240 s"), left_out=["512 ranks may need 9 GiB"])
        table = scale_report.markdown(run)
        self.assertIn("128 ranks, round 1: hung: over 240 s.", table)
        self.assertIn("Left out: 512 ranks may need 9 GiB.", table)
        self.assertTrue(scale_report.bad(run))
        self.assertTrue(scale_report.bad(scale_run(formation(64, 1e6, wrong=1))))
        self.assertFalse(scale_report.bad(scale_run(formation(64, 1e6))))

    def test_help(self):
        done = subprocess.run([sys.executable, "-B", HERE / "scale.py", "--help"], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0)
        self.assertIn("scripts/dev scale", done.stdout)
        done = subprocess.run([sys.executable, "-B", HERE / "scale.py", "--ranks", "63"], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn("equally many on each of 8 hosts", done.stderr)


if __name__ == "__main__":
    unittest.main()
