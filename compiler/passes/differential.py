# SPDX-License-Identifier: MIT
"""Programs that are compiled twice, by plain clang and with the plugins of obase, and must print the same.

The second one runs while the collector is forced (samples/forcing.hpp), and objects must have moved.
"""

import argparse
import os
import pathlib
import re
import subprocess
import sys

# Only forced windows, a freed object is seen to be one, and the emptied runs go back at once.
FORCED = {"OBASE_WINDOW_SECONDS": "1000000", "OBASE_POISON_FREED": "1"}
LIMIT = 900  # seconds for one program or compilation, on a machine that is busy
SAMPLES = pathlib.Path(__file__).resolve().parent / "samples"


def run(command, environment=None):
    return subprocess.run(command, env={**os.environ, **(environment or {})}, timeout=LIMIT,
                          capture_output=True, text=True)


def parser(description):
    """The arguments that all scripts need."""
    made = argparse.ArgumentParser(description=description)
    for name in ["clang", "plugin", "runtime"]:
        made.add_argument(f"--{name}", required=True)
    made.add_argument("--front-end", help="the front end's plugin; without it the source says all")
    for name in ["include", "out"]:
        made.add_argument(f"--{name}", required=True, type=pathlib.Path)
    return made


class workplace:
    """Where programs are compiled, with what."""

    def __init__(self, options):
        self.options = options
        options.out.mkdir(parents=True, exist_ok=True)
        for name, defines in [("forcing.o", ["-DFORCED"]), ("not_forcing.o", [])]:
            made = run([options.clang, "-std=c++20", "-O2", *defines, f"-I{options.include}", "-c",
                        str(SAMPLES / "forcing.cpp"), "-o", str(options.out / name)])
            if made.returncode != 0:
                sys.exit(made.stderr)

    def compile(self, source, program, flags, forced):
        """What went wrong, or nothing."""
        options = self.options
        command = [options.clang, "-std=c++20", "-gline-tables-only", "-Wall", "-Wextra", "-Werror", "-pthread",
                   f"-I{options.include}", f"-I{SAMPLES}", *flags, str(source), "-o", str(program)]
        if forced:
            command += [f"-fpass-plugin={options.plugin}", str(options.out / "forcing.o"),
                        str(options.runtime)]
            if options.front_end:
                command += [f"-fplugin={options.front_end}"]
        else:
            command += [str(options.out / "not_forcing.o")]
        made = run(command)
        return "" if made.returncode == 0 else f"{' '.join(command)}\n{made.stderr}"

    def differs(self, source, name, flags, plain_flags=None, environment=None):
        """Compiles and runs: yields what a run is called, what is wrong with it, how many objects moved."""
        program = self.options.out / name
        wrong = self.compile(source, program, flags if plain_flags is None else plain_flags, False)
        if wrong:
            yield "plain", wrong, 0
            return
        plain = run([str(program)], environment)
        if plain.returncode != 0 or not plain.stdout:
            yield "plain", f"exit status {plain.returncode}: {plain.stderr}", 0
            return
        program = program.with_name(program.name + ".forced")
        wrong = self.compile(source, program, flags, True)
        if wrong:
            yield "obase", wrong, 0
            return
        for rearm in ["0", "1"]:
            result = run([str(program)], {**FORCED, "OBASE_DEBUG_REARM": rearm, **(environment or {})})
            yield ("rearm" if rearm == "1" else ""), *wrong_in(result, plain.stdout)


def wrong_in(result, expected):
    """What is wrong with a run, and how many objects moved."""
    if result.returncode != 0:
        return f"exit status {result.returncode}: {result.stderr[-4000:]}", 0
    if result.stdout != expected:
        return f"printed {result.stdout!r}, not {expected!r}", 0
    found = re.search(r"^objects moved: (\d+)$", result.stderr, re.MULTILINE)
    moved = int(found.group(1)) if found else 0
    return ("" if moved > 0 else "nothing moved: " + result.stderr[-2000:]), moved


def report(name, results):
    """A line for each run; true if all were right."""
    good = True
    for what, wrong, moved in results:
        good = good and not wrong
        print(f"{name}{' ' if what else ''}{what}: {wrong or f'as plain, {moved} objects moved'}", flush=True)
    return good
