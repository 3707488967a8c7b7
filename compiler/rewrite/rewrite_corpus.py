#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Rewrites each program of compiler/test/accepted and compiles the result with gcc or g++.

Those that the rewriter has no form for must be refused by it, with a message that has the words given
here; all others must become programs without a warning. Prints a line for each that does not, and exits
with 1 if there is one.
"""

import argparse
import pathlib
import subprocess
import sys

REFUSED = {
    "atomic_builtins.c": "the address of a marked field goes where the rewriter cannot follow it",
    "atomic_c11.c": "has a type that the rewriter has no slot for",
    "designated.c": "gets a value in an initializer",
    "member_with_own_move.cpp": "a constructor loads a marked field before its body",
    "operators.cpp": "a constructor loads a marked field before its body",
    "vector_of_movable.cpp": "a constructor loads a marked field before its body",
}
# Sources may say annotate("obase::outside"), which is clang's.
WARNINGS = ["-Wall", "-Wextra", "-Werror", "-Wno-unused", "-Wno-array-bounds", "-Wno-attributes"]


def wrong_with(options, source):
    """Empty if all is well."""
    language = "-std=c++20" if source.suffix == ".cpp" else "-std=gnu11"
    inputs = f"-I{options.corpus / 'inputs'}"
    done = subprocess.run(
        [options.rewriter, "--no-escapes", f"--root={options.corpus}", f"--out={options.out}", str(source),
         "--", language, inputs], capture_output=True, text=True)
    if source.name in REFUSED:
        expected = REFUSED[source.name]
        return "" if done.returncode == 1 and expected in done.stderr else (
            f"exit status {done.returncode}, expected to be refused with '{expected}': {done.stderr}")
    if done.returncode != 0:
        return done.stderr
    made = options.out / source.relative_to(options.corpus)
    compiler = options.gxx if source.suffix == ".cpp" else options.gcc
    done = subprocess.run([compiler, language, "-O1", *WARNINGS, inputs, f"-I{options.include}", "-c",
                           str(made), "-o", "/dev/null"], capture_output=True, text=True)
    return "" if done.returncode == 0 else f"{made} does not compile: {done.stderr}"


def main():
    parser = argparse.ArgumentParser(description="Rewrites the accepted programs of the corpus.")
    for name in ["rewriter", "gcc", "gxx"]:
        parser.add_argument(f"--{name}", required=True)
    for name in ["include", "corpus", "out"]:
        parser.add_argument(f"--{name}", required=True, type=pathlib.Path)
    options = parser.parse_args()
    sources = sorted(path for path in (options.corpus / "accepted").iterdir()
                     if path.suffix in [".c", ".cpp"])
    failed = 0
    for source in sources:
        wrong = wrong_with(options, source)
        failed += bool(wrong)
        if wrong:
            print(f"{source.name}: {wrong}", flush=True)
    print(f"{len(sources) - failed} of {len(sources)} programs as expected, {len(REFUSED)} of them refused")
    return 1 if failed or not sources else 0


if __name__ == "__main__":
    sys.exit(main())
