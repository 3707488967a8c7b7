# SPDX-License-Identifier: MIT
"""bc of Debian 12, a calculator, with the marks of the file beside and some edited lines (the tree's root is in a struct,
since a marked variable is one file's): its tests and one of many names, plain, forced and under audit, each with the output
of the plain program; or, with --measure, instructions, and memory of a program with many names of which few are used.
"""

import os
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import program  # noqa: E402

ARCHIVE = "pool/main/b/bc/bc_1.07.1.orig.tar.gz"
SHA256 = "62adfca89b0a1c0164c2cdca59ca210c1d44c3ffc46daf9931cf4942664cb02a"
NAMES = 65_000
CONFIG = """#define HAVE_STDLIB_H 1
#define HAVE_STRING_H 1
#define HAVE_LIMITS_H 1
#define HAVE_STDARG_H 1
#define HAVE_UNISTD_H 1
#define STDC_HEADERS 1
#define BC_COPYRIGHT ""
#define PACKAGE "bc"
#define VERSION "1.07.1"
"""


def names(count):
    """A program that gives values to so many variables, and reads each."""
    lines = [f"v{number * 7919 % 1000003}_of_many = {number}" for number in range(count)]
    lines += [f"s += v{number * 7919 % 1000003}_of_many" for number in range(count)]
    return "\n".join([*lines, "s", ""])


def long_name(number):
    return f"speed_of_particle_{number * 2654435761 % 4294967296:010}_in_the_left_half_of_the_chamber"


def given(number):
    """There may be 32,766 variables, and as many arrays."""
    return f"{long_name(number)}[0]" if number % 2 else long_name(number)


def build(folder, compiler, link):
    """In two steps: the library of functions is compiled to bc's own code by a bc without one."""
    (folder / "config.h").write_text(CONFIG)
    sources = [folder / "bc" / f"{name}.c" for name in
               ("main", "bc", "scan", "execute", "load", "storage", "util", "global", "warranty")]
    sources += [folder / "lib" / f"{name}.c" for name in ("number", "getopt", "getopt1")]
    compiled = [*compiler.split(), "-O2", "-g", "-w", "-I", folder, "-I", folder / "h", "-I", folder / "bc", *sources, *link]
    (folder / "bc/libmath.h").write_text("{0}\n")
    program.run([*compiled, "-o", folder / "first"])
    code = subprocess.run([folder / "first", "-c", folder / "bc/libmath.b"], stdin=subprocess.DEVNULL, check=True, text=True,
                          stdout=subprocess.PIPE).stdout.splitlines()
    (folder / "bc/libmath.h").write_text("{" + ",\n".join(f'"{line}"' for line in code[:-1]) + ",0}\n")
    program.run([*compiled, "-o", folder / "calculator"])
    (folder / "Test/names.b").write_text(names(1000))


def tests(folder, environment):
    """How many programs give what they give plain."""
    passed = 0
    for test in sorted((folder / "Test").glob("*.b")):
        with test.open() as source:
            done = subprocess.run([folder / "calculator", "-l"], stdin=source, text=True, timeout=1800,
                                  env={**os.environ, **environment, "BC_LINE_LENGTH": "0"},
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        said = re.sub(r"objects moved: \d+\n|obase audit: .*\n", "", done.stdout)
        right = folder.parent / f"{test.name}.plain"
        if folder.name == "plain":
            right.write_text(said)
        if done.returncode != 0 or said != right.read_text():
            print(f"{test.name}: not what the plain program says, or status {done.returncode}: {said[-1000:]}")
            return 0
        passed += 1
    return passed


def instructions(folder):
    (folder / "many.b").write_text(names(20000) + "quit\n")
    return [("a program of 20,000 names", [folder / "calculator", folder / "many.b"], 1)]


def workload(folder, seconds):
    once = 'print "once more\\n"\n'
    (folder / "given.b").write_text("".join(f"{given(number)}={number}\n" for number in range(NAMES)) + once)
    (folder / "hot.b").write_text("".join(f"sum+={given(number)}\n" for number in range(0, NAMES, 10)) + once)
    return [sys.executable, HERE.parent / "watched.py", str(seconds),
            *program.fed([folder / "calculator"], folder / "given.b", folder / "hot.b")]


def main():
    options = program.arguments(__doc__)
    program.tested_program(options, "bc 1.07.1", HERE, ARCHIVE, SHA256, build, tests, instructions, workload, 45).main()


if __name__ == "__main__":
    main()
