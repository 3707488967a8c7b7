# SPDX-License-Identifier: MIT
"""sqlite of Debian's source, as its amalgamation, under speedtest1 --verify: plain, at home and in stress mode. tclsh makes
the amalgamation."""

import re
import shutil
import sys

import handled
from handled import program

SOURCE = ("pool/main/s/sqlite3/sqlite3_3.40.1.orig.tar.xz", "aaa776260ab4dc976db34aa7891819484c8676b5b2783123ebc6301e2ca5d655")
LINK = ["-lm", "-lpthread"]


def amalgamation(options):
    if shutil.which("tclsh") is None:
        print("skipped: there is no tclsh here, which makes sqlite3.c")
        sys.exit(program.SKIPPED)
    folder = options.out / "source"
    made = folder / "build" / "sqlite3.c"
    if not made.exists():
        program.unpack(program.source_package(options, *SOURCE), folder)
        (folder / "build").mkdir()
        program.run(["../configure", "--disable-tcl"], where=folder / "build")
        program.run(["make", "sqlite3.c"], where=folder / "build")
    return folder


def flags(folder):
    return ["-O3", "-w", "-DSQLITE_OMIT_LOAD_EXTENSION", f"-I{folder / 'build'}"]


def sources(folder):
    return [folder / "test" / "speedtest1.c", folder / "build" / "sqlite3.c"]


def main():
    options = handled.arguments(__doc__)
    folder = amalgamation(options)
    if options.describe:
        file = options.out / "test.db"
        handled.describe(options, [(source, flags(folder)) for source in sources(folder)], LINK, [
            {"name": "sqlite", "time": ["--size", 20, ":memory:"], "count": ["--size", 2, ":memory:"],
             "checks": [["--size", 5, "--verify", ":memory:"], ["--size", 2, "--verify", file],
                        *(["--size", 5, "--verify", "--testset", testset, ":memory:"] for testset in ("cte", "orm", "fp"))],
             "answer": "Verification Hash:"}])
        return
    made = {}
    for name, compiler in handled.compilers(options).items():
        made[name] = options.out / f"speedtest1-{name}"
        program.run([*compiler, *flags(folder), *sources(folder), *LINK, "-o", made[name]])
    if options.measure:
        handled.measure("sqlite", *([made[name], "--size", size, ":memory:"] for size in ("20", "2") for name in ("plain", "handles")))
        return

    def hash_of(text):
        return re.search(r"Verification Hash: .*", text)[0]
    for database, size in ((":memory:", "5"), (str(options.out / "test.db"), "2")):
        def command(name):
            return [made[name], "--size", size, "--verify", database]
        for file in options.out.glob("test.db*"):
            file.unlink()
        handled.compare(f"sqlite {database}", {"plain": (command("plain"), {}),
                                               **{way: (command("handles"), e) for way, e in handled.WAYS.items()}}, hash_of)


if __name__ == "__main__":
    main()
