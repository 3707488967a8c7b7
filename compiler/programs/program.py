# SPDX-License-Identifier: MIT
"""What the `run` scripts of the programs share: the Debian source package, the compilers, the figures.

A script is called with --clang, --bin, --source and --out (see arguments()). It ends with 77, which
ctest shows as skipped, and the reason, where the source cannot be had; with 1 where a test fails.
"""

import argparse
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

SKIPPED = 77


def arguments(description, extend=lambda parser: None):
    """What was asked for. `extend` adds a script's own options to the parser."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--clang", required=True, help="clang 19, for C")
    parser.add_argument("--bin", required=True, type=pathlib.Path,
                        help="where obase-clang is, as built or installed")
    parser.add_argument("--source", required=True, type=pathlib.Path, help="obase's source folder")
    parser.add_argument("--out", required=True, type=pathlib.Path, help="a folder for all that is made")
    parser.add_argument("--measure", action="store_true",
                        help="page utilization and memory, instead of the program's tests")
    parser.add_argument("--built", action="store_true",
                        help="with --measure: what an earlier run has built in --out, as it is")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE",
                        help="write what was measured here, too")
    extend(parser)
    options = parser.parse_args()
    if (options.json or options.built) and not options.measure:
        parser.error("--json and --built are for --measure")
    # The programs are built in folders of their own.
    for name in ("bin", "source", "out"):
        setattr(options, name, getattr(options, name).resolve())
    options.out.mkdir(parents=True, exist_ok=True)
    return options


def run(command, where=None, environment=None, limit=3600, allowed=(0,), read=os.devnull):
    """The finished process; ends the script with what it said if its status is not allowed."""
    with open(read, "rb") as stdin:
        done = subprocess.run([str(part) for part in command], cwd=where, timeout=limit, text=True,
                              errors="replace", env={**os.environ, **(environment or {})}, stdin=stdin,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode not in allowed:
        sys.exit(f"{' '.join(str(part) for part in command)}\n{done.stdout[-8000:]}\n"
                 f"exit status {done.returncode}")
    return done


def mirrors():
    """Where this machine's packages come from."""
    if shutil.which("apt-get") is None:
        return []
    listed = run(["apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages"],
                 allowed=(0, 100)).stdout.split()
    return sorted({uri.rstrip("/") for uri in listed if "://" in uri})


def source_package(options, path, sha256):
    """The file of a Debian source package, by its path in the pool; checked, and kept in --out."""
    file = options.out / pathlib.PurePosixPath(path).name
    if file.exists() and hashlib.sha256(file.read_bytes()).hexdigest() == sha256:
        return file
    helper = pathlib.Path("/usr/lib/apt/apt-helper")
    said = ["there is no apt here"]
    for mirror in mirrors() if helper.exists() else []:
        got = run([helper, "download-file", f"{mirror}/{path}", file, f"SHA256:{sha256}"],
                  allowed=range(256), limit=600)
        if got.returncode == 0:
            return file
        said = got.stdout.splitlines()[-1:]
    print(f"skipped: {file.name} cannot be had from the package mirrors: {' '.join(said)}")
    sys.exit(SKIPPED)


def unpack(archive, to):
    shutil.rmtree(to, ignore_errors=True)
    to.mkdir(parents=True)
    run(["tar", "--no-same-owner", "-xf", archive, "-C", to, "--strip-components=1"])


def forcing_object(options):
    """The two objects that force the collector and write statistics, as linker arguments."""
    made = []
    samples = options.source / "compiler" / "passes" / "samples"
    # In this order: what forcing.cpp keeps must be there before forced.cpp begins, and after it ends.
    for source in (samples / "forcing.cpp", options.source / "compiler" / "programs" / "forced.cpp"):
        made.append(options.out / f"{source.stem}.o")
        run([options.clang, "--driver-mode=g++", "-std=c++20", "-O2", "-DFORCED=obase::arming",
             f"-I{options.source / 'include'}", f"-I{samples}", "-c", source, "-o", made[-1]])
    return [str(path) for path in made] + ["-lstdc++", "-lpthread", "-lm"]


def fed(command, first, again):
    """The command, which reads a file and then another one again and again."""
    return ["bash", "-c", 'exec "${@:3}" < <(cat "$1"; while cat "$2"; do :; done)', "fed", first, again, *command]


def instrumenting(options, marks):
    return f"{options.bin / 'obase-clang'} --obase-marks={marks}"


# The collector runs one window after another, and a freed object is seen to be one. In the second,
# besides, an access that was not converted meets an armed word at once.
FORCED = {"OBASE_TEST_FORCED": "1", "OBASE_WINDOW_SECONDS": "1000000", "OBASE_POISON_FREED": "1",
          "OBASE_COLD_THRESHOLD": "1", "OBASE_CONTROLLER": "fixed", "OBASE_DEFER_PROMOTION": "off"}
REARMED = {**FORCED, "OBASE_DEBUG_REARM": "1"}


def lines_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def moved_in(path):
    """How many objects were moved, and in how many windows, in all processes that wrote there."""
    moves = ("moved_objects", "compacted")
    lines = lines_of(path)
    return (sum(line[name] for line in lines for name in moves),
            sum(line["windows"] for line in lines))


def utilization(record):
    """Of the pages touched in a window, the share that touched objects fill."""
    heaps = record["heaps"]
    pages = sum(heap["touched_pages"] for heap in heaps)
    return sum(heap["touched_bytes"] for heap in heaps) / (pages * 4096) if pages else 0.0


def measured(name, resident, operations_per_second, filled):
    """One of the runs that write_measured() writes; `resident` is (anonymous, files) in KiB, at first and at the end."""
    first, last = resident
    return {"name": name, "first_bytes": 1024 * sum(first), "end_bytes": 1024 * sum(last),
            "end_file_bytes": 1024 * last[1], "operations_per_second": operations_per_second,
            "utilization": filled}


def write_measured(options, runs):
    if options.json:
        options.json.write_text(json.dumps({"runs": runs}, indent=2) + "\n")


def resident_kib(process):
    """Of the process: anonymous memory, and the pages of files (its code, and COLD)."""
    fields = dict(line.split(":", 1) for line in
                  pathlib.Path(f"/proc/{process}/status").read_text().splitlines())
    return (int(fields["RssAnon"].split()[0]),
            int(fields["RssFile"].split()[0]) + int(fields["RssShmem"].split()[0]))


class tested_program:
    """What the scripts of small libraries and programs have in common: their own tests, plain, while the collector is
    forced, with every slot rearmed, and under audit; or, with --measure, instructions, and memory if there is a workload
    that most of the data rests in.

    build(folder, compiler, link)           builds what the tests and workloads need
    tests(folder, environment)              how many have passed; of a program that is the same for all builds
    instructions(folder)                    [(what, command, calls)] for valgrind: `command` makes so many calls if their
                                            number is added to it; with a file as the fourth, if it reads that
    workload(folder, seconds)               a command that says what compiler/programs/workload.h says, or None
    seconds                                 how long it goes on
    window                                  seconds of it that are a window of 60 s: long enough for the workload to
                                            use whatever it calls hot
    """

    def __init__(self, options, name, here, archive, sha256, build, tests, instructions=None, workload=None, seconds=30,
                 window=1):
        self.options, self.name, self.here, self.seconds, self.window = options, name, here, seconds, window
        self.archive, self.sha256 = archive, sha256
        self.build, self.tests, self.instructions, self.workload = build, tests, instructions, workload

    def edits(self):
        """The patch, if the source is changed, and how many lines that is: of each place what it had or what it
        has, whichever is more."""
        patch = self.here / "edits.patch"
        if not patch.exists():
            return None, 0
        places = re.split(r"^@@.*$", patch.read_text(), flags=re.MULTILINE)[1:]
        return patch, sum(max(len(re.findall(rf"^{sign}(?!{sign}{sign} )", place, re.MULTILINE)) for sign in ("[+]", "-"))
                          for place in places)

    def made(self, name, compiler, link, edited):
        folder = self.options.out / name
        if self.options.built:
            return folder
        unpack(source_package(self.options, self.archive, self.sha256), folder)
        patch, _ = self.edits()
        if edited and patch:
            run(["patch", "-p1", "-i", patch], folder)
        self.build(folder, compiler, link)
        return folder

    def main(self):
        options = self.options
        plain = self.made("plain", options.clang, [], False)
        compiler = instrumenting(options, self.here / "marks")
        marked = self.made("marked", compiler, [] if options.built else forcing_object(options), True)
        if options.measure:
            self.measure(plain, marked)
        else:
            self.check(plain, marked)

    def check(self, plain, marked):
        expected = self.tests(plain, {})
        if expected == 0:
            sys.exit(f"the tests of {self.name} did not run")
        marks = sum(not line.startswith("#") for line in (self.here / "marks").read_text().splitlines())
        print(f"{self.name}: {marks} lines of marks, {self.edits()[1]} edited lines")
        print(f"{'':28}{'tests passed':>14}{'objects moved':>16}{'findings':>10}")
        print(f"{'plain clang':28}{expected:14}")
        for name, environment in (("forced", FORCED), ("forced, armed again", REARMED)):
            statistics = self.options.out / "statistics.json"
            statistics.unlink(missing_ok=True)
            passed = self.tests(marked, {**environment, "OBASE_TEST_STATISTICS": str(statistics)})
            moved, _ = moved_in(statistics)
            print(f"{name:28}{passed:14}{moved:16}")
            if passed != expected or moved == 0:
                sys.exit(f"{expected} tests should pass, and objects should move")
        reports = self.options.out / "audit"
        shutil.rmtree(reports, ignore_errors=True)
        reports.mkdir()
        passed = self.tests(marked, {"OBASE_AUDIT": "1", "OBASE_AUDIT_REPORT": f"{reports}/%p.json"})
        told = [json.loads(path.read_text()) for path in reports.iterdir()]
        errors, suspected, moved = (sum(one[key] for one in told) for key in ("errors", "suspected", "moved"))
        print(f"{'under audit':28}{passed:14}{moved:16}{errors + suspected:10}")
        if passed != expected or moved == 0 or errors + suspected:
            sys.exit("\n".join([found["text"] for one in told for found in one["findings"]][:8]) or
                     f"{expected} tests should pass, and objects should move")

    def measure(self, plain, marked):
        for what, counts in self.counted(plain, marked).items():
            print(f"{what}: {counts[0]:.0f} instructions plain, {counts[1]:.0f} marked, ratio "
                  f"{counts[1] / counts[0]:.2f}")
        if self.workload is None:
            return
        cold = self.options.out / "cold"
        cold.mkdir(exist_ok=True)
        quick = {"OBASE_WINDOW_SECONDS": "60", "OBASE_TIME_SCALE": str(60 / self.window)}
        runs = {"plain clang": (plain, {}),
                "obase, observing": (marked, {**quick, "OBASE_MODE": "observe"}),
                "obase, moving": (marked, {**quick, "OBASE_MODE": "hint", "OBASE_COLD_BACKING": f"file:{cold}"})}
        print(f"{'':20}{'MiB at first':>14}{'MiB at the end':>16}{'of it file':>12}{'calls/s':>12}")
        results = []
        for name, (folder, environment) in runs.items():
            done = run(self.workload(folder, self.seconds), environment=environment)
            lines = [[float(word) for word in line.split()] for line in done.stdout.splitlines()
                     if re.match(r"[\d. ]+$", line)]
            first, last, half = lines[0], lines[-1], lines[len(lines) // 2]
            rate = (last[1] - half[1]) / (last[0] - half[0])
            results.append(measured(name, [first[2:], last[2:]], rate, None))
            print(f"{name:20}{sum(first[2:]) / 1024:14.1f}{sum(last[2:]) / 1024:16.1f}{last[3] / 1024:12.1f}"
                  f"{rate:12.0f}")
        write_measured(self.options, results)

    def counted(self, plain, marked):
        """{what: instructions per call, (plain, marked)}, without what a command takes that makes no call."""
        found = {}
        for at, folder in enumerate((plain, marked)):
            for what, command, calls, *read in self.instructions(folder) if self.instructions else []:
                if read:
                    count = instructions_of(command, read[0]) - instructions_of(command)
                elif calls > 1:
                    count = instructions_of([*command, str(calls)]) - instructions_of([*command, "0"])
                else:
                    count = instructions_of(command)
                found.setdefault(what, [0, 0])[at] = count / calls
        return found


def instructions_of(command, read=os.devnull):
    # Without line tables, of which valgrind 3.19 does not know clang's.
    stripped = f"{command[0]}.stripped"
    run(["strip", "--strip-debug", "-o", stripped, command[0]])
    done = run(["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", stripped, *command[1:]], read=read)
    return int(re.search(r"Collected : (\d+)", done.stdout).group(1))
