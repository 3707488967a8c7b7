# SPDX-License-Identifier: MIT
"""sqlite 3.40.1 of Debian's source, unchanged, under its own tests in Tcl (veryquick, with full text search, R trees and
sessions): plain, at home and in stress mode. SQLITE_OMIT names further files to leave out, as QUICKTEST_OMIT does.

libtcl is foreign code, which calls back and keeps addresses. sqlite is built without its lookaside and without pages that are
allocated together: those lie in blocks above 16 KiB, which do not move."""

import os
import pathlib
import re
import shutil
import subprocess
import sys

import handled
import sqlite
from handled import program

OPTIONS = "-DSQLITE_OMIT_LOOKASIDE -DSQLITE_DEFAULT_PCACHE_INITSZ=0"
# Wait for the clock; oserror expects that it cannot write to /root; withM lets each allocation fail in turn, and how many there
# are depends on malloc_usable_size.
OMITTED = "busy2 oserror walsetlk walvfs withM"
# Have so many small objects that moves of all of them take minutes.
SLOW_UNDER_STRESS = ("amatch1 atof1 avtrans bitvec closure01 e_walauto fts3b fts3expr3 fts3misc fts3query fts4aa fts4incr "
                     "fts4opt fts4unicode joinD memjournal2 orderby1 pager1 pager2 percentile round1 rowhash rowvalue2 rtreeE "
                     "rtreedoc3 session2 session5 sessionG sort sort2 swarmvtab table temptable2 tkt4018 trans triggerC "
                     "tkt2409 unionall2 vacuum6 vacuummem vtabD wal3 where8 window3 with1")


def configuration():
    """The folder with tclConfig.sh; else the script ends as skipped."""
    if shutil.which("tclsh") is None:
        print("skipped: there is no tclsh here, which makes sqlite3.c")
        sys.exit(program.SKIPPED)
    for folder in sorted(pathlib.Path("/usr/lib").glob("tcl8.*")):
        if (folder / "tclConfig.sh").exists():
            return folder
    print("skipped: there is no tcl-dev here, which the tests' program needs")
    sys.exit(program.SKIPPED)


def build(options, name, compiler, tcl):
    folder = options.out / name
    program.unpack(program.source_package(options, *sqlite.SOURCE), folder)
    made = folder / "build"
    made.mkdir()
    command = " ".join(str(part) for part in compiler)
    program.run(["../configure", "--enable-all", f"--with-tcl={tcl}", f"CC={command}", "CFLAGS=-O2 -w -g1"], where=made)
    program.run(["make", "testfixture", f"OPTS={OPTIONS}"], where=made)
    return folder


def passed(folder, where, environment, omitted):
    """How many tests have passed; ends the script if one fails."""
    shutil.rmtree(where, ignore_errors=True)
    where.mkdir()
    files = [f"^{name}[.]test$" for name in omitted.split()]
    # Some tests expect that files can be closed to them, which they are to no root with all capabilities.
    before = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"] if os.geteuid() == 0 else []
    done = subprocess.run(
        [*before, folder / "build" / "testfixture", folder / "test" / "veryquick.test", "--verbose=0"], cwd=where, timeout=3600,
        text=True, errors="replace", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        # OMIT_MISUSE: without tests that use what they have freed.
        env={**os.environ, **environment, "OMIT_MISUSE": "1",
             "QUICKTEST_OMIT": ",".join([*files, *filter(None, [os.environ.get("SQLITE_OMIT")])])})
    counted = re.search(r"^0 errors out of (\d+) tests", done.stdout, re.M)
    if done.returncode != 0 or counted is None:
        said = "\n".join(line for line in done.stdout.splitlines() if not line.startswith("Time: "))
        sys.exit(f"sqlite's tests, {where.name}: exit status {done.returncode}\n{said[-8000:]}")
    return int(counted[1]), done.stdout.count("\nTime: ")


def main():
    options = handled.arguments(__doc__)
    tcl = configuration()
    folders = {name: build(options, name, compiler, tcl) for name, compiler in handled.compilers(options).items()}
    ways = {"plain": ("plain", {}, OMITTED), "home": ("handles", {}, OMITTED),
            "stress": ("handles", {"OBASE_HANDLES_STRESS": "100000"}, f"{OMITTED} {SLOW_UNDER_STRESS}")}
    tests = {}
    for way, (name, environment, omitted) in ways.items():
        tests[way], files = passed(folders[name], options.out / f"tests-{way}", environment, omitted)
        print(f"sqlite's tests, {way}: {tests[way]} of {files} files", flush=True)
    # How many there are differs from run to run, by some hundreds.
    if tests["home"] < .98 * tests["plain"]:
        sys.exit("with handles fewer tests than plain")


if __name__ == "__main__":
    main()
