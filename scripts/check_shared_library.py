#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks what libobase.so asks of a program and gives to it.

  needs    nothing but libc, pthreads and the C++ runtime (NEEDED entries of readelf -d);
  exports  only names of obase (nm -D): everything else could collide with the program's. Weak
           definitions do not count: they are instantiations of the standard library.

usage: scripts/check_shared_library.py LIBRARY
"""

import argparse
import os
import re
import subprocess
import sys

ALLOWED = re.compile(
    r"^(libc|libpthread|libm|libgcc_s|libstdc\+\+|ld-linux-x86-64)\.so\.\d+$")
# obase_* is the C ABI; the others are members of namespace obase, with their tables and type names.
OURS = re.compile(r"^(obase_\w+|_Z(T[VTISHW]|GV)?(NK?)?5obase\w*)$")


def output(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True,
                          env={**os.environ, "LC_ALL": "C"}).stdout


def main():
    parser = argparse.ArgumentParser(description="Checks what libobase.so needs and exports.")
    parser.add_argument("path", metavar="LIBRARY")
    library = parser.parse_args().path

    dynamic = output("readelf", "-d", "-W", library)
    needed = re.findall(r"\(NEEDED\)\s.*\[(.*)\]", dynamic)
    problems = [f"needs {name}" for name in needed if not ALLOWED.match(name)]
    if not re.search(r"\(SONAME\)\s.*\[libobase\.so\.\d+\]", dynamic):
        problems.append("has no SONAME libobase.so.N")

    exported = 0
    for line in output("nm", "-D", "--defined-only", library).splitlines():
        kind, name = line.split()[-2:]
        name = name.split("@")[0]
        if kind in "WVwvu":
            continue
        exported += 1
        if not OURS.match(name):
            problems.append(f"exports {name} ({kind})")
    if not exported:
        problems.append("exports nothing")

    for problem in problems:
        print(f"{library} {problem}")
    if not problems:
        print(f"{library}: needs {', '.join(sorted(needed)) or 'nothing'}; exports {exported} names")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
