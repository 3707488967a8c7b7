# SPDX-License-Identifier: MIT
"""hyphen of Debian 12, the hyphenation of LibreOffice, with the marks of the file beside: its own tests, plain, forced and
under audit; or, with --measure, instructions, and memory of a dictionary of which few patterns are asked for.
"""

import os
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import program  # noqa: E402

ARCHIVE = "pool/main/h/hyphen/hyphen_2.8.8.orig.tar.gz"
SHA256 = "304636d4eccd81a14b6914d07b84c79ebb815288c76fe027b9ebff6ff24d5705"
PATTERNS = 100_000


def build(folder, compiler, link):
    sources = [folder / "hyphen.c", folder / "hnjalloc.c"]
    program.run([*compiler.split(), "-O2", "-g", "-w", "-I", folder, *sources, folder / "example.c", *link,
                 "-o", folder / "example"])
    for at in sources:
        program.run([*compiler.split(), "-O2", "-g", "-w", "-c", at, "-o", at.with_suffix(".o")])
    program.run([*compiler.split(), "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-I", folder, "-I", HERE.parent,
                 HERE / "workload.c", *(at.with_suffix(".o") for at in sources), *link, "-o", folder / "workload"])


def tests(folder, environment):
    """How many words are hyphenated as its tests say, if all are; and a dictionary of many patterns, each of which is asked
    for."""
    program.run([folder / "workload", folder / "many.dic", "5000", "-", "50000"], environment=environment)
    passed = 0
    for pattern in sorted((folder / "tests").glob("*.pat")):
        said = subprocess.run([folder / "example", pattern, pattern.with_suffix(".word")], text=True, errors="replace",
                              env={**os.environ, **environment}, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL).stdout
        right = pattern.with_suffix(".hyph").read_text(errors="replace")
        if re.sub(r"objects moved: \d+\n", "", said) != right:
            print(f"{pattern.name}: not as it should be:\n{said}")
            return 0
        passed += 1
    return passed


def instructions(folder):
    return [("a word is hyphenated, 20,000 patterns", [folder / "workload", folder / "few.dic", "20000", "-"], 20000)]


def workload(folder, seconds):
    return [folder / "workload", folder / "many.dic", str(PATTERNS), str(seconds)]


def main():
    options = program.arguments(__doc__)
    program.tested_program(options, "hyphen 2.8.8", HERE, ARCHIVE, SHA256, build, tests, instructions, workload).main()


if __name__ == "__main__":
    main()
