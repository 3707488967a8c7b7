#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""scripts/run_mutants.py on a project of one function: what it calls killed, survived and an error."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parent / "run_mutants.py"

PROJECT = """cmake_minimum_required(VERSION 3.25)
project(small LANGUAGES C)
enable_testing()
add_executable(max_test max_test.c)
add_test(NAME max_test COMMAND max_test)
add_test(NAME max_test.again COMMAND max_test)
add_test(NAME script_test COMMAND sh "${CMAKE_SOURCE_DIR}/script.sh")
"""
MAX = "static inline int max(int a, int b) { return a < b ? b : a; } /* a < b: done */\n"
TEST = '#include "max.h"\nint main(void) { return max(1, 2) == 2 ? 0 : 1; }\n'


def mutant(name, old, new, tests='["max_test"]'):
    return (f'[[mutant]]\nname = "{name}"\nrule = "none"\nfile = "max.h"\n'
            f'old = "{old}"\nnew = "{new}"\ntests = {tests}\n')


KILLED = mutant("takes_the_smaller", "? b : a", "? a : b")
SURVIVES = mutant("equal_is_less", "a < b ?", "a <= b ?")


class RunMutants(unittest.TestCase):
    def run_on(self, table, *arguments, test=TEST):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "testing").mkdir()
            (root / "testing" / "mutants.toml").write_text(table, encoding="utf-8")
            (root / "CMakeLists.txt").write_text(PROJECT, encoding="utf-8")
            (root / "max.h").write_text(MAX, encoding="utf-8")
            (root / "max_test.c").write_text(test, encoding="utf-8")
            (root / "script.sh").write_text('grep -q "? b : a" "${0%/*}/max.h"\n', encoding="utf-8")
            (root / ".gitignore").write_text("/build/\n", encoding="utf-8")
            subprocess.run(["git", "init", "-q", root], check=True)
            result = subprocess.run([sys.executable, SCRIPT, "--root", root, *arguments],
                                    capture_output=True, text=True, check=False)
            self.assertEqual((root / "max.h").read_text(encoding="utf-8"), MAX)
            return result.returncode, result.stdout.splitlines(), result.stderr

    def test_killed_and_survived(self):
        code, lines, errors = self.run_on(KILLED + SURVIVES)
        self.assertEqual(errors, "")
        self.assertEqual(lines, ["unbroken: 1 tests pass",
                                 "takes_the_smaller (none): killed by max_test (Failed)",
                                 "equal_is_less (none): SURVIVED", "2 mutants, 1 killed"])
        self.assertEqual(code, 1)

    def test_scripts_are_not_built(self):
        code, lines, errors = self.run_on(
            mutant("takes_the_smaller", "? b : a", "? a : b", '["script_test"]\nscript = true'))
        self.assertEqual(errors, "")
        self.assertEqual(lines[1:], ["takes_the_smaller (none): killed by script_test (Failed)",
                                     "1 mutants, 1 killed"])
        self.assertEqual(code, 0)

    def test_all_killed_by_another_entry_of_the_target(self):
        code, lines, _ = self.run_on(
            mutant("takes_the_smaller", "? b : a", "? a : b", '["max_test.again"]'))
        self.assertEqual(lines[-1], "1 mutants, 1 killed")
        self.assertEqual(code, 0)

    def test_a_hang_is_a_kill(self):
        code, lines, errors = self.run_on(
            mutant("spins", "return a < b", "while (a < b) {} return a < b"), "--hang-after", "1")
        self.assertEqual(errors, "")
        self.assertEqual(lines[1], "spins (none): killed by max_test (Timeout)")
        self.assertEqual(code, 0)

    def test_what_does_not_build_is_an_error_and_the_others_are_tried(self):
        code, lines, errors = self.run_on(mutant("broken", "return a < b", "return (") + KILLED)
        self.assertIn("broken (none): NOT TRIED: broken: does not build", lines[1])
        self.assertEqual(lines[-2:], ["takes_the_smaller (none): killed by max_test (Failed)",
                                      "2 mutants, 1 killed"])
        self.assertIn("not tried: broken", errors)
        self.assertEqual(code, 2)

    def test_the_unbroken_tree_must_pass(self):
        code, _, errors = self.run_on(KILLED, test=TEST.replace("== 2", "== 3"))
        self.assertIn("the unbroken tree fails", errors)
        self.assertEqual(code, 2)

    def test_an_unknown_test_is_an_error(self):
        code, _, errors = self.run_on(mutant("m", "? b", "? a", '["max_test.never"]'))
        self.assertIn("did not run", errors)
        self.assertEqual(code, 2)

    def test_old_text_that_is_not_unique(self):
        code, _, errors = self.run_on(mutant("twice", "a < b", "a > b"), "--check")
        self.assertIn("twice: the old text occurs 2 times in max.h", errors)
        self.assertEqual(code, 2)

    def test_check_builds_nothing(self):
        code, lines, _ = self.run_on(KILLED + SURVIVES, "--check")
        self.assertEqual((code, lines), (0, ["2 mutants apply"]))


if __name__ == "__main__":
    unittest.main(verbosity=2)
