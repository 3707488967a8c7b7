# SPDX-License-Identifier: MIT
"""The `obase` command from outside: what it prints, what it writes, and how it fails.

usage: command_test.py OBASE
"""

import fcntl
import json
import os
import pathlib
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

OBASE = ""
PLOT_MRC = str(pathlib.Path(__file__).parent / "mrc" / "plot.py")
QUICK = ["--quick", "--pairs", "2"]


def run(*arguments, environment=None, **more):
    return subprocess.run([OBASE, *arguments], capture_output=True, text=True, timeout=900,
                          env={**os.environ, **(environment or {})}, **more)


def swaps():
    """The swap devices and files that are on."""
    lines = pathlib.Path("/proc/swaps").read_text(encoding="utf-8").splitlines()[1:]
    return [line.split()[0] for line in lines]


class Command(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def quick(self, what, *arguments):
        """The JSON of a smoke run; the folder holds nothing else afterwards."""
        path = self.folder / "result.json"
        done = run("bench", what, *QUICK, *arguments, "--json", str(path))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(os.listdir(self.folder), ["result.json"])
        self.assertIn("verdict", done.stdout)
        result = json.loads(path.read_text())
        self.assertFalse(result["partial"])
        return result

    def test_rewrite_is_the_program_beside_it(self):
        beside = self.folder / "obase"
        shutil.copy(OBASE, beside)
        missing = subprocess.run([beside, "rewrite", "--help"], capture_output=True, text=True)
        self.assertEqual(missing.returncode, 1)
        self.assertIn(f"rewrite needs {self.folder}/obase-rewrite: No such file", missing.stderr)
        rewriter = self.folder / "obase-rewrite"
        rewriter.write_text("#!/bin/sh\necho \"$@\"\nexit 3\n")
        rewriter.chmod(0o755)
        there = subprocess.run([beside, "rewrite", "--out=x", "--", "-O2"], capture_output=True, text=True)
        self.assertEqual((there.returncode, there.stdout), (3, "--out=x -- -O2\n"))

    def test_usage_errors_name_the_input_and_exit_with_2(self):
        for arguments, named in [
            (["frobnicate"], "frobnicate"),
            ([], "self-check"),
            (["bench"], "guide"),
            (["bench", "guide", "--pairs", "many"], "many"),
            (["bench", "guide", "--pairs", "0"], "0"),
            (["bench", "guide", "--unknown"], "--unknown"),
            (["bench", "move", "--protocol", "magic"], "magic"),
            (["bench", "move", "--object-bytes", "65"], "65"),
            (["bench", "alloc", "--size", "-3"], "-3"),
            (["bench", "alloc", "--json"], "--json"),
            (["bench", "ycsb", "--index", "magic"], "magic"),
            (["bench", "ycsb", "--reclaim", "pageout"], "--protocol none"),
            (["bench", "ycsb", "--protocol", "none", "--beside-kernel"], "--beside-kernel"),
            (["bench", "compare", "--cold", "file:"], "--cold file:"),
            (["bench", "ycsb", "--records", "0"], "--records 0"),
            (["bench", "ycsb", "--records", "-5"], "-5"),
            (["bench", "ycsb", "--records", "4000000000"], "4000000000"),
            (["bench", "ycsb", "--value-size", "99999999999"], "99999999999"),
            (["bench", "ycsb", "--window", "0"], "--window 0"),
            (["bench", "ycsb", "--duration", "nan"], "--duration nan"),
            (["bench", "ycsb", "--live-share", "1.5"], "--live-share 1.5"),
            (["bench", "ycsb", "--key-size", "3"], "--key-size 3"),
            (["bench", "ycsb", "--cold", "disk"], "--cold disk"),
            (["bench", "ycsb", "--cold", "file:/nonexistent"], "/nonexistent"),
            (["bench", "ycsb", "--workload", "E"], "pugh-hash-table"),
            (["bench", "compare", "--workload", "Z"], "Z"),
            (["bench", "m2t", "--layout", "magic"], "magic"),
            (["bench", "m2t", "--theta", ".5", "--workload", "A"], "--theta"),
            (["bench", "m2t", "--hints", "no,right"], "is none, the cell without hints"),
            (["bench", "kv", "--workload", "magic"], "magic"),
            (["bench", "kv", "--workload", "hot:accesses=2"], "accesses=2"),
            (["bench", "kv", "--workload", "hot:magic=2"], "magic"),
            (["bench", "kv", "--workload", "hot:shift-every=5s"], "--rate"),
            (["bench", "kv", "--workload", "mixgraph"], "pugh-hash-table"),
            (["bench", "kv", "--rate", "-1"], "-1"),
            (["bench", "kv", "--seconds", "0"], "--seconds 0"),
            (["bench", "kv", "--policy", "magic"], "magic"),
            (["bench", "kv", "--policy", "graded", "--protocol", "none"], "--policy graded"),
            (["bench", "kv", "--replay", "x", "--workload", "hot"], "--workload"),
            *[(["bench", "kv", "--replay", "x", option, "9"], option)
              for option in ("--records", "--key-size", "--value-size", "--seed", "--threads", "--seconds")],
            (["bench", "kv", "--replay", "x", "--record", "./x"], "--record ./x"),
            (["bench", "kv", "--json", "x", "--record", "./x"], "--json x"),
            (["bench", "kv", "--json", "x", "--replay", "./x"], "--json x"),
            (["bench", "index", "--index", "magic"], "magic"),
            (["bench", "index", "--protocol", "magic"], "magic"),
            (["bench", "index", "--key-kind", "float"], "float"),
            (["bench", "index", "--updates", "101"], "101"),
            (["bench", "index", "--threads", "0"], "0"),
            (["bench", "index", "--keys", "0"], "--keys 0"),
            (["bench", "index", "--keys", "-5"], "-5"),
            (["bench", "index", "--keys", "1000000000"], "1000000000"),
            (["bench", "index", "--duration", "nan"], "--duration nan"),
            (["bench", "memory", "--load", "magic"], "magic"),
            (["bench", "handles", "--program", "magic"], "magic"),
            (["bench", "handles", "--source", "/nonexistent"], "/nonexistent"),
            (["bench", "fragmentation", "--program", "magic"], "magic"),
            (["bench", "fragmentation", "--allocator", "activedefrag"], "activedefrag"),
            (["bench", "memory", "--policy", "magic"], "magic"),
            (["bench", "memory", "--limit", "half"], "--limit half"),
            (["bench", "memory", "--swap", "disk"], "--swap disk"),
            (["bench", "memory", "--theta", "1"], "--theta 1"),
            (["bench", "memory", "--records", "0"], "--records 0"),
            (["bench", "memory", "--cold", "disk"], "--cold disk"),
            (["bench", "memory", "--set", "policy"], "--set policy"),
            (["bench", "memory", "--set", "cold_threshold=many"], "many"),
            (["bench", "memory", "--pageout-every", "2", "--policy", "papers"], "--pageout-every 2"),
            *[(["bench", "memory", option, number], f"{option}: '{number}' is not a number above 0")
              for option in ("--window", "--time-scale") for number in ("nan", "inf", "0", "-1", "1x")],
            *[(["bench", "memory", "--settle-share", number], f"--settle-share {number}: 0 or more")
              for number in ("nan", "inf", "-1")],
            (["bench", "memory", "--list", "--row", "hot-20-99"], "--list"),
            (["bench", "memory", "--row", "none"], "--row none: there is no such row; there are: hot-20-99"),
            (["bench", "memory", "--row", "hot-20-99", "--rate", "5"], "--rate"),
            (["mrc", "--load", "uniform", "--theta", ".99"], "--theta: only with --load zipf"),
            (["mrc", "--hot-data", ".2"], "--hot-data: only with --load hotspot"),
        ]:
            with self.subTest(arguments=arguments):
                done = run(*arguments)
                self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
                self.assertIn(named, done.stderr)
                self.assertEqual(done.stdout, "")

    def test_help_everywhere(self):
        for words in ([], ["options"], ["self-check"], ["bench"], ["bench", "guide"],
                      ["bench", "alloc"], ["bench", "move"], ["bench", "all"], ["bench", "ycsb"],
                      ["bench", "packages"], ["bench", "compare"], ["bench", "index"], ["bench", "kv"],
                      ["bench", "memory"]):
            with self.subTest(words=words):
                done = run(*words, "--help")
                self.assertEqual(done.returncode, 0)
                self.assertIn("--help", done.stdout)

    def test_flags_are_shown_as_they_are_given(self):
        for words, flags in ((["ycsb"], ["--no-baseline"]), (["packages"], ["--no-baseline"]),
                             (["compare"], ["--no-moving", "--no-instructions"])):
            shown = run("bench", *words, "--help").stdout
            for flag in flags:
                self.assertRegex(shown, rf"(?m)^ *{flag} +\w")

    def test_kv_sends_records_and_plays(self):
        recording = self.folder / "run.ops"
        first_json, second_json = self.folder / "first.json", self.folder / "second.json"
        done = run("bench", "kv", "--quick", "--workload", "hot:accesses=.99,shift-every=.5s,churn=.01",
                   "--record", str(recording), "--json", str(first_json))
        self.assertEqual(done.returncode, 0, done.stderr)
        first = json.loads(first_json.read_text())
        self.assertAlmostEqual(first["throughput_ops"], 20_000, delta=4_000)
        self.assertGreater(first["hit_ratio"], .99)
        self.assertGreaterEqual(first["used_bytes"]["peak"], first["used_bytes"]["end"])
        self.assertTrue(first["windows"])
        for name in ("operations", "behind", "page_faults", "used_bytes", "throughput_ops"):
            self.assertIn(name, first["windows"][0])
        done = run("bench", "kv", "--replay", str(recording), "--time-scale", "600", "--json", str(second_json))
        self.assertEqual(done.returncode, 0, done.stderr)
        second = json.loads(second_json.read_text())
        self.assertEqual(second["operations"], first["operations"])
        self.assertEqual(second["workload"], first["workload"])

    def test_kv_names_what_is_wrong_in_a_file(self):
        torn = self.folder / "torn.ops"
        torn.write_bytes(b"obase-operations 1 1 {}\n" + bytes(7))
        trace = self.folder / "trace.csv"
        trace.write_text("GET,1,2,3\nGET,1,2\n")
        for arguments, named in [
            (["--replay", str(torn)], "torn.ops, record 1: expected 20 bytes"),
            (["--replay", str(self.folder / "none")], "none: cannot be read"),
            (["--workload", f"trace:file={trace}"], "trace.csv, line 2: expected"),
            (["--workload", f"cachelib:config={self.folder}"], "config.json: cannot be read"),
        ]:
            with self.subTest(arguments=arguments):
                done = run("bench", "kv", *arguments)
                self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
                self.assertIn(named, done.stderr)

    def test_version_names_the_build(self):
        done = run("--version")
        self.assertEqual(done.returncode, 0)
        self.assertRegex(done.stdout, r"^obase \d+\.\d+\.\d+ \(.+\)\n$")

    def test_options_are_those_of_the_environment(self):
        done = run("options", environment={"OBASE_WINDOW_SECONDS": "7.5"})
        self.assertEqual(done.returncode, 0)
        self.assertIn("OBASE_WINDOW_SECONDS=7.5", done.stdout)
        bad = run("options", environment={"OBASE_WINDOW_SECONDS": "soon"})
        self.assertEqual(bad.returncode, 2)
        self.assertIn("soon", bad.stderr)

    def test_a_setting_of_the_environment_that_is_not_understood_is_a_usage_error(self):
        kv = ["bench", "kv", "--records", "1000", "--seconds", "1"]
        mrc = ["mrc", "--records", "1000", "--layout", "graded"]
        for arguments in (kv, mrc, ["bench", "guide", *QUICK], ["self-check"], ["options"]):
            for name, value in (("OBASE_MODE", "hnit"), ("OBASE_POLICY", "nope"), ("OBASE_BACKEND", "nope")):
                with self.subTest(arguments=arguments, name=name):
                    done = run(*arguments, environment={name: value})
                    self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
                    self.assertIn(f"{name}: ", done.stderr)
                    self.assertIn(f"'{value}'", done.stderr)
                    self.assertNotIn("keeping", done.stderr)

    def test_self_check_says_where_nothing_leaves_memory(self):
        observing = run("self-check", environment={"OBASE_MODE": "observe"})
        self.assertIn("no cold memory is freed: mode observe moves nothing", observing.stdout)
        self.assertNotIn("no cold memory is freed",
                         run("self-check", environment={"OBASE_MODE": "hint"}).stdout)

    def test_audit_names_an_option_that_it_does_not_know(self):
        done = run("audit", "--foo", "--", "ls")
        self.assertEqual(done.returncode, 2)
        self.assertIn("--foo is not an option", done.stderr)

    def test_self_check_finds_what_cannot_work(self):
        bad = run("self-check", environment={"OBASE_COLD_BACKING": "file:/nonexistent/directory"})
        self.assertEqual(bad.returncode, 1, bad.stdout + bad.stderr)
        self.assertIn("/nonexistent/directory", bad.stdout)

    def test_unwritable_results_are_refused_before_the_run(self):
        for path in ("/nonexistent/result.json", str(self.folder), "/proc/result.json"):
            with self.subTest(path=path):
                begin = time.monotonic()
                done = run("bench", "move", "--json", path)
                self.assertEqual(done.returncode, 1)
                self.assertIn(path, done.stderr)
                self.assertEqual(done.stdout, "")
                # The run itself takes minutes.
                self.assertLess(time.monotonic() - begin, 60)

    def test_a_full_device_is_an_error(self):
        done = run("bench", "guide", *QUICK, "--json", "/dev/full")
        self.assertEqual(done.returncode, 1)
        self.assertIn("/dev/full", done.stderr)
        with open("/dev/full", "w") as full:
            done = subprocess.run([OBASE, "options"], stdout=full, stderr=subprocess.PIPE, text=True)
        self.assertEqual(done.returncode, 1)

    def test_results_replace_the_file_behind_a_link(self):
        target = self.folder / "target.json"
        target.write_text("old")
        target.chmod(0o640)
        link = self.folder / "link.json"
        link.symlink_to(target)
        done = run("bench", "guide", *QUICK, "--json", str(link))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(link.is_symlink())
        self.assertIn("l1", json.loads(target.read_text()))
        self.assertEqual(target.stat().st_mode & 0o777, 0o640)

    def test_guide_has_the_documented_shape(self):
        result = self.quick("guide")
        for place in ("l1", "dram"):
            for way in ("arming", "atc", "mask"):
                for kind in ("latency_time_ratio", "throughput_time_ratio"):
                    self.assertIn(kind, result[place][way])
        for way in ("arming", "mask"):
            self.assertGreater(result["l1"][way]["latency_time_ratio"], 0)
        for name in ("scope_ns", "first_touch_ns", "tag_ns"):
            self.assertIn(name, result)

    def test_move_has_the_documented_shape(self):
        result = self.quick("move")
        rows = {(r["protocol"], r["object_bytes"], r["busy_threads"]) for r in result["runs"]}
        self.assertLessEqual({("arming", b, t) for b in (64, 1024) for t in (0, 2)}, rows)
        for row in result["runs"]:
            self.assertGreater(row["objects_per_s"], 0)
            self.assertGreaterEqual(row["bytes_per_s"], row["objects_per_s"] * row["object_bytes"] * 0.99)
            self.assertTrue(0 <= row["veto_rate"] <= 1)
        self.assertGreater(result["scan_guides_per_s"], 0)

    def test_latency_has_the_documented_shape(self):
        result = self.quick("latency")
        for protocol in ("arming", "atc"):
            self.assertEqual(len(result[protocol]["pairs"]), 2)
            self.assertGreater(result[protocol]["windows"], 0)
            for pair in result[protocol]["pairs"]:
                for state in ("work", "rest"):
                    self.assertEqual(set(pair[state]), {"allocate", "free", "scope", "dereference",
                                                        "allocate_large", "free_large", "fork"})
                    for name, row in pair[state].items():
                        self.assertEqual(row["samples"], {"fork": 2, "allocate_large": 20,
                                                          "free_large": 20}.get(name, 1000))
                        self.assertGreater(row["p9999_ns"], 0)
                        self.assertLessEqual(row["p9999_ns"], row["max_ns"])
                        self.assertLessEqual(row["max_ns"], row["max_with_run_queue_ns"])

    def test_alloc_has_the_documented_shape(self):
        result = self.quick("alloc")
        names = {"what", "size", "threads", "pattern", "obase_ops", "jemalloc_ops", "mimalloc_ops",
                 "ratio_best"}
        self.assertEqual({row["what"] for row in result["runs"]}, {"raw", "owner"})
        for row in result["runs"]:
            self.assertLessEqual(names, set(row))
            self.assertGreater(row["obase_ops"], 0)
        self.assertIn("geomean_ratio_best", result)
        self.assertGreater(result["overhead_64B"], 0)

    def small_ycsb(self, *arguments):
        path = self.folder / "result.json"
        done = run("bench", "ycsb", "--records", "5000", "--duration", "1.5", "--time-scale", "1200",
                   "--value-size", "200", *arguments, "--json", str(path))
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(path.read_text())

    def test_ycsb_has_the_documented_shape(self):
        result = self.small_ycsb("--hints", "pageout", "--cold", f"file:{self.folder}", "--beside-kernel")
        for name in ("throughput_ops", "live_bytes", "index_bytes", "promotion_rate",
                     "cold_threshold", "moved", "vetoed", "guides_per_op", "collector_cpu_share",
                     "time_scale", "base_bytes", "fault_share", "major_faults_per_op", "stall_share",
                     "ideal_bytes", "ideal_object_bytes", "used_over_ideal", "objects_over_ideal"):
            self.assertIsInstance(result[name], (int, float), name)
        self.assertEqual(result["index"], "movable-segmented-hash-table", "values of 200 bytes")
        self.assertEqual(set(result["latency_us"]), {"p50", "p90", "p99", "p999"})
        for name in ("baseline", "start", "end", "end_2m"):
            self.assertTrue(0 < result["page_utilization"][name] <= 1, name)
        self.assertEqual(set(result["rss_bytes"]), {"start", "end"})
        used = result["used_bytes"]
        self.assertEqual(set(used), {"start", "peak", "end"})
        self.assertGreaterEqual(used["peak"], max(used["start"], used["end"],
                                                  *(w["used_bytes"] for w in result["windows"])))
        self.assertTrue(result["witness"]["agrees"])
        self.assertGreater(len(result["windows"]), 3)
        self.assertEqual(set(result["windows"][0]["heaps"]), {"new", "hot", "cold", "large"})
        self.assertTrue(result["heat_map"]["before"] and result["heat_map"]["after"])
        plain = result["plain"]
        if "skipped" in plain:
            self.assertIn("no swap", plain["skipped"])
            return
        self.assertEqual(set(plain["used_bytes"]), {"start", "peak", "end"})
        for name in ("base_bytes", "fault_share", "major_faults_per_op", "used_over_ideal"):
            self.assertIsInstance(plain[name], (int, float), name)
        self.assertGreater(plain["paged_out_bytes"], 5000 * 200)
        self.assertIn("--protocol none", plain["command"])

    def test_ycsb_replays_traces_and_refuses_torn_ones(self):
        trace = self.folder / "trace.csv"
        lines = [f"{'get' if i % 3 else 'put'},{i % 500},20,{0 if i % 3 else 100}" for i in range(3000)]
        trace.write_text("op,keyid,keylen,vallen\n" + "\n".join(lines) + "\n")
        result = self.small_ycsb("--trace", str(trace))
        self.assertEqual(result["records"], 500)
        self.assertEqual(result["period"], 3000)
        trace.write_text(trace.read_text()[:-7])
        done = run("bench", "ycsb", "--trace", str(trace))
        self.assertEqual(done.returncode, 1)
        self.assertIn("trace.csv, line 3001", done.stderr)

    def test_packages_come_from_a_file(self):
        index = self.folder / "packages"
        names = ["dpkg", "libc6", "perl-base"] + [f"unused{i}" for i in range(2000)]
        index.write_text("".join(
            f"Package: {n}\nVersion: 1\nDepends: libc6\nDescription: {'x' * 400}\n\n" for n in names))
        path = self.folder / "result.json"
        done = run("bench", "packages", "--packages", str(index), "--duration", "1.5", "--time-scale",
                   "1200", "--json", str(path))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(json.loads(path.read_text())["packages"], len(names))
        done = run("bench", "packages", "--packages", str(self.folder / "none"))
        self.assertEqual(done.returncode, 1)
        self.assertIn("none", done.stderr)

    RECLAIM = ["ycsb", "--records", "20000", "--protocol", "none", "--distribution", "loop",
               "--reclaim", "pageout", "--time-scale", "1200"]

    def test_the_kernels_reclaim_is_measured_or_skipped_with_the_reason(self):
        path = self.folder / "result.json"
        before = swaps()
        done = run("bench", *self.RECLAIM, "--duration", "2", "--json", str(path))
        result = json.loads(path.read_text())
        if done.returncode == 77:
            self.assertIn("skipped: --reclaim pageout: no swap", done.stdout)
            self.assertIn("no swap", result["skipped"])
            self.assertEqual(result["windows"], [])
            return
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertGreater(result["paged_out_bytes"], 20000 * 1024)
        self.assertEqual(result["reclaim"], "pageout")
        self.assertTrue(result["witness"]["agrees"], result["witness"])
        # 31 % of the records are asked for, so some pages hold none of them.
        self.assertLess(result["rss_bytes"]["end"], result["rss_bytes"]["start"])
        self.assertIn("compressed_bytes", result["windows"][0])
        if result["swap"] not in before:
            self.assertNotIn(result["swap"], swaps())

    def test_swap_that_was_made_is_undone_however_the_command_ends(self):
        if swaps() or os.geteuid() != 0 or not os.path.exists("/sys/class/zram-control/hot_add"):
            self.skipTest("the machine has swap of its own, or none can be made")
        for number in (signal.SIGKILL, signal.SIGTERM):
            with self.subTest(signal=number):
                child = self.started_until("traffic for", *self.RECLAIM, "--duration", "3600")
                made = [device for device in swaps() if device.startswith("/dev/zram")]
                if not made:
                    self.skipTest("no swap was made")
                os.kill(child.pid, number)
                child.communicate(timeout=300)
                # After SIGKILL its keeper is still at work.
                while made[0] in swaps() or os.path.exists(f"/sys/block/{made[0][5:]}"):
                    time.sleep(0.05)
                # It lets others make swap only after that.
                with open("/run/lock/obase-swap.lock", "w", encoding="utf-8") as lock:
                    fcntl.flock(lock, fcntl.LOCK_EX)

    def test_one_process_at_a_time_makes_swap(self):
        if swaps() or os.geteuid() != 0:
            self.skipTest("the machine has swap of its own, or none can be made")
        with open("/run/lock/obase-swap.lock", "w", encoding="utf-8") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            done = run("bench", *self.RECLAIM, "--duration", "2")
        self.assertEqual(done.returncode, 77, done.stderr)
        self.assertIn("is locked by another process", done.stdout)

    MEMORY = ["memory", "--records", "20000", "--window", "12", "--settle-windows", "3",
              "--max-windows", "8"]

    def memory_cells(self, *arguments, environment=None):
        """The cells of a run, or a skipped test where the machine has other swap."""
        path = self.folder / "result.json"
        done = run("bench", *arguments, "--json", str(path), environment=environment)
        if done.returncode == 77:
            self.skipTest(done.stdout)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(path.read_text())["cells"], done.stdout

    def test_memory_measures_every_cell_of_a_row(self):
        cells, shown = self.memory_cells("memory", "--row", "hot-20-999", "--quick")
        self.assertEqual([c["policy"] for c in cells], ["papers", "graded", "plain"])
        for cell in cells:
            self.assertEqual((cell["killed"], cell["wrong"], cell["swap"]), (False, 0, "none"))
            self.assertGreater(cell["start_bytes"], cell["base_bytes"] + 20000 * 1054)
            self.assertGreaterEqual(cell["peak_bytes"], cell["start_bytes"])
            self.assertGreater(cell["used_over_ideal"], 1)
            # Paced: as many operations as were asked for.
            self.assertAlmostEqual(cell["throughput_ratio"], 1, delta=.1)
            for window in cell["windows"]:
                self.assertAlmostEqual(window["used"] / window["witness"], 1, delta=.1)
        self.assertIn("<= 1.100", shown)

    def test_memory_measures_in_rounds(self):
        cells, shown = self.memory_cells("memory", "--row", "hot-20-99", "--policy", "papers", "--quick", "--pairs", "2")
        self.assertEqual([(c["policy"], c["round"]) for c in cells], [("papers", 0), ("papers", 1)])
        self.assertRegex(shown, r"papers: used over ideal .*n = 2")

    def test_memory_takes_obases_options_from_the_environment(self):
        [cell], _ = self.memory_cells(*self.MEMORY, "--swap", "any",
                                      environment={"OBASE_POLICY": "graded"})
        self.assertEqual(cell["policy"], "graded")
        self.assertIn("--policy graded", cell["command"])
        self.assertIn("rate7", [tier["name"] for tier in cell["windows"][0]["tiers"]])
        done = run("bench", *self.MEMORY, "--swap", "any",
                   environment={"OBASE_POLICY": "no-such-policy"})
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("no-such-policy", done.stderr)

    def test_memory_churns(self):
        [cell], _ = self.memory_cells(*self.MEMORY, "--policy", "papers", "--churn-share", ".1")
        operations = sum(window["operations"] for window in cell["windows"])
        self.assertGreater(cell["churned"], .08 * operations)
        self.assertEqual(cell["wrong"], 0)
        self.assertIn("--churn-share 0.1", cell["command"])
        done = run("bench", *self.MEMORY, "--churn-share", "1.5")
        self.assertEqual(done.returncode, 2)
        self.assertIn("--churn-share 1.5", done.stderr)

    def own_groups(self):
        """Control groups that cells left behind, below this process's own."""
        own = [line.split(":", 2)[2].strip()
               for line in pathlib.Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines()
               if ":memory:" in line]
        return [path for group in own
                for path in pathlib.Path(f"/sys/fs/cgroup/memory{group}").glob("obase-cell-*")]

    def test_a_cell_that_the_kernel_kills_is_a_result(self):
        if os.geteuid() != 0 or not os.path.exists("/sys/fs/cgroup/memory/memory.limit_in_bytes"):
            self.skipTest("no control groups of version 1 here")
        # What updates make and have not freed yet is more than that above what was charged before.
        [cell], _ = self.memory_cells(*self.MEMORY, "--policy", "plain", "--limit", "105%",
                                      "--update-share", "1", "--rate", "0")
        self.assertTrue(cell["killed"])
        self.assertGreater(cell["start_bytes"], 0)
        self.assertGreater(cell["limit_bytes"], cell["start_bytes"])
        self.assertEqual((cell["settled"], cell["partial"]), (False, False))
        self.assertEqual(self.own_groups(), [])

    def test_a_swap_file_and_its_group_are_undone_however_the_command_ends(self):
        if swaps() or os.geteuid() != 0:
            self.skipTest("the machine has swap of its own, or none can be made")
        for number in (signal.SIGKILL, signal.SIGTERM):
            with self.subTest(signal=number):
                child = self.started_until("window 2", *self.MEMORY[:5], "--settle-windows", "9999",
                                           "--max-windows", "9999", "--limit", "60%", "--swap",
                                           f"file:{self.folder}")
                made = swaps()
                self.assertEqual(made, [str(p) for p in self.folder.glob("obase-swap-*")])
                if os.path.exists("/sys/fs/cgroup/memory/memory.limit_in_bytes"):
                    self.assertEqual(len(self.own_groups()), 1)
                os.kill(child.pid, number)
                child.communicate(timeout=300)
                deadline = time.monotonic() + 60
                while (swaps() or self.own_groups()) and time.monotonic() < deadline:
                    time.sleep(0.05)
                self.assertEqual((swaps(), self.own_groups()), ([], []))
                self.assertEqual(list(self.folder.glob("obase-swap-*")), [])
                with open("/run/lock/obase-swap.lock", "w", encoding="utf-8") as lock:
                    fcntl.flock(lock, fcntl.LOCK_EX)

    def test_compare_with_hints_says_so_in_every_cell(self):
        path = self.folder / "result.json"
        done = run("bench", "compare", "--quick", "--pairs", "2", "--workload", "C", "--index", "pugh-hash-table",
                   "--protocol", "arming", "--distribution", "loop", "--no-moving", "--hints",
                   "pageout", "--cold", "file:/var/tmp", "--json", str(path))
        self.assertEqual(done.returncode, 0, done.stderr)
        [cell] = json.loads(path.read_text())["cells"]
        self.assertEqual((cell["distribution"], cell["hints"], cell["cold"]),
                         ("loop", "pageout", "file:/var/tmp"))
        self.assertIn("--distribution loop", cell["command"])
        self.assertIn("--hints pageout --cold file:/var/tmp", cell["command"])

    def test_compare_has_the_documented_shape(self):
        path = self.folder / "result.json"
        done = run("bench", "compare", *QUICK, "--workload", "C", "--index", "pugh-hash-table", "--json", str(path))
        self.assertEqual(done.returncode, 0, done.stderr)
        result = json.loads(path.read_text())
        cells = {(c["protocol"], c["phase"]) for c in result["cells"]}
        self.assertEqual(cells, {(p, f) for p in ("arming", "atc") for f in ("moving", "converged")})
        for cell in result["cells"]:
            self.assertGreater(cell["throughput_ratio"], 0)
            self.assertLessEqual(cell["ci95"][0], cell["throughput_ratio"])
        self.assertEqual(set(result["geomean"]), {"arming", "atc"})

    def test_mrc_has_the_documented_shape(self):
        path = self.folder / "mrc.json"
        done = run("mrc", "--records", "3000", "--accesses-per-object", "2,4", "--lru-requests",
                   "20000", "--page-bytes", "4096", "--json", str(path))
        self.assertEqual(done.returncode, 0, done.stderr)
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        self.assertEqual({c["layout"] for c in cells} & {"malloc", "papers"}, {"malloc", "papers"})
        self.assertEqual({c["accesses_per_object"] for c in cells}, {2, 4})
        self.assertEqual({c["order"] for c in cells}, {"static", "lru"})
        self.assertEqual({c["objects"] for c in cells}, {"all", "keys", "values", "nodes"})
        for cell in cells:
            self.assertEqual(set(cell["inflation"]), {"0.8", "0.9", "0.95", "0.99"})
            self.assertEqual((cell["workload"], cell["value_bytes"], cell["page_bytes"]),
                             ("zipf 0.99", 128, 4096))
            self.assertIn("--layout " + cell["layout"], cell["command"])
            for points in cell["curve"].values():
                self.assertEqual(points, sorted(points))
        page = self.folder / "mrc.html"
        plot = [PLOT_MRC, str(path), "--out", str(page)]
        self.assertEqual(subprocess.run(plot, check=False).returncode, 0)
        self.assertEqual(page.read_text(encoding="utf-8").count("<svg"), 1)

    def test_mrc_plots_refuse_what_is_no_result(self):
        path = self.folder / "other.json"
        path.write_text('{"cells": [{"layout": "malloc"}]}', encoding="utf-8")
        page = self.folder / "mrc.html"
        for wrong in (path, self.folder / "missing.json"):
            done = subprocess.run([PLOT_MRC, str(wrong), "--out", str(page)], check=False,
                                  capture_output=True, text=True)
            self.assertEqual(done.returncode, 1)
            self.assertIn(str(wrong), done.stderr)
            self.assertFalse(page.exists())

    def test_index_has_the_documented_shape(self):
        result = self.quick("index", "--index", "pugh-hash-table,occ-btree", "--threads", "1,2", "--updates", "0,20")
        cells = {(c["index"], c["protocol"], c["key_kind"], c["threads"], c["updates"])
                 for c in result["cells"]}
        self.assertEqual(cells, {(i, p, k, t, u) for i in ("pugh-hash-table", "occ-btree")
                                 for p in ("none", "arming", "atc") for k in ("integer", "string")
                                 for t in (1, 2) for u in (0, 20)})
        self.assertEqual(len(result["cells"]), len(cells))
        for cell in result["cells"]:
            self.assertIn("mix", cell)
            self.assertGreater(cell["mops"], 0)
            self.assertGreater(cell["mops_cpu"], 0)
            self.assertIsNone(cell["verdict"])  # this size has not been published
            if cell["protocol"] == "none":
                self.assertIsNone(cell["ratio"])
            else:
                self.assertGreater(cell["ratio"], 0)
        self.assertEqual({(s["protocol"], s["threads"]) for s in result["scaling"]},
                         {(p, t) for p in ("arming", "atc") for t in (1, 2)})

    def test_m2t_has_the_documented_shape(self):
        result = self.quick("m2t", "--records-per-bucket", "64")
        layouts = {"malloc", "jemalloc", "near", "near-meta", "temperature", "near-meta+temperature"}
        self.assertEqual({(c["layout"], c["tier"]) for c in result["cells"]},
                         {(layout, tier) for layout in layouts for tier in ("dram", "model")})
        members = {"layout", "records_per_bucket", "value_bytes", "workload", "theta", "transport", "tier",
                   "throughput_ops", "ratio", "ci95", "cpu_ns_per_op", "visits_per_op", "llc_misses_per_op",
                   "tlb_misses_per_op", "pages_touched", "far_share", "modelled_ns_per_op", "major_faults_per_op",
                   "migrated_pages", "bytes_per_record"}
        for cell in result["cells"]:
            self.assertLessEqual(members, set(cell))
            self.assertEqual(cell["cpu_ns_per_op"] is None, cell["tier"] == "model")
            self.assertEqual(cell["tlb_misses_per_op"] is None, cell["tier"] == "dram")
        for claim in result["claims"]:
            self.assertIn(claim["verdict"], ("reproduced", "exceeded", "not reproduced", "not testable"))

    def test_index_alone_under_one_protocol(self):
        result = self.quick("index", "--index", "pugh-hash-table", "--protocol", "arming", "--threads", "2",
                            "--key-kind", "string", "--updates", "50")
        self.assertEqual(len(result["cells"]), 1)
        self.assertIsNone(result["cells"][0]["ratio"])
        self.assertEqual(result["scaling"], [])

    def test_an_interrupted_index_leaves_a_partial_result(self):
        path = self.folder / "result.json"
        child = subprocess.Popen([OBASE, "bench", "index", "--keys", "20000", "--duration", "600",
                                  "--pairs", "6000", "--json", str(path)],
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                 start_new_session=True)
        time.sleep(8)
        os.killpg(child.pid, signal.SIGINT)
        _, errors = child.communicate(timeout=900)
        self.assertEqual(child.returncode, 130, errors)
        self.assertTrue(json.loads(path.read_text())["partial"])

    def test_an_interrupted_ycsb_leaves_a_partial_result(self):
        path = self.folder / "result.json"
        child = subprocess.Popen([OBASE, "bench", "ycsb", "--records", "5000", "--duration", "600",
                                  "--time-scale", "1200", "--json", str(path)],
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                 start_new_session=True)
        time.sleep(8)
        os.killpg(child.pid, signal.SIGINT)
        _, errors = child.communicate(timeout=900)
        self.assertEqual(child.returncode, 130, errors)
        self.assertTrue(json.loads(path.read_text())["partial"])

    def started_until(self, progress, *arguments, of=("bench",)):
        """A benchmark in a session of its own that has just told of this progress, which it does on
        terminals only."""
        ours, terminal = os.openpty()
        self.addCleanup(os.close, ours)
        child = subprocess.Popen([OBASE, *of, *arguments], stdout=subprocess.PIPE, stderr=terminal,
                                 text=True, start_new_session=True)
        os.close(terminal)
        self.addCleanup(self.end_group, child.pid)
        said = ""
        while progress not in said:
            try:
                said += os.read(ours, 4096).decode()
            except OSError:  # its other end is closed
                self.fail(said)
        return child

    def interrupted_alone(self, signal_number, *arguments, ready, of=("bench",), rest=0):
        """A signal to the command's process only, not to its group; the finished process's text."""
        path = self.folder / "result.json"
        child = self.started_until(ready, *arguments, "--json", str(path), of=of)
        time.sleep(rest)
        os.kill(child.pid, signal_number)
        try:
            output, _ = child.communicate(timeout=300)
        except subprocess.TimeoutExpired:
            self.fail(f"{arguments}: still at work 300 s after signal {signal_number}")
        self.assertEqual(child.returncode, 130, output)
        self.assertIn("partial", output)
        self.assertTrue(json.loads(path.read_text())["partial"])
        self.assertEqual(os.listdir(self.folder), ["result.json"])

    @staticmethod
    def end_group(group):
        try:
            os.killpg(group, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def test_a_signal_to_the_command_alone_reaches_the_process_that_measures(self):
        # Traffic for an hour: only the signal ends it.
        ycsb = ["ycsb", "--records", "5000", "--duration", "3600", "--time-scale", "1200"]
        for number in (signal.SIGTERM, signal.SIGINT):
            with self.subTest(signal=number):
                self.interrupted_alone(number, *ycsb, "--no-baseline", ready="traffic for")
                (self.folder / "result.json").unlink()

    def test_an_interrupt_while_a_store_is_loaded_ends_as_any_other(self):
        many = ["--records", "3000000"]
        for of, arguments, ready, rest in (
                (["bench"], ["kv", *many], "loading", 0),
                (["bench"], ["ycsb", *many, "--no-baseline"], "loading", 0),
                # These tell before they begin the process that loads.
                (["bench"], ["memory", *many, "--settle-windows", "9999", "--max-windows", "9999"],
                 "bench memory", .5),
                (["mrc"], [*many], "obase mrc", .5)):
            with self.subTest(arguments=arguments):
                self.interrupted_alone(signal.SIGINT, *arguments, ready=ready, of=of, rest=rest)
                (self.folder / "result.json").unlink()

    def test_an_interrupt_during_hints_leaves_the_cells_before_them(self):
        # So many pairs that only the signal ends it.
        for ready in ("m2t hints: none", "m2t hints: right"):
            with self.subTest(ready=ready):
                self.interrupted_alone(signal.SIGINT, "m2t", "--layout", "malloc", "--tier", "model",
                                       "--records-per-bucket", "1", "--records", "100000", "--pairs", "10000",
                                       ready=ready)
                result = json.loads((self.folder / "result.json").read_text())
                self.assertEqual(len(result["cells"]), 1)
                told = [row["window"] for row in result["hints"] if row["hints"] == "none"]
                if ready != "m2t hints: none":
                    self.assertEqual(told, list(range(9)))
                (self.folder / "result.json").unlink()

    def test_the_measuring_process_dies_with_the_command(self):
        child = self.started_until("traffic for", "ycsb", "--records", "5000", "--duration", "3600",
                                   "--no-baseline")
        children = pathlib.Path(f"/proc/{child.pid}/task/{child.pid}/children").read_text().split()
        self.assertTrue(children)
        processes = [os.pidfd_open(int(number)) for number in children]  # the worker, and keepers that undo
        for process in processes:
            self.addCleanup(os.close, process)
        child.kill()
        for process in processes:
            self.assertTrue(select.select([process], [], [], 300)[0], "it goes on without its parent")

    def test_output_that_cannot_be_written_is_an_error(self):
        for arguments in (["--version"], ["--help"], ["--help-all"], ["bench", "--help"], ["options"],
                          ["self-check"], ["bench", "guide", *QUICK],
                          ["bench", "move", *QUICK, "--protocol", "arming", "--object-bytes", "64",
                           "--busy", "0"],
                          ["bench", "ycsb", "--records", "2000", "--duration", "0.5",
                           "--time-scale", "1200", "--no-baseline"],
                          ["bench", "count-operations", "--index", "pugh-hash-table", "--workload", "C",
                           "--protocol", "none", "--value-size", "100"]):
            with self.subTest(arguments=arguments):
                with open("/dev/full", "w", encoding="utf-8") as full:
                    done = subprocess.run([OBASE, *arguments], stdout=full, stderr=subprocess.PIPE,
                                          text=True, timeout=900)
                self.assertEqual(done.returncode, 1, done.stderr)
                self.assertIn("obase: cannot write to the standard output: No space left", done.stderr)

    def test_an_interrupt_leaves_a_partial_result(self):
        path = self.folder / "result.json"
        child = subprocess.Popen([OBASE, "bench", "move", "--json", str(path), "--pairs", "1000"],
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                 start_new_session=True)
        # The temporary file appears before the signal handler is there, the first case's process after.
        children = pathlib.Path(f"/proc/{child.pid}/task/{child.pid}/children")
        while child.poll() is None and not children.read_text():
            time.sleep(0.01)
        os.killpg(child.pid, signal.SIGINT)
        output, errors = child.communicate(timeout=900)
        self.assertEqual(child.returncode, 130, errors)
        self.assertIn("partial", output)
        self.assertTrue(json.loads(path.read_text())["partial"])
        self.assertEqual(os.listdir(self.folder), ["result.json"])


if __name__ == "__main__":
    OBASE = sys.argv.pop(1)
    unittest.main(verbosity=2)
