# SPDX-License-Identifier: MIT
"""scripts/results.py on commands and results made up here.

usage: results_test.py
"""

import contextlib
import io
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
# pylint: disable=wrong-import-position
import results
from obase_results import numbers, provenance, tables
from obase_results.pages import PAGES, Page, Step


def figure(name, median, low, high, samples=15, unit="", **target):
    return {"name": name, "unit": unit, "median": median, "low": low, "high": high, "samples": samples,
            "command": f"obase bench {name}", **target}


# A shell may take a signal between two commands of a script.
WAIT = "while true; do sleep 0.01; done"
RECORDED = {"figures": [figure("slow", 1.2, 1.1, 1.3, at_most=1.05, verdict="not met"),
                        figure("bytes", 9.05e8, 8.65e8, 9.4e8, unit="B/s", at_least=4e8, verdict="met"),
                        figure("counted", 101.4, 101.4, 101.4, samples=1, unit="ns")],
            "partial": False}
TARGETS = """## Targets

| what | median | 95 % interval | n | target | verdict |
|---|---|---|---|---|---|
| slow | 1.200 | [1.100, 1.300] | 15 | <= 1.050 | not met |
| bytes | 905.00M B/s | [865.00M, 940.00M] | 15 | >= 400.00M B/s | met |

## Beside the targets

| what | median | 95 % interval | n | target | verdict |
|---|---|---|---|---|---|
| counted | 101 ns |  | 1 |  |  |
"""


class ResultsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.out = self.folder / "out"
        for number in (signal.SIGINT, signal.SIGTERM):
            self.addCleanup(signal.signal, number, signal.getsignal(number))

    def program(self, name, *lines):
        """A command; the JSON file is its first argument."""
        path = self.folder / name
        path.write_text("\n".join(("#!/bin/sh", *lines)) + "\n")
        path.chmod(0o755)
        return str(path)

    def writing(self, result, name="program", then=()):
        recorded = self.folder / f"{name}.recorded"
        recorded.write_text(json.dumps(result))
        return self.program(name, f'cp "{recorded}" "$1"', *then)

    def step(self, *programs, **members):
        return Step(commands=tuple((program, "{json}") for program in programs), tables=tables.figures(), **members)

    def run_pages(self, *arguments, **pages):
        """(exit status, what it said)."""
        said = io.StringIO()
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(said):
            try:
                status = results.main(["--as-built", "--out", str(self.out), *arguments], pages)
            except SystemExit as ended:
                status = ended.code
        return status, said.getvalue()

    def page(self, name):
        return (self.out / f"{name}.md").read_text()

    def written(self):
        """What lies there, but for the data of the commands."""
        names = sorted(path.name for path in self.out.iterdir()) if self.out.exists() else []
        return [name for name in names if not name.endswith((".json", ".log"))]


class Pages(ResultsTest):
    def test_a_page_has_the_figures_and_where_they_come_from(self):
        program = self.writing(RECORDED)
        status, _ = self.run_pages("good", good=Page("About.", (self.step(program),)))
        self.assertEqual(status, 0)
        text = self.page("good")
        self.assertTrue(text.startswith("# Results: good\n\nAbout.\nMade by `make results WHAT=good`"), text)
        self.assertTrue(text.endswith(TARGETS), text)
        self.assertIn(f"\n    {program} {self.out}/good.json\n", text)
        self.assertRegex(text, r"\n\| date \| \d{4}-\d\d-\d\d \d\d:\d\d UTC, \d+ s \|\n")
        self.assertRegex(text, r"\n\| machine \| .+ \(family .*, model .*\), \d+ cores, \d+ GiB, Linux [\d.]+ \|\n")
        self.assertRegex(text, r"\n\| load \(1, 5, 15 minutes\) \| [\d. ]+ at the start, [\d. ]+ at the end \|\n")
        self.assertRegex(text, r"\n\| build \| .+ \|\n\| commit \| .+, as built before \|\n")
        for mark in ("Smoke", "Partial", "Skipped"):
            self.assertNotIn(mark, text)
        self.assertEqual(self.written(), ["good.md"])

    def test_all_pages_are_made_unless_some_are_asked_for(self):
        program = self.writing(RECORDED)
        pages = {name: Page("About.", (self.step(program),)) for name in ("one", "two", "three")}
        self.assertEqual(self.run_pages("two", **pages)[0], 0)
        self.assertEqual(self.written(), ["two.md"])
        self.assertEqual(self.run_pages(**pages)[0], 0)
        self.assertEqual(self.written(), ["one.md", "three.md", "two.md"])

    def test_a_command_that_is_missing_is_named(self):
        missing = str(self.folder / "bin" / "obase")
        status, said = self.run_pages(bad=Page("About.", (self.step(missing),)))
        self.assertEqual(status, 1)
        self.assertIn(f"{missing} is missing", said)
        self.assertEqual(self.written(), [])

    def test_a_command_that_fails_leaves_the_page_as_it_was(self):
        program = self.writing(RECORDED, then=("echo the disk is full >&2", "exit 1"))
        self.out.mkdir()
        (self.out / "bad.md").write_text("of last week")
        status, said = self.run_pages(bad=Page("About.", (self.step(program),)))
        self.assertEqual(status, 1)
        self.assertIn("exit status 1", said)
        self.assertIn("the disk is full", said)
        self.assertEqual((self.page("bad"), self.written()), ("of last week", ["bad.md"]))

    def test_one_of_several_commands_that_fails_is_enough(self):
        good, bad = self.writing(RECORDED), self.program("bad", "exit 3")
        status, said = self.run_pages(bad=Page("About.", (self.step(good), self.step(bad))))
        self.assertEqual((status, self.written()), (1, []))
        self.assertIn("exit status 3", said)

    def test_what_is_no_json_makes_no_page(self):
        for text in ("", "echo '{\"figures\": [' > $1", "echo '{\"figures\": [{}]}' > $1", "echo '{\"figures\": 7}' > $1"):
            status, said = self.run_pages(bad=Page("About.", (self.step(self.program("bad", text)),)))
            self.assertEqual((status, self.written()), (1, []), text)
            self.assertIn("JSON", said)

    def test_results_of_an_older_run_are_not_taken(self):
        self.out.mkdir()
        (self.out / "bad.json").write_text(json.dumps(RECORDED))
        status, _ = self.run_pages(bad=Page("About.", (self.step(self.program("silent", "exit 0")),)))
        self.assertEqual((status, self.written()), (1, []))

    def test_a_page_that_cannot_be_written_leaves_nothing_beside_it(self):
        (self.out / "good.md" / "in the way").mkdir(parents=True)
        status, said = self.run_pages(good=Page("About.", (self.step(self.writing(RECORDED)),)))
        self.assertEqual((status, self.written()), (1, ["good.md"]))
        self.assertIn("cannot be written", said)

    def test_an_unknown_page_is_a_usage_error(self):
        pages = {name: Page("About.", (self.step(self.writing(RECORDED)),)) for name in ("one", "two")}
        status, said = self.run_pages("one", "three", **pages)
        self.assertEqual((status, self.written()), (2, []))
        self.assertIn("no page 'three'; the pages are one, two", said)

    def test_skipped_commands_say_why(self):
        skipped = self.writing({"skipped": "there is no swap", "figures": []}, then=("exit 77",))
        without_json = self.program("other", "echo skipped: no mirror has it", "exit 77")
        status, _ = self.run_pages(some=Page("About.", (self.step(skipped), self.step(without_json))))
        self.assertEqual(status, 0)
        text = self.page("some")
        self.assertIn(": there is no swap\n", text)
        self.assertIn(": no mirror has it\n", text)
        self.assertNotIn("## Targets", text)

    def test_runs_of_a_command_have_files_of_their_own(self):
        program = self.program("program", 'echo "$1" >> "$0.asked"',
                               "echo '{\"figures\": [], \"marker\": \"'$OBASE_TEST_MARKER'\"}' > $1")
        step = self.step(program, runs=3, environment=(("OBASE_TEST_MARKER", "set"),))
        self.assertEqual(self.run_pages(good=Page("About.", (step,)))[0], 0)
        asked = pathlib.Path(f"{program}.asked").read_text().split()
        self.assertEqual([pathlib.Path(name).name for name in asked], ["good.1.json", "good.2.json", "good.3.json"])
        self.assertIn(f"    OBASE_TEST_MARKER=set {program} {asked[0]}   # 3 times\n", self.page("good"))
        self.assertEqual(json.loads(pathlib.Path(asked[2]).read_text())["marker"], "set")


class SmokeSize(ResultsTest):
    def test_it_says_that_it_decides_nothing(self):
        program = self.program("program", "echo '{\"figures\": [], \"asked\": \"'$2'\"}' > $1")
        page = Page("About.", (self.step(program), self.step(self.writing(RECORDED, "large"), quick=None)))
        self.assertEqual(self.run_pages("--quick", good=page)[0], 0)
        self.assertIn("**Smoke size: these figures decide nothing.**", self.page("good"))
        self.assertIn("has no smoke size", self.page("good"))
        self.assertNotIn("slow", self.page("good"))
        self.assertEqual(json.loads((self.out / "good.json").read_text())["asked"], "--quick")

    def test_it_is_not_put_into_the_documents(self):
        before = sorted(results.PUBLISHED.iterdir())
        pages = {"good": Page("About.", (self.step(self.writing(RECORDED)),))}
        for arguments in ([], ["--out", str(results.PUBLISHED)], ["--out", str(results.ROOT / "docs/../docs/results/")]):
            with contextlib.redirect_stderr(io.StringIO()) as said, self.assertRaises(SystemExit) as ended:
                results.main(["--quick", "--as-built", *arguments], pages)
            self.assertEqual(ended.exception.code, 2)
            self.assertIn("--out", said.getvalue())
        self.assertEqual(sorted(results.PUBLISHED.iterdir()), before)

    def test_pages_that_commands_write_themselves_have_none(self):
        pages = {"store": Page("About.", script=((self.program("demo", "exit 9"),),)),
                 "good": Page("About.", (self.step(self.writing(RECORDED)),))}
        self.assertEqual(self.run_pages("--quick", "store", **pages)[0], 2)
        self.assertEqual(self.run_pages("--quick", **pages)[0], 0)
        self.assertEqual(self.written(), ["good.md"])


class Interruption(ResultsTest):
    def test_a_partial_result_is_written_and_marked(self):
        # As `obase bench` does: at Ctrl-C it writes what there is.
        recorded = self.writing({**RECORDED, "partial": True}, "copy")
        program = self.program("program", f"trap '{recorded} \"$1\"; exit 130' INT", f"kill -INT {os.getpid()}",
                               WAIT)
        later = self.program("later", "exit 1")
        pages = {"good": Page("About.", (self.step(program), self.step(later))),
                 "next": Page("About.", (self.step(later),))}
        status, said = self.run_pages(**pages)
        self.assertEqual((status, self.written()), (130, ["good.md"]), said)
        self.assertIn("**Partial: the run was interrupted.", self.page("good"))
        self.assertTrue(self.page("good").endswith(TARGETS))
        self.assertNotIn(later, said)

    def test_what_was_measured_before_stays(self):
        first = self.writing(RECORDED, "first")
        # It dies by the signal, and what it had begun to write is no result.
        second = self.program("second", "echo '{' > $1", f"kill -TERM {os.getpid()}", WAIT)
        status, said = self.run_pages(good=Page("About.", (self.step(first), self.step(second))))
        self.assertEqual((status, self.written()), (130, ["good.md"]), said)
        self.assertIn("**Partial:", self.page("good"))
        self.assertIn("| slow | 1.200 |", self.page("good"))

    def test_nothing_measured_is_no_page(self):
        program = self.program("program", f"kill -INT {os.getpid()}", WAIT)
        status, said = self.run_pages(good=Page("About.", (self.step(program),)))
        self.assertEqual((status, self.written()), (130, []), said)

    def test_a_result_that_says_it_is_partial_is(self):
        program = self.writing({**RECORDED, "partial": True})
        self.assertEqual(self.run_pages(good=Page("About.", (self.step(program),)))[0], 0)
        self.assertIn("**Partial:", self.page("good"))


class Provenance(ResultsTest):
    def git(self, *words):
        subprocess.run(["git", "-C", self.folder, "-c", "user.name=test", "-c", "user.email=test@example.org", *words],
                       check=True, capture_output=True)

    def test_the_commit_is_that_of_what_was_measured(self):
        self.assertEqual(provenance.commit(self.folder), "unknown, no git repository")
        self.git("init", "-q")
        (self.folder / "docs" / "results").mkdir(parents=True)
        for name in ("source.cpp", "docs/results/guide.md"):
            (self.folder / name).write_text("before")
        self.git("add", ".")
        self.git("commit", "-q", "-m", "Sources")
        self.assertRegex(provenance.commit(self.folder), "^[0-9a-f]{12}$")
        (self.folder / "docs/results/guide.md").write_text("a page made a minute ago")
        (self.folder / "docs/results/alloc.md").write_text("another one")
        self.assertRegex(provenance.commit(self.folder), "^[0-9a-f]{12}$")
        (self.folder / "source.cpp").write_text("after")
        self.assertRegex(provenance.commit(self.folder), "^[0-9a-f]{12}, with uncommitted changes$")

    def test_without_a_build_there_is_no_version(self):
        self.assertIsNone(provenance.version(self.folder, "obase"))

    def test_the_version_is_that_of_the_pages_program(self):
        (self.folder / "bin").mkdir()
        for name in ("obase", "sorter"):
            self.program(f"bin/{name}", f"echo {name} 1.2 $1")
        pages = {"good": Page("About.", (self.step(self.writing(RECORDED)),)),
                 "sorts": Page("About.", (self.step(self.writing(RECORDED)),), program="sorter")}
        self.assertEqual(self.run_pages("--build", str(self.folder), **pages)[0], 0)
        self.assertIn("\n| build | obase 1.2 --version |\n", self.page("good"))
        self.assertIn("\n| build | sorter 1.2 --version |\n", self.page("sorts"))


class Numbers(unittest.TestCase):
    def test_intervals_are_those_of_order_statistics(self):
        fifteen = [float(i) for i in range(15, 0, -1)]
        self.assertEqual(numbers.spread(fifteen), (8, 4, 12, True))
        self.assertEqual(numbers.spread([3, 1, 2, 6, 5, 4]), (3.5, 1, 6, True))
        self.assertEqual(numbers.spread([3, 1, 2, 5, 4]), (3, 1, 5, False))
        self.assertEqual(numbers.spread([7]), (7, 7, 7, False))

    def test_a_verdict_needs_the_whole_interval(self):
        self.assertEqual(numbers.verdict(1, 2, True), "")
        for low, high, at_least, at_most in ((1, 2, "met", "met"), (0.5, 2, "undecided", "undecided"),
                                             (0.5, 0.9, "not met", "met")):
            self.assertEqual(numbers.verdict(low, high, True, at_least=1), at_least)
            self.assertEqual(numbers.verdict(low, high, True, at_most=2 if high == 2 and low == 1 else 1), at_most)
        self.assertEqual(numbers.verdict(2, 3, True, at_most=1), "not met")
        self.assertEqual(numbers.verdict(2, 3, False, at_least=1), "undecided")

    def test_numbers_are_short(self):
        for value, text in ((None, ""), (0.1234, "0.123"), (99.96, "99.960"), (123.4, "123"), (12345, "12.3k"),
                            (2.5e6, "2.50M"), (1.65e9, "1.65G"), (-2.5e6, "-2.50M")):
            self.assertEqual(numbers.number(value), text)
        self.assertEqual(numbers.number(1.5, "ns"), "1.500 ns")
        self.assertEqual((numbers.mib(300 * 2**20), numbers.mib(14.2 * 2**20), numbers.mib(None)),
                         ("300 MiB", "14.2 MiB", ""))


def cells(table, *recorded):
    """Of the table's rows; without its heads."""
    return [[cell.strip() for cell in line.strip("|").split("|")]
            for line in table.lines(list(recorded)) if line.startswith("|")][2:]


class Tables(unittest.TestCase):
    def table(self, page, title):
        return next(table for step in PAGES[page].steps for table in step.tables if table.title == title)

    def test_a_table_without_rows_is_left_out(self):
        self.assertEqual(self.table("guide", "Targets").lines([{"figures": []}]), [])

    def test_rows_that_can_be_measured_alone_say_how(self):
        self.assertEqual(cells(self.table("alloc", "Beside the targets"), RECORDED),
                         [["counted", "101 ns", "", "1", "", "", "`obase bench counted`"]])

    def test_runs_of_the_store(self):
        run = {"workload": "C", "page_utilization": {"baseline": 0.305, "end": 0.992, "kernel": None, "end_2m": 0.99},
               "used_bytes": {"start": 1170 << 20, "peak": 1200 << 20, "end": 422 << 20}, "live_bytes": 317 << 20,
               "index_bytes": 70 << 20, "throughput_ops": 1.39e6, "latency_us": {"p90": 2}, "collector_cpu_share": 0.101,
               "witness": {"agrees": False}}
        self.assertEqual(cells(self.table("ycsb", "Runs"), {"runs": [run]}),
                         [["C", "0.305", "0.992", "", "0.990", "1170 MiB", "1200 MiB", "422 MiB", "317 MiB", "70.0 MiB",
                           "1.39M op/s", "2.000 us", "0.101", "differs"]])

    def test_layouts_are_those_of_all_objects_and_the_best_choice(self):
        cell = {"workload": "zipf 0.99", "layout": "graded", "objects": "all", "order": "static",
                "page_bytes": 4096, "accesses_per_object": 32.0,
                "inflation": {"0.8": 1.25, "0.9": 1.175, "0.95": None, "0.99": 1.0}}
        others = [{**cell, "objects": "values"}, {**cell, "order": "lru"}]
        self.assertEqual(cells(PAGES["mrc"].steps[0].tables[0], {"cells": [*others, cell]}),
                         [["zipf 0.99", "graded", "32", "4 KiB", "1.250", "1.175", "", "1.000"]])

    def test_cells_of_memory(self):
        cell = {"load": "zipf 0.99", "update_share": 0.05, "policy": "graded", "limit": "35%", "start_bytes": 119 << 20,
                "peak_bytes": 123 << 20, "end_bytes": 88.5 * 2**20, "ideal_bytes": 70 << 20, "used_over_ideal": 1.2645,
                "used_over_live": None, "peak_over_allowed": 0.9871, "fault_share": 0.0161, "faults_per_s": 805.2,
                "stall_share": 0.0031, "stall_share_over_scale": 0.00005, "throughput_ratio": 0.9998, "killed": False,
                "settled": False, "windows": [{}, {}, {}]}
        table = self.table("memory", "Cells")
        row = ["zipf 0.99, 0.05 updates", "graded", "35%", "119 MiB", "123 MiB", "88.5 MiB", "70.0 MiB", "1.264", "", "0.987",
               "1.61 %", "805 /s", "0.31 %", "0.01 %", "1.000"]
        self.assertEqual(cells(table, {"cells": [cell, {**cell, "settled": True, "limit": None, "update_share": 0},
                                                 {**cell, "settled": True, "killed": True}]}),
                         [[*row, "3 windows"], ["zipf 0.99", "graded", "", *row[3:], "settled"], [*row, "killed"]])

    def test_phases_of_a_comparison_are_one_row(self):
        cell = {"index": "pugh-hash-table", "workload": "A", "protocol": "arming", "throughput_ratio": 0.989,
                "ci95": [0.925, 1.057], "samples": 15, "p90_ratio": 1.08, "instructions_ratio": None,
                "plain_ops": 970000.0, "phase": "converged"}
        moving = {**cell, "phase": "moving", "throughput_ratio": 0.901, "ci95": [0.8, 1.0], "samples": 4}
        self.assertEqual(cells(self.table("compare", "Cells"), {"cells": [moving, cell, {**cell, "protocol": "atc"}]}),
                         [["`pugh-hash-table`", "A", "arming", "970.0k op/s", "0.989", "[0.925, 1.057]", "15", "1.080", "", "0.901",
                           "[0.800, 1.000]", "4"],
                          ["`pugh-hash-table`", "A", "atc", "970.0k op/s", "0.989", "[0.925, 1.057]", "15", "1.080", "", "", "", ""]])

    def test_protocols_of_a_set_are_one_row(self):
        def cell(protocol, mops, ratio):
            return {"index": "pugh-hash-table", "key_kind": "integer", "threads": 2, "updates": 20, "protocol": protocol,
                    "mops": mops, "mops_ci95": [mops - 1, mops + 1], "ratio": ratio,
                    "ratio_ci95": ratio and [ratio, ratio], "index_bytes": 73_000_000,
                    "published_mops": 2.1 if protocol == "none" else None, "verdict": "met"}
        recorded = {"cells": [cell("none", 3.61, None), cell("arming", 3.78, 1.047), cell("atc", 3.5, 0.97)],
                    "keys": 1_000_000, "pairs": 15,
                    "figures": [figure("pugh-hash-table none, integer keys, 2 threads, 20 % updates", 3.61, 2.61, 4.61),
                                figure("arming / none, 1 thread, geometric mean", 0.9, 0.8, 1.0, at_least=0.99,
                                       verdict="undecided"),
                                figure("atc / none, 2 threads / 1 thread", 1.1, 1.0, 1.2)]}
        self.assertEqual(cells(self.table("indexes", "Cells"), recorded),
                         [["`pugh-hash-table`", "integer", "2", "20 %", "3.61", "[2.61, 4.61]", "1.047", "[1.047, 1.047]", "0.970",
                           "[0.970, 0.970]", "15", "73"]])
        self.assertEqual(cells(self.table("indexes", "Published implementations"), recorded),
                         [["`pugh-hash-table`", "20 %", "none", "3.61", "[2.61, 4.61]", ">= 2.10", "met"]])
        self.assertEqual(cells(self.table("indexes", "Threads"), recorded),
                         [["arming / none, 1 thread, geometric mean", "0.900", "[0.800, 1.000]", "15", ">= 0.990",
                           "undecided"],
                          ["atc / none, 2 threads / 1 thread", "1.100", "[1.000, 1.200]", "15", "", ""]])

    def test_runs_of_marked_code_are_one_row(self):
        def run(index, *ratios):
            return {"index": index, "mixes": [{"writes": writes, "ratio": ratio, "quartiles": [ratio, ratio],
                                               "ns_marked": 100, "ns_by_hand": 99} for writes, ratio in ratios]}
        six = [run("pugh-hash-table", (0, 0.97 + i / 100), (50, 0.90 + i / 100)) for i in (2, 1, 4, 5, 3, 6)]
        self.assertEqual(cells(self.table("compiler", "2,000 keys"), *six, run("segmented-hash-table", (0, 1.0))),
                         [["`pugh-hash-table`", "0 %", "1.005", "[0.980, 1.030]", "6", ">= 0.980", "met"],
                          ["`pugh-hash-table`", "50 %", "0.935", "[0.910, 0.960]", "6", ">= 0.980", "not met"],
                          ["`segmented-hash-table`", "0 %", "1.000", "", "1", ">= 0.980", "undecided"],
                          ["geometric mean", "0 %", "0.995", "", "1", ">= 0.980", "undecided"],
                          ["geometric mean", "50 %", "0.935", "[0.910, 0.960]", "6", ">= 0.980", "not met"]])
        self.assertEqual(cells(self.table("compiler", "2,000 keys"), run("pugh-hash-table", (0, 0.5)), run("pugh-hash-table", (0, 2.0)),
                               run("segmented-hash-table", (0, 0.5)), run("segmented-hash-table", (0, 0.125)))[-1][2], "0.500")
        self.assertEqual(cells(self.table("compiler-large", "200,000 keys"), run("segmented-hash-table", (5, 1.0))),
                         [["`segmented-hash-table`", "5 %", "1.000", "[1.000, 1.000]", "100 ns", "99.000 ns"]])

    def test_costs_are_over_plain(self):
        recorded = {"indexes": [{"index": "masstree", "plain": {"seconds": 2.0, "bytes": 1000},
                                 "marked": {"seconds": 2.5, "bytes": 1100}, "by hand": {"seconds": 1.0, "bytes": 900}}]}
        self.assertEqual(cells(self.table("compiler", "Compile time and code"), recorded),
                         [["`masstree`", "2.00", "2.50 (1.25)", "1.00 (0.50)", "1000", "1100 (1.10)", "900 (0.90)"]])

    def test_programs(self):
        run = {"name": "plain clang", "first_bytes": 14 << 20, "end_bytes": 15 << 20, "end_file_bytes": 0,
               "utilization": None, "operations_per_second": 375643.0}
        self.assertEqual(cells(self.table("programs", "libdatrie"), {"runs": [run]}),
                         [["plain clang", "14.0 MiB", "15.0 MiB", "0.0 MiB", "", "375.6k"]])

    def test_sorts(self):
        cell = {"system": "wiscsort", "strategy": "auto", "device": "real", "state": "cgroup", "records": 2_000_000, "key_bytes": 10,
                "value_bytes": 90, "memory_bytes": 50 << 20, "threads": 2, "seconds": 1.05, "ci95": [1.0, 1.25],
                "cpu_seconds": 0.5, "sync_seconds": 0.25, "device_read_bytes": 190 << 20, "device_write_bytes": 381 << 20, "chosen": "ems",
                "skewed": True}
        ended = {**cell, "strategy": "onepass", "seconds": 60.0, "ended": True, "chosen": "onepass", "skewed": False}
        peer = {**cell, "system": "Polars", "memory_bytes": 0, "cpu_seconds": None, "chosen": None}
        row = ["wiscsort", "auto: ems", "real", "cgroup", "2.00M", "10:90, skewed", "50.0 MiB", "2", "1.050",
               "[1.000, 1.250]", "0.500", "0.250", "190 MiB", "381 MiB"]
        result = {"cells": [cell, ended, peer], "claims": [], "planner": [], "skipped": []}
        (cells_of, claims, regrets, skipped) = (
            next(table for table in PAGES["wiscsort"].steps[0].tables if table.title.endswith(end))
            for end in ("cells", "devices", "choices", "not run"))
        self.assertEqual(cells(cells_of, result),
                         [row, ["wiscsort", "onepass", *row[2:5], "10:90", "50.0 MiB", "2", ">= 60.000", *row[9:]],
                          ["Polars", "auto", *row[2:6], "", *row[7:10], "", *row[11:]]])
        planned = [{"cell": f"pmem 10:{value}", "chosen": "ems", "best": "onepass", "regret": 1 + value / 100}
                   for value in range(20)]
        self.assertEqual(cells(regrets, {**result, "planner": planned[:10]}, {**result, "planner": planned[10:]}),
                         [[f"pmem 10:{value}", "ems", "onepass", f"{1 + value / 100:.3f}"] for value in range(19, 9, -1)])
        claim = {"claim": "EMS / OnePass", "paper": "<= 3", "ours": "1.55", "target": ">= 1.4", "verdict": "met"}
        self.assertEqual(cells(claims, {**result, "claims": [claim]}), [["EMS / OnePass", "<= 3", "1.55", ">= 1.4", "met"]])
        self.assertEqual(cells(skipped, result, {**result, "skipped": ["DuckDB: out of memory"]}), [["DuckDB: out of memory"]])


class TableOfPages(unittest.TestCase):
    def test_a_page_that_is_there_has_a_link(self):
        self.assertEqual(results.linked("| `memory`, `memory-swap` | a |", "memory"),
                         "| [`memory`](memory.md), `memory-swap` | a |")
        again = "| [`memory`](memory.md), `memory-swap` | a |"
        self.assertEqual(results.linked(again, "memory"), again)
        published = results.PUBLISHED / "README.md"
        index = published.read_text(encoding="utf-8")
        for name in PAGES:
            if (results.PUBLISHED / f"{name}.md").exists():
                self.assertIn(f"({name}.md)", index)

    def test_every_command_says_where_its_json_goes(self):
        for name, page in PAGES.items():
            self.assertNotEqual(bool(page.steps), bool(page.script), name)
            for step in page.steps:
                for command in step.commands:
                    self.assertIn("{json}", command)
                    self.assertNotIn("{", " ".join(command).format(build="build", json="x.json"))

    def test_every_command_and_document_of_the_sources_is_there(self):
        for name, page in PAGES.items():
            for words in [command for step in page.steps for command in step.commands] + list(page.script):
                if words[0].startswith(("compiler/", "demo/", "scripts/")):
                    self.assertTrue(os.access(results.ROOT / words[0], os.X_OK), words[0])
            for link in re.findall(r"\]\(([^)]+)\)", page.about):
                self.assertTrue((results.PUBLISHED / link).resolve().is_file(), f"{name}: {link}")

    def test_they_are_listed(self):
        with contextlib.redirect_stdout(io.StringIO()) as said:
            self.assertEqual(results.main(["--list"]), 0)
        self.assertEqual([line.split()[0] for line in said.getvalue().splitlines()], list(PAGES))


if __name__ == "__main__":
    unittest.main()
