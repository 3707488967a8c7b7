# SPDX-License-Identifier: MIT
"""libxml2 2.9.14 of Debian's source, unchanged: its shared library and its own tests, plain, at home and in stress mode.

Debian's source has no documents to parse. With LIBXML2_TESTS=FOLDER, a checkout of v2.9.14 with its folders test and result,
the regression tests run, too; without it those that make their input themselves: every function of the interface with what
it may get and may not (testapi), the dictionary with threads, and the characters.
"""

import os
import pathlib
import re
import shutil
import sys

import handled
from handled import program

SOURCE = ("pool/main/libx/libxml2/libxml2_2.9.14+dfsg.orig.tar.xz",
          "4fe913dec8b1ab89d13b489b419a8203176ea39e931eaa0d25b17eafb9c279e9")
TESTS = ["testapi", "testdict", "testchar"]
WITH_DOCUMENTS = ["runtest", "testrecurse"]
# testchar polls for each of millions of characters that it puts together.
UNDER_STRESS = ["testapi", "testdict"]


def build(options, name, compiler, documents):
    folder = options.out / name
    program.unpack(program.source_package(options, *SOURCE), folder)
    command = " ".join(str(part) for part in compiler)
    program.run(["./configure", f"CC={command}", "--without-python"], where=folder)
    # The tests do not say that they need the library.
    for what in (["all"], TESTS + WITH_DOCUMENTS):
        program.run(["make", f"-j{os.cpu_count()}", *what], where=folder)
    for part in ("test", "result") if documents else ():
        shutil.copytree(pathlib.Path(documents) / part, folder / part)
    return folder


def passed(folder, test, environment):
    """What a test says that it did. One that fails says so, or ends with another status."""
    said = program.run([f"./{test}"], where=folder, environment=environment).stdout
    counted = re.search(r"Total:? (.*?)(?:, no|, 0) errors", said)
    if counted is None and (test != "testchar" or "rror" in said) and (test != "testdict" or "rror" in said):
        sys.exit(f"{test} failed:\n{said[-4000:]}")
    return counted[1] if counted else "done"


def main():
    options = handled.arguments(__doc__)
    documents = os.environ.get("LIBXML2_TESTS")
    folders = {name: build(options, name, compiler, documents) for name, compiler in handled.compilers(options).items()}
    ways = {"plain": ("plain", {}), "home": ("handles", {}), "stress": ("handles", {"OBASE_HANDLES_STRESS": "10000"})}
    wanted = {}
    for way, (name, environment) in ways.items():
        for test in (UNDER_STRESS if way == "stress" else TESTS) + (WITH_DOCUMENTS if documents else []):
            got = passed(folders[name], test, environment)
            print(f"libxml2, {way}: {test}: {got}")
            if got != wanted.setdefault(test, got):
                sys.exit("with handles other tests than plain")


if __name__ == "__main__":
    main()
