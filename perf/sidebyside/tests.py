"""`python3 -m unittest sidebyside.tests` in `perf/`: the arithmetic, without a server."""

import unittest
from pathlib import Path

from peers import ceph

from .cases import BUDGETS, CASES
from .cluster import Cluster, Parity
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
        [rows] = [budget for budget in replicated.BUDGETS if "RAID-5" in budget.system]
        [found] = replicated.verdicts({rows.case: {Parity(Cluster(Path("/x"), ""), 1).name: figures}})
        self.assertTrue(found["met"])

    def test_parity_stands_beside_a_mirror_of_the_same_failures(self):
        options = replicated.parse(["--parity", "--size", "64"])
        self.assertEqual(options.copies, [2])
        disks = replicated.disks_of(options, Cluster(Path("/x"), "drystone"), "")
        self.assertEqual([disk.name for disk in disks], ["drystone, 2 copies", "drystone, RAID-5 2+1"])
        self.assertEqual(len({disk.disk for disk in disks}), 2)
        self.assertIn("failures_to_tolerate=1,method=parity", disks[1].policy())
        self.assertIn("failures_to_tolerate=1,", disks[0].policy())
        self.assertEqual([case.name for case in options.cases[-2:]], ["1m write qd8", "1m read qd8"])
        self.assertGreater(replicated.copies_needed(options), 2 + 1.5 + 2 + 1.5)
        plain = replicated.parse([])
        self.assertEqual((plain.copies, plain.cases), ([1, 2, 3], replicated.CASES))
        names = [disk.name for disk in replicated.disks_of(plain, Cluster(Path("/x"), "drystone"), "")]
        self.assertEqual(names[-1], "drystone, 3 copies, read_locality=auto")

    def test_a_ceph_cluster_has_an_image_of_copies_and_one_with_parity(self):
        plain, rows = ceph.Ceph(Path("/x"), 1, 3), ceph.Ceph(Path("/x"), 1, 2, True)
        self.assertEqual([image.name for image in plain.images()], ["ceph rbd, 3 copies"])
        self.assertEqual([image.name for image in rows.images()], ["ceph rbd, 2 copies", "ceph rbd, EC 2+1"])
        targets = [image.fio_target(None) for image in rows.images()]
        self.assertNotEqual(*targets)
        self.assertTrue(all("--pool=rbd" in target for target in targets), "headers stand in the replicated pool")

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
