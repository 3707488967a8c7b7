# SPDX-License-Identifier: MIT
"""cmigemo of Debian 12, which makes a regular expression of what a Japanese word may be written like, with the marks of the
file beside and some edited lines (nodes are allocated one by one, a word lies behind its list's element). It has no tests:
it is asked for each key of a dictionary, the beginnings of keys, and in Roman letters, plain, forced and under audit, and
has to say what the plain program says; or, with --measure, instructions, and memory while few keys are asked for.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import program  # noqa: E402

ARCHIVE = "pool/main/c/cmigemo/cmigemo_1.2+gh0.20150404.orig.tar.gz"
SHA256 = "6009909121e409b4e938a1457b62d1a3b21e8c490674be1359097518fbdff50f"
KEYS = 60_000
WORDS = 3  # of each key


def key(number):
    return f"{number * 2654435761 % 10**8:08}"


def dictionary(folder, keys):
    """A dictionary of so many keys, beside the tables that the program wants there, too."""
    made = folder / f"of_{keys}"
    if not made.exists():
        shutil.copytree(folder / "dict", made)
        (made / "migemo-dict").write_text("".join(
            key(number) + "".join(f"\tword-{number}-{word}-of-the-dictionary" for word in range(WORDS)) + "\n"
            for number in range(keys)))
    return made / "migemo-dict"


def asked(folder, name, keys):
    file = folder / name
    file.write_text("".join(f"{one}\n" for one in keys))
    return file


def build(folder, compiler, link):
    program.run([*compiler.split(), "-O2", "-g", "-w", *sorted((folder / "src").glob("*.c")), *link, "-o", folder / "asked"])


def tests(folder, environment):
    """How many questions are answered as by the plain program."""
    names = [key(number) for number in range(2000)] + [key(number)[:5] for number in range(50)]
    names += ["kanji", "nihongo", "toukyouTo", "KKa", "xyz", ""]
    answered = 0
    for options in ([], ["-v"], ["-e", "-n"]):
        with asked(folder, "questions", names).open() as questions:
            done = subprocess.run([folder / "asked", "-q", *options, "-d", dictionary(folder, 2000)], stdin=questions,
                                  env={**os.environ, **environment}, timeout=1800, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE)
        right = folder.parent / f"answers{''.join(options)}"
        if folder.name == "plain":
            right.write_bytes(done.stdout)
        if done.returncode != 0 or done.stdout != right.read_bytes():
            print(f"cmigemo {options}: not what the plain program says, or status {done.returncode}: {done.stderr[-2000:]}")
            return 0
        answered += len(names)
    return answered


def instructions(folder):
    return [("a key is asked for, of 20,000", [folder / "asked", "-q", "-d", dictionary(folder, 20000)], 20000,
             asked(folder, "each", (key(number) for number in range(20000))))]


def workload(folder, seconds):
    hot = asked(folder, "hot", (key(number) for number in range(0, KEYS, 10)))
    return [sys.executable, HERE.parent / "watched.py", str(seconds),
            *program.fed([folder / "asked", "-q", "-d", dictionary(folder, KEYS)], hot, hot)]


def main():
    options = program.arguments(__doc__)
    program.tested_program(options, "cmigemo 1.2", HERE, ARCHIVE, SHA256, build, tests, instructions, workload, 45).main()


if __name__ == "__main__":
    main()
