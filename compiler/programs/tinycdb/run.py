# SPDX-License-Identifier: MIT
"""tinycdb of Debian 12 with the marks of the file beside and one edited line: its own tests, plain, forced and under
audit; or, with --measure, instructions, and memory while a file of many records is made of which few are asked for.
"""

import os
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import program  # noqa: E402

ARCHIVE = "pool/main/t/tinycdb/tinycdb_0.78.tar.gz"
SHA256 = "0aa39e0004bf890f429ceed597c781ba47bb603245a2737210b99f1772798079"
RECORDS = 4_000_000


def build(folder, compiler, link):
    program.run(["make", "staticlib", "cdb", f"CC={compiler}", "CFLAGS=-O2 -g", f"LDFLAGS={' '.join(link)}"], folder)
    program.run([*compiler.split(), "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-I", folder, "-I", HERE.parent,
                 HERE / "workload.c", folder / "libcdb.a", *link, "-o", folder / "workload"])


def tests(folder, environment):
    """Lines of output that are what they should be, if all are; and a file of many records, each of which is found in it."""
    program.run([folder / "workload", folder / "many.cdb", "30000", "-", "300"], environment=environment)
    said = subprocess.run(["sh", "tests.sh", "./cdb"], cwd=folder, text=True, env={**os.environ, **environment},
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT).stdout
    said = re.sub(r"objects moved: \d+\n", "", said)  # forcing.cpp
    right = (folder / "tests.ok").read_text()
    return right.count("\n") if said == right else 0


def instructions(folder):
    return [("a key is asked for, of 20,000 records", [folder / "workload", folder / "few.cdb", "20000", "-"], 2000)]


def workload(folder, seconds):
    return [folder / "workload", folder / "many.cdb", str(RECORDS), str(seconds)]


def main():
    options = program.arguments(__doc__)
    program.tested_program(options, "tinycdb 0.78", HERE, ARCHIVE, SHA256, build, tests, instructions, workload).main()


if __name__ == "__main__":
    main()
