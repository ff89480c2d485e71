"""scripts/tune-table: how measured and simulated rules become one table, and the list of builders that nothing chooses."""
import importlib.machinery
import importlib.util
import json
import pathlib
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
LOADER = importlib.machinery.SourceFileLoader("tune_table", str(ROOT / "scripts" / "tune-table"))
tune_table = importlib.util.module_from_spec(importlib.util.spec_from_loader("tune_table", LOADER))
LOADER.exec_module(tune_table)


def rule(collective, algorithm, **conditions):
    return {"collective": collective, **conditions, "algorithm": algorithm}


SHARED = rule("allreduce", "shared", backend="shm")
NODES = rule("allreduce", "two_level_rails", nodes=[2, None])
MEASURED = {"version": 1, "rules": [rule("allreduce", "ring", backend="shm", ranks=[2, 2]), SHARED,
                                    rule("broadcast", "gloo_binomial", backend="gloo"), rule("barrier", "tree"),
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
        self.assertEqual(self.table["rules"], [SHARED, NODES, MEASURED["rules"][0], rule("barrier", "tree"),
                                               *SIMULATED["rules"][3:]])

    def test_the_evidence_says_which_rules_are_what(self):
        evidence = self.table["evidence"]
        self.assertEqual(evidence["machine"], "rules 3 to 4: measured on a CPU, 2 cores; 4 ranks share 2; busy; "
                                              "the others: simulated. shm: 1 us")
        self.assertEqual(evidence["date"], "2026-01-31")
        self.assertEqual(evidence["command"], "scripts/dev tune-table (colbench tune -n 2)")

    def test_its_text_has_a_rule_a_line(self):
        text = tune_table.text_of(self.table)
        self.assertEqual(json.loads(text), self.table)
        self.assertIn('    {"collective": "allreduce", "backend": "shm", "ranks": [2, 2], "algorithm": "ring"},\n', text)


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
