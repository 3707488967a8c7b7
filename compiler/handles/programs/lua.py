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


def build(options, folder, name, compiler):
    objects = options.out / f"objects-{name}"
    objects.mkdir(exist_ok=True)
    sources = [s for s in sorted((folder / "src").glob("*.c")) if s.name != "luac.c"]
    flags = ["-O3", "-DLUA_COMPAT_5_3", "-DLUA_USE_LINUX"]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(lambda s: program.run([*compiler, *flags, "-c", s, "-o", objects / f"{s.stem}.o"]), sources))
    made = options.out / f"lua-{name}"
    program.run([*compiler, *sorted(objects.glob("*.o")), "-Wl,-E", "-lm", "-ldl", "-o", made])
    return made


def main():
    options = program.arguments(__doc__)
    folder = options.out / "source"
    program.unpack(program.source_package(options, *SOURCE), folder)
    made = {name: build(options, folder, name, compiler) for name, compiler in handled.compilers(options).items()}
    checks = pathlib.Path(__file__).resolve().parent / "lua_checks.lua"
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
