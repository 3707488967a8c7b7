#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Breaks the library on purpose, one edit at a time, and asks whether the tests notice.

The files *mutants.toml in src/, testing/, crestdb/, tools/, demo/, compiler/, scripts/ and wiscsort/ hold the
edits:

    [[mutant]]
    name  = "epoch_before_arming"        # unique
    rule  = "R1"                         # what it violates
    file  = "src/mobility/wait.hpp"
    old   = "text that occurs exactly once in the file"
    new   = "what stands there instead"
    tests = ["scope_wait_test"]          # ctest names; one of them must fail
    script = true                        # optional: its tests are not built, they are scripts
    # more edits of the same mutant, optional: [[mutant.edit]] with file, old, new

The tree is copied to build/mutants/*/source and edited there, so production code carries no switches
and a run can be interrupted at any time. First the unbroken copy must pass every test that any
mutant names: a test that fails anyway kills nothing. Then, for each mutant: edit, build, run its
tests, undo. A test that ends with an error kills the mutant, and so does one that hangs
(--hang-after): a lost wake-up or an endless wait is a way to be wrong. Code that does not compile
is an error of the table, not a kill: it is named, the others are tried, and the exit code is 2.

With --jobs N, N copies are at work at a time.

Prints one line for each mutant, then `N mutants, N killed`; exits with 1 unless all were.

usage: scripts/run_mutants.py [--only NAME]... [--jobs N] [--hang-after SECONDS] [--check | --list]
       --check only verifies that the edits still apply, and builds nothing
"""

import argparse
import concurrent.futures
import os
import pathlib
import queue
import re
import subprocess
import sys
import tomllib

CONFIGURATION = ["-G", "Ninja", "-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_C_FLAGS_DEBUG=-O1 -g1",
                 "-DCMAKE_CXX_FLAGS_DEBUG=-O1 -g1", "-DOBASE_DEBUG_CHECKS=ON",
                 # An edit may leave a variable unused; that is not what is being tested.
                 "-DOBASE_WERROR=OFF"]
FOLDERS = ["src", "testing", "crestdb", "tools", "demo", "compiler", "scripts", "wiscsort"]
# A test of the compiler is a script, for which the plugins and the library are built.
COMPILER_TARGETS = ["obase_passes", "obase_visibility", "obase_memory_object", "obase_link_check", "obase", "obase_handles_pass", "obase_handles_libc", "obase_handles_cxx", "obase_handles"]
# What is in these is built, and its tests are known, only with OBASE_BUILD_TOOLS.
PROGRAMS_OF = {"server_bench": ["obase_command", "crestdb_server"]}  # tests that are no programs of their own
TOOL_FOLDERS = ("tools/", "demo/", "crestdb/server/")


class Problem(Exception):
    """The table, the build or the unbroken tree is at fault; no statement about mutants."""


class Mutant:
    def __init__(self, row):
        self.name = row["name"]
        self.rule = row["rule"]
        self.tests = row["tests"]
        self.script = row.get("script", False)
        self.edits = list(row.get("edit", []))
        if "file" in row:
            self.edits.insert(0, {key: row[key] for key in ("file", "old", "new")})
        if not self.tests or not self.edits:
            raise Problem(f"{self.name}: needs tests and at least one edit")

    @property
    def targets(self):
        """What has to be built; an entry such as x_test.rearm is another way to run x_test."""
        if self.script:
            return []
        if any(test.startswith("compiler_") for test in self.tests):
            return COMPILER_TARGETS
        names = [test.split(".")[0] for test in self.tests]
        return [target for name in names for target in PROGRAMS_OF.get(name, [name])]

    @property
    def needs_tools(self):
        return any(edit["file"].startswith(TOOL_FOLDERS) for edit in self.edits)

    def apply(self, root):
        """Returns {path: edited text}; writes nothing."""
        texts = {}
        for edit in self.edits:
            path = root / edit["file"]
            if not path.is_file():
                raise Problem(f"{self.name}: no file {edit['file']}")
            text = texts.get(path) or path.read_text(encoding="utf-8")
            count = text.count(edit["old"])
            if count != 1:
                raise Problem(f"{self.name}: the old text occurs {count} times in {edit['file']}")
            if edit["old"] == edit["new"]:
                raise Problem(f"{self.name}: changes nothing in {edit['file']}")
            texts[path] = text.replace(edit["old"], edit["new"])
        return texts


def read_tables(root):
    tables = sorted(table for folder in FOLDERS
                    for table in (root / folder).rglob("*mutants.toml"))
    if not tables:
        raise Problem(f"no *mutants.toml in {', '.join(FOLDERS)} of {root}")
    mutants = []
    for table in tables:
        try:
            rows = tomllib.loads(table.read_text(encoding="utf-8"))["mutant"]
            mutants += [Mutant(row) for row in rows]
        except (OSError, KeyError, tomllib.TOMLDecodeError) as error:
            raise Problem(f"{table}: {error!r}") from error
    names = [mutant.name for mutant in mutants]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise Problem(f"two mutants have the same name: {', '.join(twice)}")
    return mutants


def write_if_changed(path, data):
    # An unchanged file keeps its time, so that ninja rebuilds only what an edit touches.
    if not path.is_file() or path.read_bytes() != data:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def copy_tree(root, target):
    listed = subprocess.run(["git", "-C", root, "ls-files", "-z", "--cached", "--others",
                             "--exclude-standard"], capture_output=True, check=True).stdout
    wanted = {name for name in os.fsdecode(listed).split("\0") if name and (root / name).is_file()}
    for name in wanted:
        write_if_changed(target / name, (root / name).read_bytes())
        (target / name).chmod((root / name).stat().st_mode)
    for path in target.rglob("*"):
        if path.is_file() and path.relative_to(target).as_posix() not in wanted:
            path.unlink()


class Workshop:
    def __init__(self, folder, jobs, hang_after):
        self.source, self.build = folder / "source", folder / "build"
        self.jobs, self.hang_after = str(jobs), str(hang_after)
        # One copy's objects serve the others; the first failure in a test is enough.
        self.environment = {**os.environ, "CCACHE_BASEDIR": str(folder), "CCACHE_NOHASHDIR": "1",
                            "GTEST_FAIL_FAST": "1"}

    def run(self, *command):
        result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                text=True, errors="replace", check=False, env=self.environment)
        return result.returncode, result.stdout

    def configure(self, tools):
        code, output = self.run("cmake", "-S", self.source, "-B", self.build, *CONFIGURATION,
                                f"-DOBASE_BUILD_TOOLS={'ON' if tools else 'OFF'}")
        if code:
            raise Problem(output)

    def compile(self, what, targets):
        if not targets:
            return
        code, output = self.run("cmake", "--build", self.build, "--parallel", self.jobs,
                                "--target", *sorted(set(targets)))
        if code:
            raise Problem(f"{what}: does not build\n{output[-4000:]}")

    def failing_tests(self, what, tests, stop_early):
        """[(test, how it ended)] of those that did not pass."""
        pattern = "^(" + "|".join(re.escape(test) for test in tests) + ")$"
        stop = ["--stop-on-failure"] if stop_early else []
        _, output = self.run("ctest", "--test-dir", self.build, "--tests-regex", pattern,
                             "--timeout", self.hang_after, *stop)
        # How a test ended may have several lines.
        ended = re.findall(r"^ *\d+/\d+ Test +#\d+: (\S+) \.*((?s:.*?)) +[\d.]+ sec", output, re.M)
        ended = [(name, how.strip(" *")) for name, how in ended]
        unknown = set(tests) - {name for name, _ in ended}
        failed = [(name, how) for name, how in ended if how != "Passed"]
        if any(how == "Not Run" for _, how in failed) or (unknown and not failed):
            raise Problem(f"{what}: tests that did not run\n{output[-4000:]}")
        return failed


def run_all(root, mutants, workshops):
    tests = sorted({test for mutant in mutants for test in mutant.tests})
    for workshop in workshops:
        copy_tree(root, workshop.source)
        workshop.configure(any(mutant.needs_tools for mutant in mutants))
    workshops[0].compile("unbroken", [target for mutant in mutants for target in mutant.targets])
    failed = workshops[0].failing_tests("unbroken", tests, stop_early=False)
    if failed:
        raise Problem(f"the unbroken tree fails: {failed}")
    print(f"unbroken: {len(tests)} tests pass", flush=True)

    idle = queue.SimpleQueue()
    for workshop in workshops:
        idle.put(workshop)
    killed = 0
    broken = []
    with concurrent.futures.ThreadPoolExecutor(len(workshops)) as workers:
        results = [workers.submit(run_one, mutant, idle) for mutant in mutants]
        try:
            for mutant, result in zip(mutants, results):
                try:
                    failed = result.result()
                except Problem as problem:
                    broken.append(mutant.name)
                    print(f"{mutant.name} ({mutant.rule}): NOT TRIED: {problem}", flush=True)
                    continue
                killed += bool(failed)
                verdict = f"killed by {failed[0][0]} ({failed[0][1]})" if failed else "SURVIVED"
                print(f"{mutant.name} ({mutant.rule}): {verdict}", flush=True)
        except BaseException:
            workers.shutdown(wait=False, cancel_futures=True)
            raise
    print(f"{len(mutants)} mutants, {killed} killed")
    if broken:
        raise Problem(f"not tried: {', '.join(broken)}")
    return 0 if killed == len(mutants) else 1


def run_one(mutant, idle):
    workshop = idle.get()
    edited = mutant.apply(workshop.source)
    originals = {path: path.read_bytes() for path in edited}
    try:
        for path, text in edited.items():
            path.write_text(text, encoding="utf-8")
        workshop.compile(mutant.name, mutant.targets)
        return workshop.failing_tests(mutant.name, mutant.tests, stop_early=True)
    finally:
        for path, data in originals.items():
            path.write_bytes(data)
        idle.put(workshop)


def main():
    here = pathlib.Path(__file__).resolve().parent.parent
    parser = argparse.ArgumentParser(description="Breaks the library and runs its tests.")
    parser.add_argument("--root", type=pathlib.Path, default=here)
    parser.add_argument("--only", action="append", metavar="NAME")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--hang-after", type=int, default=300, metavar="SECONDS")
    parser.add_argument("--check", action="store_true", help="only verify that the edits apply")
    parser.add_argument("--list", action="store_true")
    arguments = parser.parse_args()
    root = arguments.root.resolve()
    try:
        mutants = read_tables(root)
        if arguments.only:
            unknown = set(arguments.only) - {mutant.name for mutant in mutants}
            if unknown:
                raise Problem(f"no mutant called {', '.join(sorted(unknown))}")
            mutants = [mutant for mutant in mutants if mutant.name in arguments.only]
        for mutant in mutants:
            mutant.apply(root)
        if arguments.list:
            for mutant in mutants:
                print(f"{mutant.name} ({mutant.rule}): {', '.join(mutant.tests)}")
            return 0
        if arguments.check:
            print(f"{len(mutants)} mutants apply")
            return 0
        copies = max(1, min(arguments.jobs, len(mutants)))
        workshops = [Workshop(root / "build" / "mutants" / str(number),
                              max(1, arguments.jobs // copies), arguments.hang_after)
                     for number in range(1, copies + 1)]
        return run_all(root, mutants, workshops)
    except Problem as problem:
        print(f"run_mutants: {problem}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
