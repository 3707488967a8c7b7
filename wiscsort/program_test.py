#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The program wiscsort from outside: sort(1) as the reference, pipes, messages and exit codes, memory,
a kill at any moment, a full disk, too few descriptors.

usage: program_test.py PROGRAM [--kills N] [--cases [FROM:]TO] [unittest arguments]
"""

import json
import os
import pathlib
import random
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

PROGRAM = ""
KILLS = 12
# Of the comparison with sort(1) on lines and options made up here; each is the same every time.
CASES = range(80)


def run(*arguments, **options):
    return subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, check=False, **options)


def some_lines(seed, count=4000):
    pick = random.Random(seed)
    lines = []
    for _ in range(count):
        kind = pick.random()
        if kind < .3:
            lines.append(b"common-prefix-common-prefix-%d" % pick.randrange(500))
        elif kind < .5:
            lines.append(bytes(pick.choice(b"ab\0 \t-.019\r") for _ in range(pick.randrange(30))))
        elif kind < .7:
            lines.append(b"%d %s:%d" % (pick.randrange(-50, 50), pick.choice([b"x", b"yy", b""]),
                                        pick.randrange(10)))
        elif kind < .71:
            lines.append(b"q" * pick.randrange(9000))
        else:
            lines.append(b"  %.2f\tfoo bar:baz %d" % (pick.uniform(-3, 3), pick.randrange(1000)))
    return b"\n".join(lines)


ODD_NUMBERS = [b"", b"0", b"-0", b"+0", b"+5", b"-5", b"--5", b"- 5", b"-+5", b"5-", b"  -5", b"\t7", b"\v7", b"\r7", b"\xa07",
               b"00012", b"-00012", b".5", b"-.5", b"5.", b"5.00", b"-5.0", b".", b"-.", b"-.0", b"1.1.1", b"1e5", b"0x1f",
               b"1,000", b"1_0", b"abc", b"-abc", b"0" * 400 + b"1", b"." + b"0" * 300 + b"1", b"-." + b"0" * 300 + b"1",
               *(sign + first + b"9" * count + last for sign in (b"", b"-") for first in (b"", b"1") for count in (253, 254, 255, 256)
                 for last in (b"", b".1", b".10", b"x"))]


def odd_line(pick, flavour, prefix):
    if flavour == "equal":
        return prefix
    if flavour == "numbers":
        return pick.choice((b"", b" ", b"x ", b"a:")) + pick.choice(ODD_NUMBERS) + pick.choice((b"", b"", b" ", b"\t2", b":-3", b"\0"))
    if flavour == "fields":
        return b"".join(pick.choice((b" ", b"\t", b":", b"  ", b"a", b"b", b"ab", b"-1", b"0", b"10", b"9", b".", b",", b"\n", b"\0",
                                     b"\xff")) for _ in range(pick.randrange(12)))
    if flavour == "bytes":
        return pick.randbytes(pick.randrange(40))
    if flavour == "long":
        # Alike up to the end.
        return prefix * (pick.choice((1000, 1 << 20)) // max(1, len(prefix))) + pick.choice((b"", b"a", b"\0", b"7"))
    if flavour == "digits":
        return pick.choice((b"", b"-")) + b"1" * pick.choice((1000, 100000)) + pick.choice((b"", b"2", b".5"))
    return prefix + bytes(pick.choice(b"ab\0\xff\r") for _ in range(pick.randrange(12)))


def odd_files(pick, terminator):
    """Files of lines that a sort may get wrong; the last of a file may have no terminator."""
    flavour = pick.choice(("equal", "numbers", "numbers", "fields", "fields", "fields", "bytes", "prefixes", "prefixes", "mixed"))
    if pick.random() < .04:
        flavour = pick.choice(("long", "digits"))
    prefix = pick.randbytes(pick.choice((0, 1, 9, 10, 11, 19, 20, 21, 40))).replace(terminator, b"x")
    few = flavour in ("long", "digits")
    end = (b"\r" if pick.random() < .2 else b"") + terminator
    files = []
    for _ in range(pick.choice((1, 1, 1, 2, 3))):
        count = pick.randrange(12) if few else pick.choice((0, 1, 2, 7, 60, 60, 300, 5000))
        lines = []
        for _ in range(count):
            kind = flavour if flavour != "mixed" else pick.choice(("equal", "numbers", "fields", "bytes", "prefixes"))
            # A terminator inside makes two lines of it.
            lines.append(odd_line(pick, kind, prefix) + end if pick.random() > .02 else end)
        text = b"".join(lines)
        files.append(text.removesuffix(end) if pick.random() < .3 else text)
    return files, few


def odd_position(pick, last):
    text = str(pick.choice((1, 1, 1, 2, 2, 3, 4, 1000000)))
    if pick.random() < .4:
        text += "." + str(pick.choice((1, 2, 3, 5, 100000) + ((0,) if last else ())))
    return text + "".join(flag for flag in "bnr" if pick.random() < .2)


def odd_options(pick):
    options = [flag for flag in ("-r", "-u", "-n", "-s") if pick.random() < .25]
    if pick.random() < .5:
        options += ["-t", pick.choice((":", " ", "\t", "a", "0", "-", ".", "\\0", "\x7f"))]
    for _ in range(pick.choice((0, 0, 1, 1, 2, 3))):
        options += ["-k", odd_position(pick, False) + ("," + odd_position(pick, True) if pick.random() < .7 else "")]
    return options


class InFolder(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)

    def write(self, name, data):
        (self.folder / name).write_bytes(data)
        return self.folder / name


class LikeSort(InFolder):
    def test_the_same_bytes_as_sort(self):
        lines = self.write("in", some_lines(1))
        for options in ("", "-r", "-u", "-n", "-n -r", "-n -u", "-k 2", "-k 2,2", "-k 2n",
                        "-k 2,2n -k 1r", "-t : -k 2,2n", "-t : -k 2.2,2.4", "-k 1.3b,2.1b", "-k 2,2 -s",
                        "-k 1,1n -u", "-r -k 2,2n", "-z", "-z -u -r", "-k 2b,3 -r", "-n -s", "-n -r -s",
                        "-t : -k 2 -u -r", "-k 9", "-k 1.5,1.2", "-k 2.4b,3.1 -s"):
            expected = subprocess.run(["sort", *options.split(), lines], capture_output=True,
                                      check=True, env={**os.environ, "LC_ALL": "C"}).stdout
            for plan in ("--plan onepass", "--plan mergepass --memory 1M --io read",
                         "--plan ems --memory 2M"):
                with self.subTest(options=options, plan=plan):
                    done = run("sort", *options.split(), *plan.split(), lines)
                    self.assertEqual(done.stderr, b"")
                    self.assertTrue(done.stdout == expected)

    def sorted(self, arguments, text=None):
        """(exit status, output) of sort(1)."""
        done = subprocess.run(["sort", *arguments], input=text, capture_output=True, check=False,
                              env={**os.environ, "LC_ALL": "C"})
        return done.returncode, done.stdout

    def test_made_up_lines_and_options_as_sort(self):
        for number in CASES:
            pick = random.Random(f"as sort {number}")
            zero = pick.random() < .25
            files, large = odd_files(pick, b"\0" if zero else b"\n")
            options = odd_options(pick) + (["-z"] if zero else [])
            if any("n" in word for word in options):
                # GNU sort on x86-64 takes the byte 80 in a number for a separator of thousands.
                files = [text.replace(b"\x80", b"\x81") for text in files]
            names = [self.write(f"in{i}", text) for i, text in enumerate(files)]
            status, expected = self.sorted([*options, *names])
            self.assertEqual(status, 0, options)
            memory = "256M" if large else pick.choice(("2M", "4M", "64M"))
            for plan in pick.sample(("onepass", "mergepass", "ems", "auto"), 2):
                how = ["--plan", plan, "--io", pick.choice(("auto", "mmap", "read", "direct")), "--threads",
                       str(pick.choice((1, 2, 3))), "--memory", memory]
                with self.subTest(case=number, options=options, how=how):
                    done = run("sort", *options, *how, *names)
                    self.assertEqual((done.returncode, done.stderr), (0, b""))
                    self.assertTrue(done.stdout == expected)
            with self.subTest(case=number, options=options, pipe=True):
                piped = run("sort", *options, input=files[0])
                self.assertEqual((piped.returncode, piped.stderr), (0, b""))
                self.assertTrue(piped.stdout == self.sorted(options, files[0])[1])
            for text in (files[0], piped.stdout):
                with self.subTest(case=number, options=options, check=text is not files[0]):
                    self.assertEqual(run("check", *options, input=text).returncode,
                                     self.sorted(["-c", *options], text)[0])

    def test_pipes(self):
        for text in (b"", b"b\na\n", b"b\na", b"\n", some_lines(2)):
            reference = subprocess.run(["sort"], input=text, capture_output=True, check=True,
                                       env={**os.environ, "LC_ALL": "C"}).stdout
            for names in ([], ["-"], ["/dev/stdin"]):
                done = run("sort", *names, input=text)
                self.assertTrue(done.stdout == reference)
        fifo = self.folder / "fifo"
        os.mkfifo(fifo)
        writer = threading.Thread(target=lambda: fifo.write_bytes(b"c\nb\n"))
        writer.start()
        self.assertEqual(run("sort", self.write("x", b"z\na\n"), fifo).stdout, b"a\nb\nc\nz\n")
        writer.join()
        self.assertEqual(run("sort", "-o", "/dev/null", self.write("x", b"z\n")).returncode, 0)
        # A file that does not know its size.
        self.assertEqual(run("sort", "/proc/self/status").returncode, 0)

    def test_a_line_of_100_megabytes(self):
        line = bytes(range(97, 123)) * 3900000
        data = self.write("in", b"zz\n" + line + b"\nb\n" + line[:-1] + b"\na")
        done = run("sort", "--memory", "32M", "-o", self.folder / "out", data)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue((self.folder / "out").read_bytes()
                        == b"a\n" + line[:-1] + b"\n" + line + b"\nb\nzz\n")

    def test_a_closed_reader_ends_it(self):
        big = self.write("big", b"some line of text\n" * 400000)
        with subprocess.Popen([PROGRAM, "sort", big], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE) as process:
            process.stdout.read(10)
            process.stdout.close()
            self.assertNotEqual(process.wait(60), 0)
            process.stderr.read()


class Records(InFolder):
    def test_gen_and_check(self):
        data = self.folder / "data"
        self.assertEqual(run("gen", 1000, "-a", "-o", data).returncode, 0)
        first = json.loads(run("check", "--format", "fixed:100", "--key", "0:10", "--json", data).stdout)
        self.assertEqual((first["records"], first["sorted"]), (1000, False))
        self.assertIsNone(first["duplicates"])  # equal keys are side by side in order only
        self.assertNotIn(b"duplicate keys", run("check", "--format", "fixed:100", "--key", "0:10", data).stdout)
        done = run("sort", "--format", "fixed:100", "--key", "0:10", "-o", data, data)
        self.assertEqual(done.returncode, 0, done.stderr)
        second = run("check", "--format", "fixed:100", "--key", "0:10", "--json", data)
        self.assertEqual(second.returncode, 0)
        second = json.loads(second.stdout)
        self.assertTrue(second["sorted"])
        self.assertEqual(second["duplicates"], 0)
        self.assertEqual(first["checksum"], second["checksum"])
        # Partitions are the whole.
        whole = run("gen", 300).stdout
        self.assertEqual(run("gen", 100).stdout + run("gen", 200, "-b", 100).stdout, whole)

    def test_the_checksums_of_gensort(self):
        data = self.folder / "data"
        # The published ones of a million records.
        for options, checksum in ([], b"7a27e2d0d55de"), (["-a"], b"7a19cff467438"):
            run("gen", 1000000, *options, "-o", data)
            self.assertIn(b"checksum: " + checksum + b"\n",
                          run("check", "--format", "fixed:100", "--key", "0:10", data).stdout)

    def test_skewed_keys_are_equal_often(self):
        data, out = self.folder / "data", self.folder / "out"
        self.assertEqual(run("gen", 20000, "--skewed", "-o", data).returncode, 0)
        self.assertEqual(run("sort", "--format", "fixed:100", "--key", "0:10", "-o", out, data).returncode, 0)
        found = json.loads(run("check", "--format", "fixed:100", "--key", "0:10", "--json", out).stdout)
        self.assertEqual((found["records"], found["sorted"]), (20000, True))
        # Of a million keys, the n-th about 1/n of the time.
        self.assertGreater(found["duplicates"], 4000)
        self.assertLess(found["duplicates"], 19000)
        unique = run("sort", "--format", "fixed:100", "--key", "0:10", "-u", data).stdout
        self.assertEqual(len(unique), (20000 - found["duplicates"]) * 100)

    def test_a_probed_profile_is_used(self):
        profile, data = self.folder / "p.json", self.write("in", some_lines(4))
        done = run("probe", self.folder, "--file-size", "2M", "--seconds", ".01", "--threads", "2", "-o", profile)
        self.assertEqual((done.returncode, done.stdout), (0, b""), done.stderr)
        found = json.loads(profile.read_text())
        for direction in "read", "write":
            self.assertGreater(found[direction]["bytes_per_second"], 0)
            self.assertGreaterEqual(found[direction]["threads_at_peak"], 1)
            self.assertGreater(found[direction]["overlap_share"], 0)
        self.assertGreaterEqual(found["granule"], 1)
        self.assertGreater(found["random_share"], 0)
        done = run("sort", "--explain", "--profile", profile, "-o", self.folder / "out", data)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(b"device profile: probed\n", done.stderr)

    def test_a_terminal_sees_progress_and_keeps_nothing_of_it(self):
        data = self.write("data", os.urandom(4000000))
        for plan in "onepass", "mergepass", "ems":
            master, slave = os.openpty()
            with open(master, "rb", buffering=0) as terminal:
                with subprocess.Popen([PROGRAM, "sort", "--format", "fixed:20", "--plan", plan, "--memory",
                                       "64M" if plan == "onepass" else "2M", "-o", self.folder / "out", data],
                                      stderr=slave) as process:
                    os.close(slave)
                    said = b""
                    try:
                        while part := terminal.read(4096):
                            said += part
                    except OSError:
                        pass  # its other end is closed
                self.assertEqual(process.returncode, 0, said)
            self.assertRegex(said, rb"\r\x1b\[Kwiscsort: [a-z]+ \d+ %")
            self.assertTrue(said.endswith(b"%\r\x1b[K"), said)

    def test_directories_for_runs_are_used_in_turn(self):
        # One for the copy of a pipe, one for runs.
        data = os.urandom(6000000)
        sort = ("sort", "--format", "fixed:20", "--plan", "ems", "--memory", "2M", "-o", self.folder / "out", "--temp",
                self.folder)
        self.assertEqual(run(*sort, "--temp", self.folder, "-", input=data).returncode, 0)
        done = run(*sort, "--temp", "/none", "-", input=data)
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"/none: cannot make a temporary file there", done.stderr)

    def test_json_and_explain(self):
        data = self.write("in", some_lines(3))
        report = self.folder / "report"
        done = run("sort", "--explain", "--json", report, "-o", self.folder / "out", data)
        self.assertIn(b"plan: ", done.stderr)
        for plan in (b"onepass", b"mergepass", b"ems"):
            self.assertIn(plan, done.stderr)
        self.assertEqual(json.loads(report.read_text())["records_out"], 4000)


class Refusals(InFolder):
    def refused(self, code, message, *arguments, **options):
        (self.folder / "out").write_bytes(b"old")
        before = sorted(p.name for p in self.folder.iterdir())
        done = run(*arguments, **options)
        text = done.stderr.decode()
        self.assertEqual(done.returncode, code, text)
        self.assertIn(message, text)
        self.assertEqual(len(text.strip().splitlines()), 1, text)
        self.assertEqual((self.folder / "out").read_bytes(), b"old")
        self.assertEqual(sorted(p.name for p in self.folder.iterdir()), before)

    def test_messages(self):
        out, data = self.folder / "out", self.write("in", b"0123456789" * 25)
        sort = ("sort", "-o", out)
        self.refused(1, f"{data}: offset 200: the last record is torn: expected 100 bytes, found 50",
                     *sort, "--format", "fixed:100", data)
        self.refused(1, f"{data}: offset 0: the record's length says", *sort, "--format",
                     "prefixed:u32le", data)
        self.refused(1, "/missing: cannot be opened for reading: No such file", *sort,
                     self.folder / "missing")
        self.refused(1, "is a directory; expected a file", *sort, self.folder)
        self.refused(1, "no/out: cannot", "sort", "-o", self.folder / "no" / "out", data)
        self.refused(1, "is a directory; expected a file name", "sort", "-o", self.folder, data)
        self.refused(2, "wiscsort: ", "--foo")
        self.refused(2, "wiscsort: ")
        self.refused(2, "wiscsort: --plan: ", *sort, "--plan", "magic", data)
        version = run("--version")
        self.assertEqual(version.returncode, 0)
        self.assertRegex(version.stdout, rb"^wiscsort \d+\.\d+\.\d+\n$")
        self.refused(2, "--key: '90:20' lies outside of a record of 100 bytes", *sort, "--format",
                     "fixed:100", "--key", "90:20", data)
        self.refused(2, "--memory 10.00 KiB: too small; at least", *sort, "--memory", "10K", data)
        self.refused(2, "--memory: 'x' is not a size", *sort, "--memory", "x", data)
        self.refused(2, "--threads 0: expected 1 to 1024", *sort, "--threads", "0", data)
        self.refused(2, "'sorted' is no command; expected sort, check, gen, probe or bench", "sorted", data)
        self.refused(2, "the input '' is no file name", *sort, "")
        self.refused(2, "the output '' is no file name", "sort", "-o", "", data)
        self.refused(2, f"--profile: '{self.folder}' is neither a file nor", *sort, "--profile", self.folder, data)
        # What a variable of a script that is not set makes of a command line.
        for option, message in (("--memory", "'' is not a size"), ("--threads", "'' is not a whole number"),
                                ("-t", "'' is not one character"), ("--temp", "'' is no directory"),
                                ("--profile", "'' is neither a file"), ("--json", "'' is no file name")):
            self.refused(2, message, *sort, option, "", data)
        gen = ("gen", "-o", out)
        self.refused(2, "--first: '-1' is not a whole number", *gen, "1", "-b", "-1")
        self.refused(2, "--key-bytes: '-1' is not a whole number", *gen, "1", "--key-bytes", "-1")
        self.refused(2, "numbers end at 18446744073709551615", *gen, "2", "-b", "18446744073709551615")
        self.refused(2, "--seconds: expected .01 to 60", "probe", self.folder, "--seconds", "nan")
        bench = ("bench", "--dir", self.folder)
        self.refused(2, "--shape: 'pmem 9:9' is unknown", *bench, "--shape", "pmem 9:9")
        self.refused(2, "--records 0: expected 1 to", *bench, "--records", "0")
        self.refused(2, "--only: no system and strategy has any of 'MySQL' in its name", *bench, "--real",
                     "--records", "10", "--only", "MySQL")
        self.refused(2, "--cgroup 0: at least 1M is needed", *bench, "--cgroup", "0")
        self.refused(1, f"--dir: {data}/wiscsort-bench-", "bench", "--dir", data)
        with open("/dev/full", "wb") as full:
            for words in ("--help",), ("--version",), ("check", data):
                done = subprocess.run([PROGRAM, *words], stdout=full, stderr=subprocess.PIPE, check=False)
                self.assertEqual((done.returncode, done.stderr),
                                 (1, b"wiscsort: standard output: cannot be written: No space left on device\n"))
        self.refused(2, "--format: 'csv' is unknown", *sort, "--format", "csv", data)
        self.refused(2, "--profile: 'disk' is neither a file nor one of pmem, bd", *sort, "--profile",
                     "disk", data)
        profile = self.write("p.json", b'{"read": {}, "write": {}, "colour": 1}')
        self.refused(2, "p.json: the field 'colour' is unknown", *sort, "--profile", profile, data)
        profile = self.write("p.json", b'{"read": {"bytes_per_second": 1}, "write": {"bytes_per_second": 1}} and more')
        self.refused(2, "p.json: is no JSON: ", *sort, "--profile", profile, data)
        self.refused(1, "/none: cannot make a temporary file there", *sort, "--plan", "mergepass",
                     "--memory", "1M", "--temp", "/none", "--format", "fixed:10",
                     self.write("many", os.urandom(1500000)))

    def test_the_report_is_no_other_file_of_the_sort(self):
        out, data = self.folder / "out", self.write("in", b"b\na\n")
        (self.folder / "link").symlink_to("in")
        sort = ("sort", "-o", out, "--json")
        self.refused(2, "out' is the output, too", *sort, out, data)
        self.refused(2, "out' is the output, too", *sort, self.folder / "." / "out", data)
        self.refused(2, "link' is an input, too", *sort, self.folder / "link", data)
        self.refused(2, "'-' is the output, too", "sort", "--json", "-", data)
        # Before anything is sorted.
        self.refused(1, "cannot open its directory", *sort, self.folder / "no" / "report", data)
        self.refused(1, "is a directory", *sort, self.folder, data)
        self.assertEqual(run("sort", "-o", "/dev/null", "--json", "/dev/null", data).returncode, 0)
        done = run("sort", "-o", out, "--json", "-", data)
        self.assertEqual((json.loads(done.stdout)["records_out"], out.read_bytes()), (2, b"a\nb\n"))

    @unittest.skipIf(os.geteuid() == 0, "root may read and write all files")
    def test_permissions(self):
        secret = self.write("secret", b"x\n")
        secret.chmod(0)
        self.refused(1, "secret: cannot be opened for reading: Permission denied", "sort", "-o",
                     self.folder / "out", secret)

    def test_a_limit_on_file_sizes(self):
        data = self.write("data", os.urandom(3000000))

        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (1000000, 1000000))

        self.refused(1, "File too large", "sort", "--format", "fixed:100", "-o", self.folder / "out",
                     data, preexec_fn=limit)

    def test_too_few_descriptors(self):
        names = [self.write(f"f{i}", b"x\n") for i in range(50)]
        self.refused(1, "Too many open files", "sort", "-o", self.folder / "out", *names,
                     preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (30, 30)))

    def test_many_runs_need_few_descriptors(self):
        data = self.write("data", os.urandom(6000000))
        for plan in ("mergepass", "ems"):
            done = run("sort", "--format", "fixed:20", "--memory", "2M", "--plan", plan, "-o",
                       self.folder / "out", data,
                       preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (12, 12)))
            self.assertEqual(done.returncode, 0, done.stderr)

    def test_direct_io_of_many_inputs_needs_few_descriptors(self):
        whole = os.urandom(200000)
        names = [self.write(f"in{i}", whole[i * 2000:(i + 1) * 2000]) for i in range(100)]
        done = run("sort", "--format", "fixed:20", "--io", "direct", "-o", self.folder / "out", *names,
                   preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (150, 150)))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual((self.folder / "out").read_bytes(),
                         b"".join(sorted(whole[i:i + 20] for i in range(0, len(whole), 20))))

    def test_direct_io_counts_what_the_program_has_open(self):
        whole = os.urandom(200000)
        names = [self.write(f"in{i}", whole[i * 2000:(i + 1) * 2000]) for i in range(100)]
        inherited = [os.open(os.devnull, os.O_RDONLY) for _ in range(35)]
        try:
            done = run("sort", "--format", "fixed:20", "--io", "direct", "-o", self.folder / "out",
                       *names, pass_fds=inherited,
                       preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (150, 150)))
        finally:
            for number in inherited:
                os.close(number)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual((self.folder / "out").read_bytes(),
                         b"".join(sorted(whole[i:i + 20] for i in range(0, len(whole), 20))))

    def test_names_need_not_be_utf8(self):
        folder = os.fsencode(self.folder) + b"/\xff"
        os.mkdir(folder)
        done = subprocess.run([PROGRAM, "probe", folder, "--file-size", "1M", "--seconds", ".01",
                               "--threads", "1"], capture_output=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("granule", json.loads(done.stdout))

    def test_bench_takes_files_of_any_name(self):
        folder = self.folder / "IN OUT 'quoted'"
        folder.mkdir()
        done = run("bench", "--real", "--records", "1000", "--repeats", "1", "--memory", "64M",
                   "--small-memory", "4M", "--dir", folder, "--python", "/none", "--json", folder / "report")
        self.assertEqual(done.returncode, 0, done.stderr)
        report = json.loads((folder / "report").read_text())
        cells = {(cell["system"], cell["state"]) for cell in report["cells"]}
        skipped = " ".join(report["skipped"])
        for state in ("cached", "uncached", "cgroup"):
            for system in ("wiscsort", "GNU sort"):
                self.assertTrue((system, state) in cells or f"{state}: " in skipped, (system, state))
        self.assertIn("DuckDB: /none: cannot be started", skipped)

    def test_bench_goes_on_without_a_peer_that_fails(self):
        """DuckDB fails at 4 MiB, and at 64 MiB in the second round; Polars gives what it was given."""
        log = self.folder / "asked"
        python = self.folder / "python"
        python.write_text(f"""#!/bin/sh
case "$2" in
"import duckdb" | "import polars") exit 0 ;;
*polars*)
    echo polars >> "{log}"
    exec cp "$3" "$4" ;;
*"'{64 << 20}B'"*)
    echo large >> "{log}"
    if [ $(grep -c large "{log}") = 1 ]; then LC_ALL=C exec sort -s -k1.1,1.10 -o "$4" "$3"; fi
    exit 3 ;;
esac
echo small >> "{log}"
printf 'working 50 %%%%\\rTraceback (most recent call last):\\n  File "x"\\n' >&2
printf 'duckdb.OutOfMemoryException: no room\\n\\nPossible solutions:\\n' >&2
exit 1
""")
        python.chmod(0o755)
        report = self.folder / "report"
        done = run("bench", "--real", "--state", "cached", "--records", "1000", "--repeats", "3",
                   "--memory", "64M", "--small-memory", "4M", "--dir", self.folder, "--python", python,
                   "--json", report)
        self.assertEqual(done.returncode, 0, done.stderr)
        skipped = ["cached DuckDB ORDER BY, 4.00 MiB, 2 threads: round 1 of 3: exit status 1: "
                   "duckdb.OutOfMemoryException: no room",
                   "cached Polars sort, no limit, 2 threads: round 1 of 3: the output is wrong",
                   "cached DuckDB ORDER BY, 64.00 MiB, 2 threads: round 2 of 3: exit status 3: it said nothing"]
        result = json.loads(report.read_text())
        self.assertEqual(result["skipped"], skipped)
        self.assertEqual([line for line in done.stdout.decode().splitlines() if "skipped" in line],
                         [f"skipped: {line}" for line in skipped])
        # Who failed was not asked again, and has no figure.
        self.assertEqual(sorted(log.read_text().split()), ["large", "large", "polars", "small"])
        systems = [cell["system"] for cell in result["cells"]]
        self.assertEqual(set(systems), {"wiscsort", "GNU sort"})
        self.assertEqual(len(systems), 9)
        self.assertTrue(all(cell["checked"] for cell in result["cells"]))
        self.assertNotIn("DuckDB", json.dumps(result["ratios"] + result["claims"]))
        self.assertTrue(all(cell["sync_seconds"] >= 0 for cell in result["cells"]))
        self.assertIn("DuckDB: COPY (SELECT l FROM read_csv('IN', ", done.stdout.decode())

    def test_address_space(self):
        data = self.write("data", os.urandom(300000000))
        self.refused(1, "--io read needs none", "sort", "--format", "fixed:100", "--memory", "16M",
                     "-o", self.folder / "out", data,
                     preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (200 << 20, 200 << 20)))

    def test_full_disk(self):
        disk = self.folder / "disk"
        disk.mkdir()
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", disk],
                                 capture_output=True, check=False)
        if mounted.returncode != 0:
            self.skipTest("tmpfs cannot be mounted: " + mounted.stderr.decode().strip())
        try:
            data = self.write("data", os.urandom(3000000))
            self.refused(1, "no room for", "sort", "--format", "fixed:100", "-o", disk / "out", data)
            self.assertEqual(list(disk.iterdir()), [])
            self.refused(1, "No space left on device", "sort", "--format", "fixed:20", "--plan", "ems",
                         "--memory", "2M", "--temp", disk, "-o", self.folder / "out", data)
            self.refused(1, "No space left on device", "sort", "--temp", disk, "-o",
                         self.folder / "out", "-", input=os.urandom(3000000))
        finally:
            subprocess.run(["umount", disk], check=True)

    def test_an_input_that_is_written_all_the_time(self):
        """Whatever is found in the lines meanwhile: it is done before, or fails, and no signal ends it."""
        pick = random.Random(11)
        text = b"".join(b"the same beginning %d\n" % pick.randrange(10**pick.randrange(1, 30)) for _ in range(60000))
        failed = 0
        for attempt in range(12):
            data = self.write("data", text)
            (self.folder / "out").write_bytes(b"old")
            with subprocess.Popen([PROGRAM, "sort", "--no-sync", "--plan", ("onepass", "mergepass")[attempt % 2], "--memory",
                                   ("64M", "4M")[attempt % 2], "-o", self.folder / "out", data],
                                  stderr=subprocess.PIPE) as process:
                with data.open("r+b") as file:
                    while process.poll() is None:
                        file.seek(pick.randrange(len(text) - 100))
                        file.write(pick.choice((b"\n" * 50, b"x" * 100, b"the same beginning 1\n" * 4)))
                        file.flush()
                said = process.stderr.read()
            self.assertIn(process.returncode, (0, 1), said)
            if process.returncode == 1:
                failed += 1
                self.assertRegex(said, b"^wiscsort: .*changed while.*\n$")
                self.assertEqual((self.folder / "out").read_bytes(), b"old")
        self.assertGreater(failed, 0)

    def test_an_input_that_changes(self):
        for change in ("grow", "cut"):
            data = self.write("data", os.urandom(60000000))
            (self.folder / "out").write_bytes(b"old")
            for attempt in range(20):
                with subprocess.Popen([PROGRAM, "sort", "--format", "fixed:100", "--no-sync", "-o",
                                       self.folder / "out", data], stderr=subprocess.PIPE) as process:
                    # Begun: it has the input mapped.
                    maps = pathlib.Path(f"/proc/{process.pid}/maps")
                    while process.poll() is None and str(data) not in maps.read_text():
                        time.sleep(.001)
                    time.sleep(.002 * attempt)
                    with data.open("r+b") as file:
                        if change == "grow":
                            file.seek(0, os.SEEK_END)
                            file.write(b"x" * 100)
                        else:
                            file.truncate(20000000)
                    process.wait(60)
                    said = process.stderr.read()
                if process.returncode == 1:
                    self.assertRegex(said, b"changed while|cut")
                    break
                # It was done, or had not begun: once more.
                self.assertEqual(process.returncode, 0, said)
                data.write_bytes(os.urandom(60000000))
                (self.folder / "out").write_bytes(b"old")
            else:
                self.fail("the change came too late each time")
            self.assertEqual((self.folder / "out").read_bytes(), b"old")


def most_memory(*arguments):
    """Runs the program; its most anonymous and shared memory in KiB, exit code and what it said."""
    most = 0
    with subprocess.Popen([PROGRAM, *map(str, arguments)], stderr=subprocess.PIPE) as process:
        status = pathlib.Path(f"/proc/{process.pid}/status")
        while process.poll() is None:
            try:
                fields = dict(line.split(":", 1) for line in
                              status.read_text().splitlines() if ":" in line)
                most = max(most, sum(int(fields.get(name, "0 kB").split()[0])
                                     for name in ("RssAnon", "RssShmem")))
            except (OSError, ProcessLookupError):
                break
            time.sleep(.001)
        said = process.stderr.read().decode()
    return most, process.wait(), said


class Memory(InFolder):
    def test_bounded(self):
        data = self.folder / "data"
        run("gen", 500000, "-o", data)
        for plan, memory in (("onepass", 32), ("mergepass", 4), ("ems", 4), ("ems", 24)):
            with self.subTest(plan=plan, memory=memory):
                most, code, said = most_memory(
                    "sort", "--format", "fixed:100", "--key", "0:10", "--plan", plan, "--memory",
                    f"{memory}M", "--threads", "2", "-o", self.folder / "out", data)
                self.assertEqual(code, 0, said)
                self.assertGreater(most, 100)
                self.assertLessEqual(most, (memory + 24) * 1024)

    def test_bounded_for_lines_with_keys(self):
        pick = random.Random(5)
        data = self.write("data", b"".join(b"%d:%s x%d\n" % (pick.randrange(10**6), b"abc" * pick.randrange(20),
                                                            pick.randrange(1000)) for _ in range(120000)))
        for plan, memory, io in (("mergepass", 2, "mmap"), ("ems", 3, "read"), ("onepass", 12, "direct")):
            for options in ((), ("-t", ":", "-k", "2,2", "-k", "1,1nr"), ("-n", "-u")):
                with self.subTest(plan=plan, options=options):
                    most, code, said = most_memory("sort", *options, "--plan", plan, "--memory", f"{memory}M", "--io", io,
                                                   "--threads", "4", "-o", self.folder / "out", data)
                    self.assertEqual(code, 0, said)
                    self.assertLessEqual(most, (memory + 24) * 1024)

    def test_a_look_at_large_records_is_bounded(self):
        data = self.write("data", b"x" * 150000000 + b"\n")
        for more in (("--io", "read"), ("-k", "1,1")):
            with self.subTest(more=more):
                most, code, said = most_memory("sort", *more, "--memory", "8M", "--threads", "2", "-o",
                                               self.folder / "out", data)
                self.assertEqual(code, 2, said)
                self.assertIn("--memory 8.00 MiB: too small for the record of", said)
                self.assertLessEqual(most, (8 + 24) * 1024)


class Kills(InFolder):
    def test_killed_at_any_moment(self):
        """OUT is the old or the new one, and at most one finished file of the known name is left."""
        data = self.write("data", os.urandom(2000000))
        out = self.folder / "out"
        arguments = [PROGRAM, "sort", "--format", "fixed:20", "--memory", "2M", "-o", out, data]
        started = time.monotonic()
        subprocess.run([*arguments, "--plan", "ems"], check=True)
        whole = time.monotonic() - started
        new = out.read_bytes()
        pick = random.Random(7)
        outcomes = {"old": 0, "new": 0}
        for number in range(KILLS):
            out.write_bytes(b"old")
            plan = ("ems", "mergepass", "onepass")[number % 3]
            with subprocess.Popen([*arguments, "--plan", plan if plan != "onepass" else "auto"]) as process:
                time.sleep(pick.uniform(0, whole * 1.3))
                process.send_signal(signal.SIGKILL)
            now = out.read_bytes()
            self.assertIn(now, (b"old", new))
            outcomes["new" if now == new else "old"] += 1
            left = {p.name for p in self.folder.iterdir()} - {"data", "out"}
            self.assertLessEqual(left, {".out.wiscsort-new"})
            for name in left:
                self.assertEqual((self.folder / name).read_bytes(), new)
        subprocess.run(arguments, check=True)
        self.assertEqual({p.name for p in self.folder.iterdir()}, {"data", "out"})
        print(f"{KILLS} kills: {outcomes}", file=sys.stderr)


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    if "--kills" in sys.argv:
        at = sys.argv.index("--kills")
        KILLS = int(sys.argv[at + 1])
        del sys.argv[at:at + 2]
    if "--cases" in sys.argv:
        at = sys.argv.index("--cases")
        CASES = range(*map(int, sys.argv[at + 1].split(":")))
        del sys.argv[at:at + 2]
    unittest.main()
