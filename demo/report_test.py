#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""demo/report.py from outside: what it says of good results, of gaps in them, and of bad input.

usage: report_test.py REPORT, with the interpreter that report.py names
"""

import copy
import html.parser
import json
import os
import pathlib
import re
import runpy
import subprocess
import sys
import tempfile
import traceback
import unittest

REPORT = ""
MIB = 2**20
VOID = {"meta", "br", "hr", "img", "link", "input"}


def heap(live):
    return {"live_bytes": live, "extent_bytes": live * 1.1, "touched_pages": live / 8192,
            "touched_bytes": live / 2}


def window(second, protocol):
    moving = protocol != "none"
    return {"t_s": second, "throughput_ops": 1e6 + second, "page_utilization": 0.3,
            "rss_bytes": 90 * MIB, "used_bytes": 100 * MIB, "compressed_bytes": 0,
            "promotion_rate": 0.002 if moving else None, "cold_threshold": 3 if moving else None,
            "moved": 1000 if moving else None, "vetoed": 2 if moving else None,
            "heaps": {name: heap(10 * MIB) for name in ("new", "hot", "cold", "large")}
                     if moving else None}


def region(name, cells, bytes_per_cell=MIB, begin="0x7f0000000000"):
    return {"name": name, "begin": begin, "bytes": len(cells) * bytes_per_cell,
            "bytes_per_cell": bytes_per_cell, "cells": cells}


def made_up(protocol="arming", **changes):
    """A result with everything in it; `changes` replace members."""
    moving = protocol != "none"
    before = [region("new" if moving else "jemalloc", [0.3] * 100)]
    after = [region("hot", [0.95] * 32), region("cold", [0.0] * 67 + [0.05])] if moving else before
    tree = {
        "index": "pugh-hash-table", "workload": "C", "protocol": protocol, "mode": "hint", "records": 100000,
        "threads": 2, "duration_s": 30, "window_s": 1, "time_scale": 120, "distribution": "loop",
        "live_share": 0.31, "period": 31000, "key_size": 30, "value_size": 1024, "hints": "pageout",
        "cold": "anon", "throughput_ops": 980000.0 if moving else 1000000.0,
        "latency_us": {"p50": 1.0, "p90": 2.1 if moving else 2.0, "p99": 5.0, "p999": 9.0},
        "page_utilization": {"baseline": 0.3, "start": 0.3, "end": 0.9 if moving else 0.3,
                             "end_2m": 0.2},
        "rss_bytes": {"start": 110 * MIB, "end": 38 * MIB if moving else 110 * MIB},
        "used_bytes": {"start": 112 * MIB, "peak": 117 * MIB if moving else 112 * MIB,
                       "end": 40 * MIB if moving else 100 * MIB},
        "compressed_bytes": {"start": 0, "end": 0}, "reclaim": "off",
        "used_over_ideal": 1.25, "fault_share": 0.0125,
        "used_method": "counted", "live_bytes": 31 * MIB, "index_bytes": 5 * MIB,
        "promotion_rate": 0.001, "cold_threshold": 4, "moved": 99999, "vetoed": 7,
        "guides_per_op": 2.0, "collector_cpu_share": 0.01,
        "windows": [window(second, protocol) for second in range(1, 31)],
        "heat_map": {"before": before, "after": after},
        "witness": {"page_utilization": 0.9, "used_bytes": 40 * MIB, "lost_writes": 0,
                    "stale_reads": 0, "agrees": True},
        "partial": False, "machine": {"processor": "a <fast> one", "cores": 2, "load": [0.1, 0.2]},
    }
    tree.update(changes)
    return tree


def nothing_measured(tree):
    """The same run, with null for every number, and no windows."""
    tree = copy.deepcopy(tree)
    for key in tree:
        if key not in ("index", "workload", "protocol", "windows"):
            tree[key] = None
    tree["windows"] = []
    return tree


def leaves(tree, path=()):
    """Paths of all members, however deep, of an object."""
    for key, value in tree.items():
        yield (*path, key)
        if isinstance(value, dict):
            yield from leaves(value, (*path, key))


def set_at(tree, path, value):
    for key in path[:-1]:
        tree = tree[key]
    tree[path[-1]] = value


class Balanced(html.parser.HTMLParser):
    """Notices tags that are not closed, ids given twice, and anything fetched or run."""

    def __init__(self):
        super().__init__()
        self.open, self.ids, self.wrong = [], set(), []

    def handle_starttag(self, tag, attrs):
        if tag not in VOID:
            self.open.append(tag)
        self._look(tag, attrs)

    def handle_startendtag(self, tag, attrs):
        self._look(tag, attrs)

    def _look(self, tag, attrs):
        if tag in ("script", "link", "iframe", "img"):
            self.wrong.append(f"<{tag}>")
        for name, value in attrs:
            if name == "id":
                if value in self.ids:
                    self.wrong.append(f"id {value} twice")
                self.ids.add(value)
            if name in ("src", "href", "xlink:href") and not value.startswith("#"):
                self.wrong.append(f"{name}={value}")
            if name.startswith("on"):
                self.wrong.append(name)

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.wrong.append(f"</{tag}>")


def exit_status_of(script):
    try:
        runpy.run_path(script, run_name="__main__")
    except SystemExit as end:
        return end.code or 0
    return 0


class Report(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def file(self, content, name="result.json"):
        path = self.folder / name
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return str(path)

    def files(self, *trees):
        return [self.file(tree, f"{number}.json") for number, tree in enumerate(trees)]

    def run_report(self, *arguments):
        """REPORT's exit status and what it wrote, run in a fork: matplotlib is imported once."""
        import matplotlib.backends.backend_svg  # pylint: disable=import-outside-toplevel,unused-import
        with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
            sys.stdout.flush()
            sys.stderr.flush()
            child = os.fork()
            if child == 0:
                status = 70  # an exception, or an exit status that is none
                try:
                    os.dup2(out.fileno(), 1)
                    os.dup2(err.fileno(), 2)
                    sys.argv = [REPORT, *map(str, arguments)]
                    status = exit_status_of(REPORT)
                    sys.stdout.flush()
                except BaseException:  # pylint: disable=broad-except
                    traceback.print_exc()
                finally:
                    sys.stderr.flush()
                    os._exit(status)
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            out.seek(0)
            err.seek(0)
            return subprocess.CompletedProcess(arguments, status, out.read(), err.read())

    def page(self, *trees):
        """The page of these results, which must be whole and need nothing else."""
        out = self.folder / "deep" / "er" / "report.html"
        done = self.run_report("--out", out, *self.files(*trees))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr, "")
        self.assertEqual(os.listdir(out.parent), ["report.html"])
        text = out.read_text(encoding="utf-8")
        checked = Balanced()
        checked.feed(text)
        self.assertEqual((checked.open, checked.wrong), ([], []))
        self.assertNotIn("@import", text)
        self.assertNotRegex(text, r"\b(None|nan|inf)\b")
        return text

    def table(self, *trees):
        done = self.run_report("--table", *self.files(*trees))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertLessEqual(max(map(len, done.stdout.splitlines())), 100)
        return done.stdout

    def refused(self, content, *words):
        """Exit 2 and one line that names the file and what is wrong in it."""
        path = self.file(content)
        done = self.run_report("--table", path)
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        for word in (path, *words):
            self.assertIn(word, done.stderr)


class GoodResults(Report):
    def test_the_headline_has_the_numbers_that_matter(self):
        page = self.page(made_up("none"), made_up("arming"))
        self.assertIn("<h1>60 % less memory for the same work, at 100 % of the speed</h1>", page)
        self.assertIn("At its peak it was 1.17× of that without.", page)
        self.assertIn("the program uses 100 MiB of memory, with obase 40 MiB at the end: 60 % less",
                      page)
        self.assertNotIn("Read this first", page)

    def test_the_headline_does_not_boast_of_nothing(self):
        more = made_up("arming", used_bytes={"start": 100 * MIB, "end": 120 * MIB})
        self.assertIn("<h1>obase changed memory use by +20 %, at 100 % of the speed</h1>",
                      self.page(made_up("none"), more))

    def test_the_headline_spans_all_experiments(self):
        slow = [window(second, "arming") for second in range(1, 41)]
        for w in slow:
            w["throughput_ops"] *= 0.8
        page = self.page(made_up("none"), made_up("arming"),
                         made_up("none", distribution="zipfian"),
                         made_up("arming", distribution="zipfian", windows=slow,
                                 used_bytes={"start": 100 * MIB, "peak": 106 * MIB, "end": 104 * MIB}))
        self.assertIn("<h1>obase changed memory use by -60 to +4 %, at 80 to 100 % of the speed</h1>",
                      page)

    def test_without_a_run_to_compare_with_the_start_is_the_measure(self):
        page = self.page(made_up("arming"))
        self.assertIn("At the start it used 112 MiB of memory", page)
        self.assertIn("no run without obase to compare with", page)

    def test_only_a_run_without_obase(self):
        page = self.page(made_up("none"))
        self.assertIn("No run with obase", page)

    def test_the_table_has_runs_and_ratios(self):
        table = self.table(made_up("arming"), made_up("none"))
        rows = {line.split("  ")[1].strip(): line.split() for line in table.splitlines()
                if line.startswith("  ")}
        self.assertEqual(rows["none"][1:9], ["30.0", "%", "112", "MiB", "112", "MiB", "100", "MiB"])
        # utilization; used at the start, at the peak and at the end; throughput; p90 latency
        self.assertEqual(rows["arming / none"][3:],
                         ["3.00×", "1.00×", "1.04×", "0.40×", "0.98×", "1.05×"])
        self.assertEqual(rows["none"][9:13], ["1.25×", "1.2", "%", "1"], "of ideal, faulting, throughput")
        self.assertLess(table.index("none "), table.index("arming "))

    def test_one_section_for_each_experiment(self):
        packages = {"source": "debian packages", "packages": 64000, "workload": None,
                    "distribution": None, "live_share": None, "records": 64000}
        page = self.page(made_up("none"), made_up("arming"),
                         made_up("none", workload="B"), made_up("arming", workload="B"),
                         made_up("none", **packages), made_up("arming", **packages))
        titles = re.findall("<h2>(.*?)</h2>", page)
        for title in ("YCSB-C loop, index pugh-hash-table, 100,000 records, 2 threads",
                      "YCSB-B loop, index pugh-hash-table, 100,000 records, 2 threads",
                      "Debian&#x27;s package index, index pugh-hash-table, 64,000 packages, 2 threads"):
            self.assertEqual(titles.count(title), 1)

    def test_runs_of_different_size_are_not_compared(self):
        table = self.table(made_up("none"), made_up("arming", records=5))
        self.assertNotIn("arming / none", table)

    def test_sections_of_one_title_are_told_apart(self):
        page = self.page(made_up("none"), made_up("none", index="fraser-skip-list"))
        for index in ("pugh-hash-table", "fraser-skip-list"):
            self.assertIn(f"<h3>YCSB-C loop, index {index}, 100,000 records, 2 threads</h3>", page)

    def test_the_same_run_twice_is_shown_twice(self):
        table = self.table(made_up("none"), made_up("arming"), made_up("arming"))
        self.assertEqual(table.count("index pugh-hash-table"), 2)

    def test_atc_stands_beside_arming(self):
        table = self.table(made_up("none"), made_up("arming"), made_up("atc"))
        self.assertIn("atc / none", table)
        self.page(made_up("none"), made_up("arming"), made_up("atc"))

    def test_the_recorded_command_is_shown_otherwise_one_is_made(self):
        page = self.page(made_up("none", command="obase bench ycsb --as-recorded"),
                         made_up("arming"), made_up("atc", command=["obase", "--as", "list"]))
        self.assertIn("obase bench ycsb --as-recorded", page)
        self.assertIn("obase --as list", page)
        self.assertIn("obase bench ycsb --index pugh-hash-table --workload C --records 100000 --threads 2 "
                      "--duration 30 --key-size 30 --value-size 1024 --distribution loop "
                      "--live-share 0.31 --protocol arming --mode hint --window 1 "
                      "--time-scale 120 --hints pageout --cold anon", page)

    def test_text_from_results_is_not_markup(self):
        page = self.page(made_up("none", used_method="<script>alert(1)</script>"))
        self.assertIn("a &lt;fast&gt; one", page)

    def test_the_table_needs_no_matplotlib(self):
        blocked = self.folder / "matplotlib"
        blocked.mkdir()
        (blocked / "__init__.py").write_text("raise ImportError('blocked')")
        [path] = self.files(made_up("none"))
        environment = {**os.environ, "PYTHONPATH": str(self.folder)}
        table = subprocess.run([REPORT, "--table", path], capture_output=True, text=True,
                               env=environment, check=False)
        self.assertEqual(table.returncode, 0, table.stderr)
        page = subprocess.run([REPORT, "--out", str(self.folder / "x.html"), path], text=True,
                              capture_output=True, env=environment, check=False)
        self.assertEqual(page.returncode, 1)
        self.assertIn("scripts/install-deps", page.stderr)


def comparison(**changes):
    cell = {"index": "pugh-hash-table", "workload": "C", "protocol": "arming", "phase": "converged",
            "distribution": "loop", "hints": "pageout", "cold": "anon",
            "throughput_ratio": 0.894, "ci95": [0.881, 0.906], "p90_ratio": 1.01,
            "instructions_ratio": None, **changes}
    moving = {**cell, "phase": "moving", "throughput_ratio": 0.73, "p90_ratio": None}
    return {"cells": [cell, moving, {**cell, "workload": "B", "throughput_ratio": 0.5}],
            "geomean": {"arming": 0.9}}


class Kernel(Report):
    """The run without obase, but with the kernel's reclaim."""

    def kernel(self, **changes):
        return made_up("none", reclaim="pageout", swap="/dev/zram7", **{
            "used_bytes": {"start": 112 * MIB, "peak": 112 * MIB, "end": 80 * MIB},
            "compressed_bytes": {"start": 0, "end": 10 * MIB}, **changes})

    def test_it_stands_between_the_others_and_is_not_what_they_are_compared_with(self):
        runs = made_up("arming"), self.kernel(), made_up("none")
        table = self.table(*runs)
        rows = {line.split("  ")[1].strip(): line.split() for line in table.splitlines()
                if line.startswith("  ")}
        self.assertEqual(rows["kernel / none"][3:7], ["1.00×", "1.00×", "1.00×", "0.80×"])
        self.assertEqual(rows["arming / none"][6], "0.40×")
        self.assertEqual(table.count("YCSB-C"), 1 + 2)  # the heading, and a speed for each
        page = self.page(*runs)
        self.assertIn("The kernel alone, asked to page everything out, ends at 80 MiB, 10 MiB of it "
                      "compressed.", page)
        self.assertIn("/dev/zram7", page)

    def test_where_it_was_skipped_the_reason_is_said(self):
        skipped = {key: made_up("none")[key] for key in
                   ("index", "workload", "protocol", "records", "threads", "key_size", "value_size",
                    "distribution", "live_share", "time_scale")}
        skipped.update(reclaim="pageout", skipped="no swap <here>", windows=[])
        runs = made_up("none"), skipped, made_up("arming")
        self.assertIn("none + kernel: skipped: no swap <here>", self.table(*runs))
        page = self.page(*runs)
        self.assertIn("skipped: no swap &lt;here&gt;", page)
        self.assertNotIn("kernel / none", page)


class Speeds(Report):
    def rows(self, comparisons, *trees):
        paths = [word for number, content in enumerate(comparisons)
                 for word in ("--compare", self.file(content, f"compare{number}.json"))]
        out = self.folder / "report.html"
        done = self.run_report("--table", "--out", out, *paths, *self.files(*trees))
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertLessEqual(max(map(len, done.stdout.splitlines())), 100)
        self.page_text = out.read_text(encoding="utf-8")
        return {line[:50].strip(): line[50:].split() for line in done.stdout.splitlines()
                if line.startswith("  YCSB")}

    def test_both_ratios_are_shown_and_the_headline_has_the_one_in_turns(self):
        rows = self.rows([comparison()], made_up("none"), made_up("arming"))
        self.assertEqual(rows["YCSB-C loop, arming, between the runs"],
                         ["1.00×", "1.00×", "to", "1.00×", "1.05×"])
        self.assertEqual(rows["YCSB-C loop, arming, in turns, settled"],
                         ["0.89×", "0.88×", "to", "0.91×", "1.01×"])
        self.assertEqual(rows["YCSB-C loop, arming, in turns, first load moving"][0], "0.73×")
        self.assertIn("at 89 % of the speed</h1>", self.page_text)
        self.assertIn("Throughput is 89.4 % of that without obase (95 % interval 88.1 % to 90.6 %), "
                      "measured in turns.", self.page_text)
        self.assertNotIn("0.50×", self.page_text)

    def test_turns_of_another_configuration_are_not_shown(self):
        for changes in ({"hints": "off"}, {"cold": "file:/somewhere"}, {"distribution": "zipfian"},
                        {"index": "fraser-skip-list"}, {"workload": "A"}, {"protocol": "atc"}):
            with self.subTest(changes):
                rows = self.rows([comparison(**changes)], made_up("none"), made_up("arming"))
                self.assertEqual(list(rows), ["YCSB-C loop, arming, between the runs"])

    def test_each_distribution_has_its_own_comparison(self):
        rows = self.rows([comparison(), comparison(distribution="zipfian", throughput_ratio=0.42)],
                         made_up("none"), made_up("arming"),
                         made_up("none", distribution="zipfian"),
                         made_up("arming", distribution="zipfian"))
        self.assertEqual(rows["YCSB-C loop, arming, in turns, settled"][0], "0.89×")
        self.assertEqual(rows["YCSB-C zipfian, arming, in turns, settled"][0], "0.42×")

    def test_between_the_runs_counts_the_second_halves_and_knows_their_spread(self):
        def run(protocol, rates):
            windows = [window(second, protocol) for second in range(1, len(rates) + 1)]
            for w, rate in zip(windows, rates):
                w["throughput_ops"] = rate
            return made_up(protocol, windows=windows, duration_s=len(rates))
        rows = self.rows([], run("none", [1, 1, 1, 1, 100, 100, 100, 100]),
                         run("arming", [9, 9, 9, 9, 80, 90, 80, 90]))
        # Logarithms: mean ln 84.85, standard deviation .068; t of 3 degrees is 3.182.
        self.assertEqual(rows["YCSB-C loop, arming, between the runs"][:4],
                         ["0.85×", "0.76×", "to", "0.95×"])
        rows = self.rows([], run("none", [1, 100, 100]), run("arming", [1, 80, 80]))
        self.assertEqual(rows["YCSB-C loop, arming, between the runs"][:2], ["0.98×", "-"])

    def test_what_was_not_measured_in_turns_is_not_made_up(self):
        rows = self.rows([comparison(throughput_ratio=None, ci95=None)], made_up("none"),
                         made_up("arming"))
        self.assertEqual(rows["YCSB-C loop, arming, in turns, settled"], ["-", "-", "1.01×"])
        self.assertIn("measured between the runs", self.page_text)

    def test_markdown_goes_between_its_lines(self):
        page = self.folder / "page.md"
        page.write_text("before\n<!-- by demo/report.py -->\nwhat was there\n<!-- end -->\nafter\n", encoding="utf-8")
        for _ in range(2):
            done = self.run_report("--markdown", page, *self.files(made_up("none"), made_up("arming")))
            self.assertEqual((done.returncode, done.stderr), (0, ""))
        text = page.read_text(encoding="utf-8")
        self.assertTrue(text.startswith("before\n<!-- by demo/report.py -->\n"))
        self.assertTrue(text.endswith("<!-- end -->\nafter\n"))
        self.assertNotIn("what was there", text)
        self.assertEqual(text.count("| arming / none |"), 1)
        page.write_text("nothing\n", encoding="utf-8")
        done = self.run_report("--markdown", page, *self.files(made_up("none")))
        self.assertEqual(done.returncode, 2)
        self.assertEqual(page.read_text(encoding="utf-8"), "nothing\n")

    def test_a_table_that_cannot_be_written(self):
        with open("/dev/full", "w", encoding="utf-8") as full:
            done = subprocess.run([REPORT, "--table", *self.files(made_up())], stdout=full,
                                  stderr=subprocess.PIPE, text=True, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stderr, "report: the table cannot be written: No space left on device\n")

    def test_broken_comparisons_are_named(self):
        [result] = self.files(made_up())
        for content, words in (({}, "'cells' is missing"), ({"cells": 3}, "cells should be a list"),
                               ({"cells": [3]}, "cells[0] should be an object"),
                               (comparison(phase=None), "'phase' is missing"),
                               (comparison(ci95=[1]), "cells[0].ci95 should be two numbers"),
                               (comparison(p90_ratio="1"), "p90_ratio should be a number")):
            path = self.file(content, "compare.json")
            done = self.run_report("--table", "--compare", path, result)
            self.assertEqual(done.returncode, 2)
            self.assertIn(path, done.stderr)
            self.assertIn(words, done.stderr)


class Gaps(Report):
    def test_nothing_measured(self):
        none, arming = (nothing_measured(made_up(p)) for p in ("none", "arming"))
        page = self.page(none, arming)
        self.assertIn("<h1>Memory and speed, with obase and without</h1>", page)
        self.assertIn("not measured", page)
        self.assertIn("-", self.table(none, arming))

    def test_every_member_alone_may_be_null_or_missing(self):
        whole = made_up("arming")
        for path in leaves(whole):
            if path in (("index",), ("workload",), ("protocol",)):
                continue
            tree = copy.deepcopy(whole)
            set_at(tree, path, None)
            with self.subTest(null=".".join(path)):
                self.table(made_up("none"), tree)
        for keep in (["windows"], ["windows", "used_bytes"], ["windows", "heat_map"]):
            few = {key: whole[key] for key in ["index", "workload", "protocol", *keep]}
            with self.subTest(only=keep):
                self.page(few)

    def test_members_of_windows_may_be_null(self):
        paths = list(leaves(window(1, "arming")))
        # Neighbours share a plot: each loses one of its two series, then the other, then both.
        for number, lost in enumerate((paths[::2], paths[1::2], paths)):
            windows = [window(second, "arming") for second in range(1, 6)]
            for w in windows:
                for path in reversed(lost):  # what is inside heaps before heaps
                    if path != ("t_s",):
                        set_at(w, path, None)
            with self.subTest(number):
                self.page(made_up("none"), made_up("arming", windows=windows))

    def test_one_window_only(self):
        page = self.page(*(made_up(p, windows=[window(1, p)]) for p in ("none", "arming")))
        self.assertIn("s0f2-", page)  # the heaps are drawn

    def test_windows_with_gaps(self):
        windows = [window(second, "arming") for second in range(1, 6)]
        windows[1]["heaps"] = None
        windows[2]["heaps"]["cold"] = None
        windows[3] = {"t_s": 4}
        windows[4]["t_s"] = None
        self.page(made_up("none"), made_up("arming", windows=windows))

    def test_all_zero(self):
        zero = made_up("arming", throughput_ops=0, used_bytes={"start": 0, "end": 0},
                       windows=[{"t_s": 0, "throughput_ops": 0, "used_bytes": 0, "moved": 0,
                                 "vetoed": 0, "promotion_rate": 0, "page_utilization": 0,
                                 "heaps": {"hot": {"live_bytes": 0, "extent_bytes": 0}}}])
        self.page(zero, made_up("none", throughput_ops=0, used_bytes={"start": 0, "end": 0}))

    def test_a_run_that_was_stopped_is_named(self):
        page = self.page(made_up("none"), made_up("arming", partial=True))
        self.assertIn("stopped early", page)
        self.assertIn("arming (stopped)", self.table(made_up("arming", partial=True)))

    def test_what_the_witness_found_is_said_first(self):
        page = self.page(made_up("none"), made_up("arming", witness={
            "page_utilization": 0.5, "used_bytes": 1, "lost_writes": 3, "stale_reads": None,
            "agrees": False}))
        self.assertIn("3 lost writes", page)
        self.assertIn("<h1>Results that should not be relied on</h1>", page)
        self.assertIn("the independent measurement disagrees", page)
        self.assertLess(page.index("3 lost writes"), page.index("The numbers"))


class HeatMaps(Report):
    def cells(self, page):
        """[(fill, number of cells)] of each map, in the order of the page."""
        return [[(fill, path.count("M")) for fill, path in
                 re.findall(r'<path fill="(#\w+)" d="(M[^"]*)"/>', svg)]
                for svg in re.findall(r'<svg class="heat".*?</svg>', page, re.S)]

    def test_colours_say_how_much_was_touched(self):
        page = self.page(made_up("none"), made_up("arming"))
        self.assertEqual(self.cells(page), [
            [("#f08535", 100)],                   # jemalloc: 30 % everywhere
            [("#f08535", 100)],                   # with obase, at the start
            [("#7a1408", 32)],                    # HOT
            [("#d9dde2", 67), ("#fdeaa8", 1)],    # COLD
        ])
        self.assertIn("One cell is 1 MiB, 256 pages.", page)
        self.assertIn("<b>HOT, in use</b>: 32 MiB, 95.0 % of it touched", page)

    def test_all_maps_of_a_section_have_one_scale(self):
        fine = {"before": [region("new", [0.0, 1.0] * 100, MIB // 2)],
                "after": [region("hot", [1.0] * 3, MIB)]}
        page = self.page(made_up("none", heat_map=None), made_up("arming", heat_map=fine))
        self.assertEqual(self.cells(page), [[("#f08535", 100)], [("#7a1408", 3)]])

    def test_scales_that_do_not_divide_each_other_keep_the_touched_bytes(self):
        uneven = {"before": [region("new", [1.0, 0.0, 0.0], 2 * MIB)],
                  "after": [region("hot", [1.0], 3 * MIB)]}
        page = self.page(made_up("arming", heat_map=uneven))
        # 6 MiB in cells of 3 MiB: 2 of the first 3 are touched.
        self.assertEqual(self.cells(page), [[("#c8431a", 1), ("#d9dde2", 1)], [("#7a1408", 1)]])

    def test_regions_without_cells_and_unknown_names(self):
        self.page(made_up("arming", heat_map={"before": [region("new", [])],
                                              "after": [region("of <its> own", [0.5])]}))
        self.page(made_up("arming", heat_map={"before": [], "after": None}))


class BadInput(Report):
    def test_files_that_are_no_results(self):
        self.refused("", "is empty")
        self.refused("{\"index\": \"pugh-hash-table\",", "is not JSON")
        self.refused("[]", "one JSON object")
        self.refused("[" * 100000, "is not JSON")

    def test_missing_keys_are_named(self):
        for key in ("index", "protocol", "windows", "workload"):
            tree = made_up()
            del tree[key]
            self.refused(tree, key, "is missing")

    def test_values_of_the_wrong_kind_are_named(self):
        self.refused(made_up(throughput_ops="fast"), "throughput_ops should be a number")
        self.refused(made_up(throughput_ops=True), "throughput_ops should be a number")
        self.refused(made_up(throughput_ops=float("nan")), "throughput_ops should be a number")
        self.refused(made_up(throughput_ops=10**400), "throughput_ops should be a number")
        self.refused(made_up(used_bytes=7), "used_bytes should be an object")
        self.refused(made_up(used_bytes={"end": []}), "used_bytes.end should be a number")
        self.refused(made_up(partial="yes"), "partial should be true or false")
        self.refused(made_up(index=None), "index should be text")
        self.refused(made_up(protocol="magic"), "protocol 'magic'")
        self.refused(made_up(windows={}), "windows should be a list")
        self.refused(made_up(windows=[1]), "windows[0] should be an object")
        self.refused(made_up(windows=[{"t_s": "1"}]), "windows[0].t_s should be a number")
        self.refused(made_up(windows=[{"heaps": {"hot": 3}}]), "windows[0].heaps.hot")

    def test_broken_heat_maps_are_named(self):
        def with_region(**changes):
            return made_up(heat_map={"after": [{**region("hot", [0.5]), **changes}]})
        where = "heat_map.after[0]"
        self.refused(made_up(heat_map=[]), "heat_map should be an object")
        self.refused(made_up(heat_map={"before": 3}), "heat_map.before should be a list")
        self.refused(with_region(cells=[2]), f"{where}.cells")
        self.refused(with_region(cells="x"), f"{where}.cells")
        self.refused(with_region(cells=None), where, "'cells' is missing")
        self.refused(with_region(bytes_per_cell=0), where, "above 0")
        self.refused(with_region(name=3), f"{where}.name should be text")

    def test_a_file_that_is_not_there(self):
        missing = str(self.folder / "missing.json")
        done = self.run_report("--table", *self.files(made_up()), missing)
        self.assertEqual(done.returncode, 2)
        self.assertIn(missing, done.stderr)
        self.assertEqual(done.stdout, "")

    def test_bad_usage(self):
        for arguments in ((), ("--table",), self.files(made_up()), ("--what",)):
            self.assertEqual(self.run_report(*arguments).returncode, 2)
        self.assertIn("--table", self.run_report("--help").stdout)

    def test_a_page_that_cannot_be_written(self):
        blocked = self.file("", "a_file")
        done = self.run_report("--out", f"{blocked}/report.html", *self.files(made_up()))
        self.assertEqual(done.returncode, 1)
        self.assertIn("cannot be written", done.stderr)


if __name__ == "__main__":
    REPORT = sys.argv.pop(1)
    unittest.main()
