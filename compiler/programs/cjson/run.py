# SPDX-License-Identifier: MIT
"""cJSON of Debian 12 with the marks of the file beside and some edited lines (a reference to a text has a copy): its tests,
without those of cJSON_Utils, plain, forced and under audit; or, with --measure, instructions, and memory of many documents
of which few are read.
"""

import os
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import program  # noqa: E402

ARCHIVE = "pool/main/c/cjson/cjson_1.7.15.orig.tar.gz"
SHA256 = "5308fd4bd90cef7aa060558514de6a1a4a0819974a26e6ed13973c5f624c24b2"
DOCUMENTS = 150_000
UTILS = re.compile(r"utils|patch|unity_setup")


def build(folder, compiler, link):
    compiled = [*compiler.split(), "-O2", "-g", "-w", "-I", folder, "-I", folder / "tests/unity/src"]
    for test in (folder / "tests").glob("*.c"):
        if not UTILS.search(test.name):
            program.run([*compiled, test, folder / "tests/unity/src/unity.c", *link, "-lm", "-o", test.with_suffix(".test")],
                        folder / "tests")
    program.run([*compiled, "-c", folder / "cJSON.c", "-o", folder / "cJSON.o"])
    program.run([*compiler.split(), "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-I", folder, "-I", HERE.parent,
                 HERE / "workload.c", folder / "cJSON.o", *link, "-lm", "-o", folder / "workload"])


def tests(folder, environment):
    """How many tests pass, if all do; and many documents, each of which is read."""
    program.run([folder / "workload", "3000", "-", "30000"], environment=environment)
    passed = 0
    for test in sorted((folder / "tests").glob("*.test")):
        done = subprocess.run([test], cwd=folder / "tests", text=True, errors="replace", timeout=1800,
                              env={**os.environ, **environment}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        counted = re.search(r"^(\d+) Tests (\d+) Failures", done.stdout, re.MULTILINE)
        if done.returncode != 0 or counted is None or counted[2] != "0":
            print(f"{test.stem}: {done.stdout[-2000:]}, exit status {done.returncode}")
            return 0
        passed += int(counted[1])
    return passed


def instructions(folder):
    return [("a document is read, of 5,000", [folder / "workload", "5000", "-"], 5000)]


def workload(folder, seconds):
    return [folder / "workload", str(DOCUMENTS), str(seconds)]


def main():
    options = program.arguments(__doc__)
    program.tested_program(options, "cJSON 1.7.15", HERE, ARCHIVE, SHA256, build, tests, instructions, workload, 45).main()


if __name__ == "__main__":
    main()
