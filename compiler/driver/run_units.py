#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Code that was compiled without the passes, and has to do with functions on marked fields: who names it, and when.

The driver does when it links, and the program when it starts (src/audit/plain_units.hpp), if the driver has not linked it, or
of a library that was loaded. Nothing is said twice, or where all is right.
"""

import argparse
import os
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
UNITS = HERE / "units"
AUDITED = HERE.parent / "audit" / "programs"
SAID = "compiled without obase-clang"
FORCED = {"OBASE_WINDOW_SECONDS": "1000000"}


def run(command, environment=None):
    return subprocess.run([str(word) for word in command], env={**os.environ, **FORCED, **(environment or {})},
                          capture_output=True, text=True, timeout=300)


class maker:
    def __init__(self, options):
        self.options = options
        self.out = options.out
        self.out.mkdir(parents=True, exist_ok=True)
        plain = [options.clang, "-std=gnu11", "-O1", "-gline-tables-only", "-I", options.include, "-I", AUDITED]
        for name in ["plain_caller_plain", "names_variable"]:
            source = (UNITS if name == "names_variable" else AUDITED) / f"{name}.c"
            self.made([*plain, "-c", source, "-o", self.out / f"{name}.o"])
            self.made([*plain, "-shared", "-fPIC", source, "-o", self.out / f"lib{name}.so"])
        self.made([options.clangxx, "-std=c++20", "-O1", "-DFORCED", "-I", options.include, "-I", HERE.parent.parent,
                   "-c", HERE.parent / "torture" / "settle.cpp", "-o", self.out / "settle.o"])
        driver = options.drivers / "obase-clang"
        self.passes = [driver, "-std=gnu11", "-O1", "-I", AUDITED]
        self.objects = [self.out / name for name in ["list.o", "main.o", "settle.o"]]
        for source in ["list.c", "main.c"]:
            self.made([*self.passes, "-c", UNITS / source, "-o", self.out / source.replace(".c", ".o")])

    @staticmethod
    def made(command):
        done = run(command)
        if done.returncode != 0:
            sys.exit(f"{' '.join(str(word) for word in command)}\n{done.stderr}")
        return done.stderr

    def by_driver(self, name, *inputs):
        """The program, and what the driver said."""
        program = self.out / name
        return program, self.made([*self.passes, "--obase-static", "-rdynamic", *self.objects, *inputs,
                                   f"-Wl,-rpath,{self.out}", "-o", program])

    def by_hand(self, name, *inputs):
        program = self.out / name
        self.made([self.options.clangxx, "-rdynamic", *self.objects, *inputs, self.options.runtime,
                   f"-Wl,-rpath,{self.out}", "-pthread", "-o", program])
        return program


def lines(text):
    return [line for line in text.splitlines() if SAID in line]


def main():
    parser = argparse.ArgumentParser(description="Says who names units that were compiled without the passes.")
    for name in ["drivers", "include", "out", "runtime"]:
        parser.add_argument(f"--{name}", required=True, type=pathlib.Path)
    for name in ["clang", "clangxx"]:
        parser.add_argument(f"--{name}", required=True)
    options = parser.parse_args()
    at = maker(options)
    unit, library = at.out / "plain_caller_plain.o", at.out / "libplain_caller_plain.so"
    failed = 0

    def expect(what, found, *patterns):
        nonlocal failed
        good = len(found) == len(patterns) and all(re.search(p, line) for p, line in zip(patterns, found))
        failed += not good
        print(f"{what}: {'as expected' if good else found}", flush=True)

    def started(program, *arguments, **environment):
        done = run([program, *arguments], environment)
        if done.returncode != 0 or done.stdout.split()[:1] != ["20100"] or "objects moved: 0" in done.stderr.splitlines():
            sys.exit(f"{program}: status {done.returncode}, printed {done.stdout!r}: {done.stderr}")
        return lines(done.stderr)

    named = r"names ('push', 'sum'|'sum', 'push'), which work on marked fields"
    calls = r"^obase: code that was .*: hand_on \(\S*plain_caller_plain\.c:\d+\) calls 'push'; "

    expect("linked by hand, and right", started(at.by_hand("right")))
    program = at.by_hand("by_hand", unit)
    expect("linked by hand", started(program), calls)
    expect("in mode off nothing moves", lines(run([program], {"OBASE_MODE": "off"}).stderr))
    expect("and one can be told not to", started(program, OBASE_CHECK_UNITS="0"))
    program = at.by_hand("library_by_hand", library)
    expect("a library, linked by hand", started(program), rf"libplain_caller_plain\.so was .* {named}")

    program, said = at.by_driver("driven", unit)
    expect("by the driver", lines(said), rf"plain_caller_plain\.o was .* {named}")
    expect("which is enough", started(program))
    program, said = at.by_driver("driven_library", library)
    expect("a library by the driver", lines(said), rf"libplain_caller_plain\.so was .* {named}")
    expect("which is enough", started(program))
    program, said = at.by_driver("found_library", f"-L{at.out}", "-lplain_caller_plain")
    expect("a library that is looked for", lines(said), rf"libplain_caller_plain\.so was .* {named}")
    program, said = at.by_driver("loads")
    expect("by the driver, and right", lines(said))
    expect("and at start", started(program))
    expect("a library that is loaded, once", started(program, library),
           rf"^obase: \S*libplain_caller_plain\.so was .* {named}")

    program, said = at.by_driver("variable", at.out / "names_variable.o")
    expect("a variable, by the driver", lines(said), r"names_variable\.o was .* names 'shared_list', ")
    program = at.by_hand("variable_by_hand", at.out / "libnames_variable.so")
    expect("a variable, of a library", started(program), r"libnames_variable\.so was .* names 'shared_list', ")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
