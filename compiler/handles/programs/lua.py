# SPDX-License-Identifier: MIT
"""Lua 5.4 of Debian's source: plain, at home and in stress mode. The folder of its own tests (testes), which Debian's
source does not have, is run where LUA_TESTES names it."""

import concurrent.futures
import os
import pathlib
import subprocess

import handled
from handled import program

SOURCE = ("pool/main/l/lua5.4/lua5.4_5.4.4.orig.tar.gz", "164c7849653b80ae67bec4b7473b884bf5cc8d2dca05653475ec2ed27b9ebf61")


FLAGS = ["-O3", "-DLUA_COMPAT_5_3", "-DLUA_USE_LINUX"]
LINK = ["-Wl,-E", "-lm", "-ldl"]
# Of lua_benchmarks.lua: (name, size of a run that is timed, of one whose instructions are counted).
BENCHMARKS = [("calls", 30, 17), ("trees", 14, 8), ("strings", 60, 3), ("sort", 90, 4), ("floats", 260, 50)]


def sources_of(folder):
    return [s for s in sorted((folder / "src").glob("*.c")) if s.name != "luac.c"]


def build(options, folder, name, compiler):
    objects = options.out / f"objects-{name}"
    objects.mkdir(exist_ok=True)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(lambda s: program.run([*compiler, *FLAGS, "-c", s, "-o", objects / f"{s.stem}.o"]), sources_of(folder)))
    made = options.out / f"lua-{name}"
    program.run([*compiler, *sorted(objects.glob("*.o")), *LINK, "-o", made])
    return made


def main():
    options = handled.arguments(__doc__)
    folder = options.out / "source"
    program.unpack(program.source_package(options, *SOURCE), folder)
    here = pathlib.Path(__file__).resolve().parent
    checks = here / "lua_checks.lua"
    if options.describe:
        benchmarks = here / "lua_benchmarks.lua"
        handled.describe(options, [(source, FLAGS) for source in sources_of(folder)], LINK, [
            {"name": f"lua-{name}", "time": [benchmarks, name, time], "count": [benchmarks, name, count],
             "checks": [[checks, "10"]] if name == "calls" else [], "answer": ""} for name, time, count in BENCHMARKS])
        return
    made = {name: build(options, folder, name, compiler) for name, compiler in handled.compilers(options).items()}
    if options.measure:
        handled.measure("lua", *([made[name], checks, size] for size in ("27", "16") for name in ("plain", "handles")))
        return
    handled.compare("lua", {"plain": ([made["plain"], checks, "10"], {}),
                            **{way: ([made["handles"], checks, "10"], environment) for way, environment in handled.WAYS.items()}})
    tests = os.environ.get("LUA_TESTES")
    if tests is None:
        print("Lua's own tests are not run: LUA_TESTES names no folder")
        return
    for name, binary, environment in [("plain", made["plain"], {})] + [(w, made["handles"], e) for w, e in handled.WAYS.items()]:
        done = subprocess.run([binary, "-e_U=true", "all.lua"], cwd=tests, env={**os.environ, **environment}, text=True,
                              errors="replace", stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if done.returncode != 0 or "final OK" not in done.stdout:
            raise SystemExit(f"testes, {name}: exit status {done.returncode}\n{done.stdout[-3000:]}")
        print(f"testes, {name}: final OK")


if __name__ == "__main__":
    main()
