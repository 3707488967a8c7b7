# SPDX-License-Identifier: MIT
"""Redis 7.0.15 of Debian's source, unchanged, with the C library's malloc: tests of its own suite (./runtest), plain, at home
and in stress mode. REDIS_TESTS names others than these."""

import os
import re
import shutil
import sys

import handled
from handled import program

SOURCE = ("pool/main/r/redis/redis_7.0.15.orig.tar.gz", "4b1dc4ee6d622a09fff9c6777191209750fb5e5a725ef78ea012d6eef4c22982")
TESTS = "unit/type/list unit/type/hash unit/type/zset unit/expire unit/scripting unit/dump unit/sort unit/multi unit/keyspace"
# Each test there waits for nothing else than its server: those that look at memory or at seconds are not among them.
UNDER_STRESS = "unit/type/list unit/type/hash unit/multi unit/keyspace"


def main():
    options = program.arguments(__doc__)
    if shutil.which("tclsh") is None:
        print("skipped: there is no tclsh here, which runs the tests")
        sys.exit(program.SKIPPED)
    archive = program.source_package(options, *SOURCE)
    ways = {"plain": ("plain", {}), "home": ("handles", {}), "stress": ("handles", {"OBASE_HANDLES_STRESS": "2000"})}
    for name, compiler in handled.compilers(options).items():
        folder = options.out / name
        program.unpack(archive, folder)
        command = " ".join(str(part) for part in compiler)
        cxx = command.replace("obase-clang", "obase-clang++") if name == "handles" else f"{command} --driver-mode=g++"
        program.run(["make", f"-j{os.cpu_count()}", f"CC={command}", f"CXX={cxx}", "MALLOC=libc", "OPTIMIZATION=-O2"], where=folder)
    passed = {}
    for way, (name, environment) in ways.items():
        tests = os.environ.get("REDIS_TESTS", UNDER_STRESS if way == "stress" else TESTS).split()
        chosen = [word for test in tests for word in ("--single", test)]
        # Ports below those that the kernel gives away.
        done = program.run(["./runtest", "--clients", "2", "--baseport", "22000", "--portcount", "4000", *chosen],
                           where=options.out / name, environment=environment)
        passed[way] = len(re.findall(r"\[ok\]", re.sub(r"\x1b\[[0-9;]*m", "", done.stdout)))
        print(f"redis, {way}: {passed[way]} tests of {len(tests)} files")
    if passed["home"] != passed["plain"] or min(passed.values()) == 0:
        sys.exit("with handles other tests than plain")


if __name__ == "__main__":
    main()
