#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""scripts/check_clang.py on made-up build directories, with a compiler that notes what it was given."""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parent / "check_clang.py"
COMPILER = """#!/bin/sh
echo "$*" >>called
case "$*" in *bad*) echo "bad.cpp:1: warning" >&2 ;; esac
"""


class CheckClang(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.compiler = self.root / "compiler"
        self.compiler.write_text(COMPILER, encoding="utf-8")
        self.compiler.chmod(0o755)

    def build(self, name, *units, made=()):
        """A build directory that compiles `units`, pairs of a source and flags; of `made` it has the objects."""
        directory = self.root / name
        directory.mkdir()
        entries = []
        for number, (source, flags) in enumerate(units):
            made_of_it = f"{number}.o"
            entries.append({"directory": str(directory), "file": str(self.root / source),
                            "command": f"{self.compiler} {flags} -MD -MT {made_of_it} -MF {made_of_it}.d "
                                       f"-o {made_of_it} -c {self.root / source}"})
            if source in made:
                (directory / made_of_it).touch()
        (directory / "compile_commands.json").write_text(json.dumps(entries), encoding="utf-8")
        return directory

    def check(self, build, *but):
        options = [word for compiled in but for word in ("--but", compiled)]
        done = subprocess.run([sys.executable, SCRIPT, build, *options, "--jobs", "1"],
                              capture_output=True, text=True, check=False)
        called = build / "called"
        return done, called.read_text(encoding="utf-8").splitlines() if called.exists() else []

    def test_nothing_is_written(self):
        done, called = self.check(self.build("all", ("a.cpp", "-O1")))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(called, [f"-O1 {self.root / 'a.cpp'} -fsyntax-only"])

    def test_a_warning_fails(self):
        done, _ = self.check(self.build("all", ("bad.cpp", ""), ("a.cpp", "")))
        self.assertEqual(done.returncode, 1)
        self.assertIn("bad.cpp:1: warning", done.stderr)
        self.assertIn("2 sources, 1 with warnings", done.stdout)

    def test_what_another_build_has_compiled_is_left_out(self):
        units = [(name, "") for name in ("a.cpp", "b.cpp", "c.cpp", "d.cpp")]
        first = self.build("first", *units, made=("a.cpp",))
        second = self.build("second", *units, made=("c.cpp",))
        done, called = self.check(self.build("all", *units), first, second)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([line.split()[0] for line in called],
                         [str(self.root / "b.cpp"), str(self.root / "d.cpp")])

    def test_the_same_command_is_run_once_and_other_flags_are_another(self):
        done, called = self.check(self.build("all", ("a.cpp", "-O1"), ("a.cpp", "-O1"), ("a.cpp", "-DB")))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([line.split()[0] for line in called], ["-O1", "-DB"])

    def test_a_directory_that_is_no_build(self):
        done, _ = self.check(self.root)
        self.assertEqual(done.returncode, 2)
        self.assertIn("compile_commands.json", done.stderr)


if __name__ == "__main__":
    unittest.main()
