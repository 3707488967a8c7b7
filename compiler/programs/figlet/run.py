# SPDX-License-Identifier: MIT
"""FIGlet of Debian 12 with the marks of the file beside and some edited lines (the current letter is kept by its number,
not by its address): its own tests, plain, forced and under audit; or, with --measure, instructions.
"""

import os
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import program  # noqa: E402

ARCHIVE = "pool/main/f/figlet/figlet_2.2.5.orig.tar.gz"
SHA256 = "bf88c40fd0f077dab2712f54f8d39ac952e4e9f2e1882f1195be9e5e4257417d"


def build(folder, compiler, link):
    program.run(["make", "figlet", "chkfont", f"CC={compiler}", f"LD={compiler}", f"LDFLAGS={' '.join(link)}",
                 "CFLAGS=-O2 -g -w"], folder)


def tests(folder, environment):
    done = subprocess.run(["sh", "./run-tests.sh", "fonts"], cwd=folder, text=True, capture_output=True, timeout=1200,
                          env={**os.environ, **environment}, stdin=subprocess.DEVNULL)
    return len(re.findall(r"pass$", done.stdout, re.MULTILINE))


def instructions(folder):
    return [("reading a font and writing five words",
             [folder / "figlet", "-d", folder / "fonts", "objects", "that", "move", "are", "written"], 1)]


def main():
    options = program.arguments(__doc__)
    program.tested_program(options, "FIGlet 2.2.5", HERE, ARCHIVE, SHA256, build, tests, instructions).main()


if __name__ == "__main__":
    main()
