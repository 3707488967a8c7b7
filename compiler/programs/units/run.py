# SPDX-License-Identifier: MIT
"""GNU units of Debian 12 with the marks of the file beside and a few edited lines, without readline (whose completion
keeps where it is in a chain): its check of all definitions and the conversion that it is tested with, plain, forced and
under audit; or, with --measure, instructions.
"""

import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import program  # noqa: E402

ARCHIVE = "pool/main/u/units/units_2.22.orig.tar.gz"
SHA256 = "5d13e1207721fe7726d906ba1d92dc0eddaa9fc26759ed22e3b8d1a793125848"


def build(folder, compiler, link):
    program.run(["./configure", "CC=cc"], folder)
    program.run(["make", "units", f"CC={compiler}", "CFLAGS=-O2 -g -w -UREADLINE", f"LIBS={' '.join(link)} -lm"], folder)


CHECK = ["--check"]
CONVERSION = ["-t", "(((square(kiloinch)+2.84m2) /0.5) meters^2)^(1|4)", "m"]  # `make check`


def said(folder, environment, arguments):
    done = subprocess.run([folder / "units", "-f", folder / "definitions.units", *arguments], text=True, capture_output=True,
                          env={**os.environ, **environment}, stdin=subprocess.DEVNULL, timeout=600)
    return (done.returncode, done.stdout)


def tests(folder, environment):
    plain = folder.parent / "plain"
    asked = [CHECK, CONVERSION, ["-t", "2.5 lightyears", "km"], ["-t", "tempF(451)", "tempC"], ["-t", "3 furlong/fortnight", "mm/s"],
             ["no_such_unit"], ["search", "foot"]]
    right = said(folder, environment, CONVERSION) == (0, "6\n")
    return sum(said(folder, environment, one) == said(plain, {}, one) for one in asked) if right else 0


def instructions(folder):
    return [("reading and checking all definitions",
             [folder / "units", "-f", folder / "definitions.units", *CHECK], 1)]


def main():
    options = program.arguments(__doc__)
    program.tested_program(options, "GNU units 2.22", HERE, ARCHIVE, SHA256, build, tests, instructions).main()


if __name__ == "__main__":
    main()
