# SPDX-License-Identifier: MIT
"""libHX of Debian 12 with the marks of the file beside and some edited lines (a traverser finds its place by the last
key): its tests of maps, plain, forced and under audit; or, with --measure, instructions and memory of a tree of which
few keys are asked for.
"""

import os
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import program  # noqa: E402

ARCHIVE = "pool/main/libh/libhx/libhx_4.10.orig.tar.xz"
SHA256 = "08fa92e849912a8d75db4c225c211551fca8c5fcf440fda7d7ba941bbbeb462b"
KEYS = 1_000_000


def build(folder, compiler, link):
    # As if autoconf's files were the newest, which are not made anew then.
    for made in ["aclocal.m4", "config.h.in", "configure", *folder.glob("**/Makefile.in")]:
        os.utime(folder / made)
    program.run(["./configure", "--disable-shared", "CC=cc"], folder)
    program.run(["make", "-C", "src", "libHX.la", "tc-map", f"CC={compiler}", "CFLAGS=-O2 -g -w",
                 f"LIBS={' '.join(link)} -ldl -lm -lpthread"], folder)
    program.run([*compiler.split(), "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-I", folder / "include",
                 "-I", HERE.parent, HERE / "workload.c", folder / "src/.libs/libHX.a", *link, "-ldl", "-lm", "-lpthread",
                 "-o", folder / "workload"])


def tests(folder, environment):
    """How many tests have begun, if all have ended well."""
    program.run([folder / "workload", "30000", "-", "30000"], environment=environment)
    done = subprocess.run([folder / "src/tc-map"], text=True, capture_output=True, timeout=1800,
                          env={**os.environ, **environment}, stdin=subprocess.DEVNULL)
    bad = done.returncode != 0 or re.search(r"failed|violated|not black|eek", done.stdout)
    return 0 if bad else len(re.findall(r"(?:MAP|RBT) test", done.stdout))


def instructions(folder):
    return [("a key is asked for, of 20,000", [folder / "workload", "20000", "-"], 20000)]


def workload(folder, seconds):
    return [folder / "workload", str(KEYS), str(seconds)]


def main():
    options = program.arguments(__doc__)
    program.tested_program(options, "libHX 4.10", HERE, ARCHIVE, SHA256, build, tests, instructions, workload).main()


if __name__ == "__main__":
    main()
