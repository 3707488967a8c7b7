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


def built(options, *names):
    """Redis in the folder of each name. What is there is made again only if what makes it has changed."""
    archive = program.source_package(options, *SOURCE)
    plain, handles = handled.compilers(options).values()
    ways = {"plain": (plain, ["MALLOC=libc"]),
            "handles": (handles, ["MALLOC=libc", f"REDIS_LDFLAGS={handled.figures_object(options)}"]),
            # What activedefrag needs: the jemalloc that comes with Redis.
            "activedefrag": (plain, ["MALLOC=jemalloc", "redis-server"])}
    for name in names:
        compiler, wanted = ways[name]
        stamp = options.out / f"{name}.made"
        state = " ".join(str(part) for part in (*compiler, *wanted, handled.fingerprint(options) if name == "handles" else ""))
        if stamp.exists() and stamp.read_text() == state:
            continue
        program.unpack(archive, options.out / name)
        command = " ".join(str(part) for part in compiler)
        cxx = command.replace("obase-clang", "obase-clang++") if name == "handles" else f"{command} --driver-mode=g++"
        program.run(["make", f"-j{os.cpu_count()}", f"CC={command}", f"CXX={cxx}", "OPTIMIZATION=-O2", *wanted],
                    where=options.out / name)
        stamp.write_text(state)


def main():
    options = handled.arguments(__doc__)
    if options.describe:
        names = ("plain", "activedefrag", "handles")
        built(options, *names)
        handled.write(options, {"servers": {name: options.out / name / "src" / "redis-server" for name in names}})
        return
    if shutil.which("tclsh") is None:
        print("skipped: there is no tclsh here, which runs the tests")
        sys.exit(program.SKIPPED)
    built(options, "plain", "handles")
    ways = {"plain": ("plain", {}), "home": ("handles", {}), "stress": ("handles", {"OBASE_HANDLES_STRESS": "2000"})}
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
