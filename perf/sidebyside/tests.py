"""`python3 -m unittest sidebyside.tests` in `perf/`: the arithmetic, without a server."""

import unittest
from pathlib import Path

from .cases import BUDGETS, CASES
from .lab import Cell
from .measure import figures, fio_command, median_of
from .report import Interval, before_lines, table, verdicts
from . import replicated, stages
from .systems import Failed, Raw, process_cpu_seconds


def side(ios: int, mean_ns: float, p99_ns: float) -> dict:
    return {
        "total_ios": ios, "iops": ios / 10, "bw_bytes": ios * 4096 / 10, "lat_ns": {"mean": mean_ns, "max": p99_ns},
        "clat_ns": {"percentile": {"99.000000": p99_ns}},
    }  # fmt: skip


NOTHING = {"total_ios": 0}


def result(read: dict, write: dict) -> dict:
    return {"jobs": [{"error": 0, "read": read, "write": write}]}


class Arithmetic(unittest.TestCase):
    def test_latencies_of_a_mix_are_weighed_by_their_numbers(self):
        found = figures(result(side(700, 1000, 5000), side(300, 11000, 9000)), 0.002, 0.004)
        self.assertAlmostEqual(found["latency_us"], 4.0)
        self.assertAlmostEqual(found["p99_us"], 9.0)
        self.assertAlmostEqual(found["iops"], 100)
        self.assertAlmostEqual(found["server_cpu_us"], 2.0)
        self.assertAlmostEqual(found["client_cpu_us"], 4.0)

    def test_a_run_without_io_or_with_an_error_is_no_result(self):
        self.assertRaises(Failed, figures, result(NOTHING, NOTHING), 0, 0)
        broken = result(side(1, 1, 1), NOTHING)
        broken["jobs"][0]["error"] = 5
        self.assertRaises(Failed, figures, broken, 0, 0)

    def test_medians_are_taken_figure_by_figure(self):
        runs = [{"a": 1, "b": 9}, {"a": 5, "b": 1}, {"a": 3, "b": 5}]
        self.assertEqual(median_of(runs), {"a": 3, "b": 5})

    def test_budgets_pass_and_miss_on_the_right_side_of_their_bound(self):
        base = figures(result(side(1000, 1000, 1000), NOTHING), 0.01, 0)
        self.assertEqual(len({budget.case for budget in BUDGETS} - {case.name for case in CASES}), 0)
        for budget in BUDGETS:
            for factor, met in [(budget.bound * 0.99, budget.at_most), (budget.bound * 1.01, not budget.at_most)]:
                own = {key: number * factor for key, number in base.items()}
                results = {budget.medium: {budget.case: {"drystone": own, budget.against: base}}}
                [verdict] = verdicts(results)
                self.assertEqual(verdict["met"], met, budget)
        self.assertEqual(verdicts({"disk": {}}), [])

    def test_two_releases_are_compared_round_by_round(self):
        rounds = [("drystone", 2.0), ("before", 1.0), ("before", 4.0), ("drystone", 4.0)]
        runs = [{"medium": "tmpfs", "case": "c", "system": system, "server_cpu_us": cost, "iops": 10.0}
                for system, cost in rounds]  # fmt: skip
        text = before_lines(runs, "drystone", "before")
        self.assertIn("tmpfs, c: server CPU per I/O 1.414", text)
        self.assertIn("IOPS 1.000 [1.000 1.000]", text)

    def test_the_table_has_a_line_for_each_system(self):
        base = figures(result(side(1000, 1000, 1000), NOTHING), 0.01, 0)
        text = table("tmpfs", {CASES[0].name: {"drystone": base, "raw": base}})
        self.assertEqual(len(text.strip().splitlines()), 4)

    def test_only_single_raw_writes_are_made_stable_one_by_one(self):
        raw = Raw.__new__(Raw)
        raw.folder, raw.size = "/x", 1
        stable = [case.name for case in CASES if "--sync=dsync" in fio_command(raw, case, 1)]
        self.assertEqual(stable, ["4k randwrite qd1"])

    def test_budgets_of_copies_are_of_everything_and_name_what_is_measured(self):
        figures = replicated.with_all({"server_cpu_us": 40.0, "client_cpu_us": 6.0})
        [case] = {budget.case for budget in replicated.BUDGETS if budget.bound == 45}
        [found] = replicated.verdicts({case: {"drystone, 2 copies": figures}})
        self.assertEqual((found["reached"], found["met"]), (46.0, False))
        self.assertEqual(len({budget.case for budget in replicated.BUDGETS} - {case.name for case in replicated.CASES}), 0)

    def test_samples_are_summed_by_stage(self):
        report = """
    30.00%  node     [kernel.kallsyms]  [k] tcp_sendmsg_locked          -      -
    20.00%  node     drystone           [.] diskgroup::read::look_up    -      -
    10.00%  fio      [kernel.kallsyms]  [k] _copy_to_iter               -      -
    20.00%  fio      fio                [.] fio_gettime                 -      -
"""
        found = stages.parse(report)
        self.assertAlmostEqual(found["kernel: TCP between hosts"], 0.375)
        self.assertAlmostEqual(found["disk group"], 0.25)
        self.assertAlmostEqual(found["fio"], 0.25)
        self.assertAlmostEqual(sum(found.values()), 1)
        self.assertRaises(Failed, stages.parse, "no samples")

    def test_processor_time_is_read_of_any_process(self):
        self.assertGreaterEqual(process_cpu_seconds(1), 0)


class TheLab(unittest.TestCase):
    def test_the_mean_of_ratios_is_geometric_and_its_interval_holds_it(self):
        interval = Interval([0.5, 2.0, 1.0, 1.0])
        self.assertAlmostEqual(interval.mean, 1.0)
        self.assertTrue(interval.low < 1.0 < interval.high)
        self.assertEqual(str(Interval([2.0, 2.0])), "2.000 [2.000 2.000]")

    def test_one_pair_has_no_interval(self):
        self.assertEqual(Interval([2.0]).high, float("inf"))

    def test_a_job_is_one_that_both_read(self):
        text = Cell("libaio", 32, "randread").job(Path("/dev/shm/t"), 1 << 20, "runtime=2\ntime_based")
        self.assertIn("iodepth=32\nruntime=2\n", text)


if __name__ == "__main__":
    unittest.main()
