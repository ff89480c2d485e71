"""scripts/tune-table: how measured and simulated rules become one table, and the list of builders that nothing chooses."""
import contextlib
import importlib.machinery
import importlib.util
import datetime
import io
import json
import pathlib
import socket
import sys
import tempfile
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[3]
LOADER = importlib.machinery.SourceFileLoader("tune_table", str(ROOT / "scripts" / "tune-table"))
tune_table = importlib.util.module_from_spec(importlib.util.spec_from_loader("tune_table", LOADER))
LOADER.exec_module(tune_table)


def rule(collective, algorithm, **conditions):
    return {"collective": collective, **conditions, "algorithm": algorithm}


SHARED = rule("allreduce", "shared", backend="shm")
NODES = rule("allreduce", "two_level_rails", nodes=[2, None])
MEASURED = {"version": 1, "rules": [rule("allreduce", "ring", backend="shm", ranks=[2, 2]), SHARED,
                                    rule("broadcast", "gloo_binomial", backend="gloo"), rule("barrier", "tree", backend="gloo"),
                                    rule("allreduce", "ring", backend="shm", ranks=[2, 2])],
            "evidence": {"machine": "host, a CPU, 2 cores; 4 ranks share 2; busy; 8 ranks share 2; busy. "
                                    "Measured: rule 1: shared, 2.00 times as fast",
                         "date": "2026-01-31", "command": "colbench tune -n 2"}}
SIMULATED = {"version": 1, "rules": [SHARED, NODES, rule("barrier", "tree"), rule("allreduce", "ring_pipelined:segment=512K"),
                                     rule("scan", "linear", backend="shm"),
                                     rule("allgatherv", "direct")],
             "evidence": {"machine": "none: simulated. shm: 1 us", "date": "2026-01-01", "command": "print_selection"}}


class Merged(unittest.TestCase):
    def setUp(self):
        self.table = tune_table.merged(MEASURED, SIMULATED)

    def test_shared_and_several_nodes_are_first_then_plans_as_measured_and_none_is_there_twice(self):
        self.assertEqual(self.table["rules"], [SHARED, NODES, MEASURED["rules"][0],
                                               rule("barrier", "tree", nodes=[1, 1], backend="gloo"),
                                               *SIMULATED["rules"][2:]])

    def test_what_was_measured_on_one_node_is_for_one(self):
        for one in self.table["rules"][2:4]:
            self.assertTrue(one["backend"] == "shm" or one["nodes"] == [1, 1], one)

    def test_the_evidence_says_which_rules_are_what(self):
        evidence = self.table["evidence"]
        self.assertEqual(evidence["machine"], "rules 3 to 4: measured on a CPU, 2 cores; 4 ranks share 2; busy; "
                                              "the others: simulated. shm: 1 us")
        self.assertEqual(evidence["date"], "2026-01-31")
        self.assertEqual(evidence["command"], "scripts/dev tune-table (colbench tune -n 2)")

    def test_what_was_measured_is_kept_where_the_rest_is_simulated_anew(self):
        self.assertEqual(tune_table.merged(tune_table.kept(self.table), SIMULATED), self.table)
        with self.assertRaises(tune_table.Refused):
            tune_table.kept(SIMULATED)

    def test_its_text_has_a_rule_a_line(self):
        text = tune_table.text_of(self.table)
        self.assertEqual(json.loads(text), self.table)
        self.assertIn('    {"collective": "allreduce", "backend": "shm", "ranks": [2, 2], "algorithm": "ring"},\n', text)


def part(number, warning="", command="colbench tune barrier"):
    machine = f"{socket.gethostname()}, a CPU, 2 cores{warning}. Measured: rule {number}"
    return {"version": 1, "rules": [rule("barrier", "tree", ranks=[number, number])],
            "evidence": {"machine": machine, "date": datetime.date.today().isoformat(), "command": command}}


class Parts(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.file = pathlib.Path(folder.name) / "kept" / "barrier-shm.json"

    def ask(self, answer, *command):
        """What measured_part() returns, and whether colbench ran."""
        with mock.patch.object(tune_table, "run", return_value=answer) as run:
            return tune_table.measured_part(["/a/colbench", "tune", *(command or ("barrier",))], self.file), run.called

    def test_a_part_is_measured_once(self):
        self.assertEqual(self.ask(part(1)), (part(1), True))
        self.assertEqual(self.ask(part(2)), (part(1), False))

    def test_a_disturbed_part_is_measured_again(self):
        busy = part(1, f"; {tune_table.BUSY} 9 % of the cores")
        self.assertEqual(self.ask(busy), (busy, True))
        self.assertEqual(self.ask(part(2)), (part(2), True))

    def test_another_command_another_day_another_machine_and_half_a_file_are_measured_again(self):
        self.ask(part(1))
        self.assertEqual(self.ask(part(2), "barrier", "-n", "4"), (part(2), True))
        for name, value in ("date", "2026-01-31"), ("machine", "another, a CPU"):
            other = part(1)
            other["evidence"][name] = value
            self.file.write_text(json.dumps(other))
            self.assertEqual(self.ask(part(2)), (part(2), True))
        self.file.write_text('{"version"')
        self.assertEqual(self.ask(part(3)), (part(3), True))

    def test_joined_they_are_as_of_one_run(self):
        both = tune_table.joined([part(1, "; ranks share"), part(2), part(3, "; ranks share; busy")], "colbench tune")
        self.assertEqual([one["ranks"][0] for one in both["rules"]], [1, 2, 3])
        self.assertEqual(tune_table.facts_of(both), "a CPU, 2 cores; ranks share; busy")
        self.assertEqual(both["evidence"]["command"], "colbench tune")


class Asked(unittest.TestCase):
    def test_some_collectives_do_not_replace_the_table_of_all(self):
        with (mock.patch.object(sys, "argv", ["tune-table", "--collectives", "scan"]), self.assertRaises(SystemExit) as ended,
              contextlib.redirect_stderr(io.StringIO()) as said):
            tune_table.parse()
        self.assertEqual(ended.exception.code, 2)
        self.assertIn("--collectives needs -o FILE", said.getvalue())


class Unchosen(unittest.TestCase):
    def test_what_a_rule_chooses_is_not_listed(self):
        section = tune_table.unchosen_section(tune_table.merged(MEASURED, SIMULATED))
        self.assertNotIn("ring_pipelined", section)  # chosen with a parameter
        self.assertNotIn("allgather direct", section)  # chosen by the v-form
        self.assertNotIn("barrier tree", section)
        self.assertIn("- **barrier central** (", section)
        self.assertIn("Measured are rules 3 to 4, on a CPU, 2 cores, 2026-01-31; the others are simulated.", section)
        known = len(tune_table.builders())
        self.assertIn(f"{known - 6} of the {known} builders are chosen by none", section)
        self.assertEqual(section.count("\n- **"), known - 6)

    def test_every_reason_is_about_a_builder(self):
        self.assertEqual(set(tune_table.REASONS) - set(tune_table.builders()), set())

    def test_the_page_is_in_line_with_the_table(self):
        page = tune_table.PAGE.read_text()
        table = json.loads(tune_table.TABLE.read_text())
        self.assertEqual(tune_table.with_section(page, tune_table.unchosen_section(table)), page,
                         "scripts/dev tune-table --list brings docs/selection.md in line")

    def test_a_page_without_a_place_for_the_list_is_refused(self):
        with self.assertRaises(tune_table.Refused):
            tune_table.with_section("no marks", "list")


if __name__ == "__main__":
    unittest.main()
