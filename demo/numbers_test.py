# SPDX-License-Identifier: MIT
"""The numbers behind the report, without a page: ratios are right side up, a slowdown stays one."""

import math
import pathlib
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
# pylint: disable=wrong-import-position
from obase_report import result, table

MIB = 2**20


def run(protocol, rates=(100, 100, 100, 100), end=100, **changes):
    windows = [{"t_s": t + 1, "throughput_ops": rate} for t, rate in enumerate(rates)]
    tree = {"index": "pugh-hash-table", "workload": "C", "distribution": "loop", "protocol": protocol,
            "records": 1000, "hints": "pageout", "cold": "anon", "duration_s": len(rates),
            "throughput_ops": rates[-1], "latency_us": {"p90": 1000 / rates[-1]},
            "used_bytes": {"start": 100 * MIB, "peak": 104 * MIB, "end": end * MIB},
            "compressed_bytes": {"end": 0}, "page_utilization": {"end": 0.5},
            "windows": windows, **changes}
    return result.Result(tree, "made up")


def cell(**changes):
    return {"index": "pugh-hash-table", "workload": "C", "protocol": "arming", "phase": "converged",
            "distribution": "loop", "hints": "pageout", "cold": "anon", "throughput_ratio": 0.7,
            "ci95": [0.6, 0.8], "p90_ratio": 1.5, **changes}


def section(*results, cells=()):
    [only] = result.sections(list(results), list(cells))
    return only


class Memory(unittest.TestCase):
    def test_saved_is_the_share_that_is_gone(self):
        self.assertAlmostEqual(result.saved(section(run("none"), run("arming", end=40))), 0.6)
        self.assertAlmostEqual(result.saved(section(run("none"), run("arming", end=130))), -0.3)

    def test_saved_is_measured_at_the_end_against_the_run_without_obase(self):
        both = section(run("none", end=80), run("none", end=20, reclaim="pageout"),
                       run("arming", end=40))
        self.assertAlmostEqual(result.saved(both), 0.5)
        self.assertEqual(result.used_before(both), (80 * MIB, "none"))

    def test_alone_it_is_measured_against_its_start(self):
        alone = section(run("arming", end=40))
        self.assertEqual(result.used_before(alone), (100 * MIB, "start"))
        self.assertAlmostEqual(result.saved(alone), 0.6)


class Ratios(unittest.TestCase):
    def test_above_and_below(self):
        self.assertEqual(result.ratio(1, 2), 0.5)
        self.assertIsNone(result.ratio(1, 0))
        self.assertIsNone(result.ratio(None, 2))

    def test_rows_divide_by_the_run_without_obase(self):
        rows = dict(table.rows(section(run("none"), run("arming", rates=[50] * 4, end=40))))
        self.assertEqual(rows["arming / none"],
                         ["1.00×", "1.00×", "1.00×", "0.40×", "", "", "", "0.50×", "2.00×"])

    def test_peak_is_a_column_of_its_own(self):
        rows = dict(table.rows(section(run("none"))))
        self.assertEqual(rows["none"][1:4], ["100 MiB", "104 MiB", "100 MiB"])


class Order(unittest.TestCase):
    def test_the_kernels_run_is_neither_plain_nor_obase(self):
        three = section(run("arming"), run("none", reclaim="pageout"), run("none"))
        self.assertEqual([r.protocol for r in three.results], ["none", "kernel", "arming"])
        self.assertIs(three.plain, three.of("none"))
        self.assertEqual(three.plain["reclaim"], None)
        self.assertEqual(three.moving.protocol, "arming")

    def test_reclaim_off_is_plain(self):
        self.assertEqual(run("none", reclaim="off").protocol, "none")

    def test_what_was_skipped_is_no_run(self):
        some = section(run("none"), run("none", reclaim="pageout", skipped="no swap"))
        self.assertEqual([r.protocol for r in some.results], ["none"])
        self.assertEqual([r.protocol for r in some.skipped], ["kernel"])


class Turns(unittest.TestCase):
    def test_only_of_the_same_configuration(self):
        runs = run("none"), run("arming")
        self.assertIsNotNone(section(*runs, cells=[cell()]).in_turns("arming"))
        for other in ({"hints": "off"}, {"cold": "file:/x"}, {"distribution": "zipfian"},
                      {"workload": "B"}, {"index": "fraser-skip-list"}, {"protocol": "atc"}):
            with self.subTest(other):
                self.assertIsNone(section(*runs, cells=[cell(**other)]).in_turns("arming"))

    def test_the_settled_ones_are_not_those_of_the_first_load(self):
        both = section(run("none"), run("arming"),
                       cells=[cell(), cell(phase="moving", throughput_ratio=0.1)])
        self.assertEqual(both.in_turns("arming")["throughput_ratio"], 0.7)
        self.assertEqual(both.in_turns("arming", "moving")["throughput_ratio"], 0.1)
        self.assertEqual(len(both.cells()), 2)

    def test_a_slowdown_in_turns_is_not_replaced_by_the_runs(self):
        both = section(run("none"), run("arming", rates=[300] * 4), cells=[cell()])
        self.assertEqual(both.speed(both.moving), (0.7, 0.6, 0.8, "in turns"))
        self.assertEqual(result.speed(both), 0.7)
        said = {what: ratio for what, ratio, *_ in table.speeds([both])}
        self.assertEqual(said, {"YCSB-C loop, arming, between the runs": "3.00×",
                                "YCSB-C loop, arming, in turns, settled": "0.70×"})


class Markdown(unittest.TestCase):
    def test_it_has_the_rows_the_speeds_and_every_command(self):
        both = section(run("none", command="obase a"), run("arming", end=40, command="obase b"),
                       run("none", reclaim="pageout", skipped="no swap", command="obase c"),
                       cells=[cell(command="obase compare")])
        text = table.as_markdown([both], "2026-11-23")
        self.assertIn("| arming / none | 1.00× | 1.00× | 1.00× | 0.40× |  |  |  | 1.00× | 1.00× |", text)
        self.assertIn("| YCSB-C loop, arming, in turns, settled | 0.70× | 0.60× to 0.80× | 1.50× |", text)
        self.assertIn("none + kernel: skipped: no swap", text)
        for command in ("a", "b", "c", "compare"):
            self.assertIn(f"    obase {command}\n", text)


class BetweenTheRuns(unittest.TestCase):
    def test_only_the_second_half_counts(self):
        self.assertEqual(run("none", rates=[1, 1, 7, 8]).settled_rates(), [7, 8])
        self.assertEqual(run("none", rates=[1, 1, 1, 0, 0, 9]).settled_rates(), [9])

    def test_the_ratio_is_of_the_run_over_the_plain_one(self):
        both = section(run("none", rates=[100] * 8), run("arming", rates=[1] * 4 + [50] * 4))
        value, low, high = both.between_runs(both.moving)
        self.assertAlmostEqual(value, 0.5)
        self.assertAlmostEqual(low, 0.5)
        self.assertAlmostEqual(high, 0.5)
        self.assertIsNone(both.between_runs(both.plain))

    def test_few_windows_have_no_interval(self):
        both = section(run("none", rates=[100] * 4), run("arming", rates=[50] * 4))
        self.assertEqual(both.between_runs(both.moving), (0.5, None, None))

    def test_welch(self):
        above, below = [80, 90, 80, 90], [100, 110, 100, 110, 100, 110]
        value, low, high = result.welch_ratio(above, below)
        self.assertAlmostEqual(value, math.sqrt(80 * 90) / math.sqrt(100 * 110))
        # By hand: variances of the logarithms .0046244 / 4 and .0027252 / 6; 5.32 degrees of freedom,
        # so 5: t is 2.571.
        reach = 2.571 * math.sqrt(0.0046244 / 4 + 0.0027252 / 6)
        self.assertAlmostEqual(math.log(high / value), reach, places=4)
        self.assertAlmostEqual(math.log(value / low), reach, places=4)


if __name__ == "__main__":
    unittest.main()
