#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Lets clang read what no other build of `make check` compiles with it: tools, plugins, tests that no
sanitizer runs. Its warnings are errors. Nothing is compiled: that would take three times as long.

usage: scripts/check_clang.py BUILD [--but COMPILED]... [--jobs N]

BUILD and COMPILED are build directories that have compile_commands.json. Of BUILD's sources those
are checked whose object no COMPILED has (default: all), and what is compiled twice in the same way
once. Exit code 0: no warnings, 1: warnings, 2: usage.
"""
import argparse
import concurrent.futures
import json
import os
import shlex
import subprocess
import sys


def commands(build):
    try:
        with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as file:
            return json.load(file)
    except (OSError, ValueError) as error:
        print(f"check_clang: {build}: no build directory with compile_commands.json: {error}",
              file=sys.stderr)
        sys.exit(2)


def source(build, entry):
    """What names a source in two builds: generated ones lie in each build's own directory."""
    path = os.path.normpath(os.path.join(entry["directory"], entry["file"]))
    build = os.path.realpath(build) + os.sep
    return "(generated) " + path[len(build):] if path.startswith(build) else path


def compiled(build):
    """The sources whose object is there."""
    found = set()
    for entry in commands(build):
        command = shlex.split(entry["command"])
        output = command[command.index("-o") + 1]
        if os.path.exists(os.path.join(entry["directory"], output)):
            found.add(source(build, entry))
    return found


def reading(entry):
    """The command that reads the entry's source and writes nothing."""
    command = shlex.split(entry["command"])
    if os.path.basename(command[0]) == "ccache":
        del command[0]
    for option in ("-o", "-MT", "-MF"):
        if option in command:
            at = command.index(option)
            del command[at:at + 2]
    command = [word for word in command if word not in ("-c", "-MD")]
    command.append("-fsyntax-only")
    return command


def once(entries):
    """The first of those that are read by one command in one directory."""
    kept = {}
    for entry in entries:
        kept.setdefault((entry["directory"], *reading(entry)), entry)
    return list(kept.values())


def check(entry):
    ran = subprocess.run(reading(entry), cwd=entry["directory"], capture_output=True, text=True,
                         check=False)
    return entry["file"], ran.returncode, ran.stderr


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build")
    parser.add_argument("--but", metavar="COMPILED", action="append", default=[])
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()

    done = set().union(*map(compiled, options.but))
    todo = once(entry for entry in commands(options.build)
                if source(options.build, entry) not in done)
    if not todo:
        print("check_clang: nothing to check")
        return 0
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for file, status, messages in pool.map(check, todo):
            if status != 0 or messages:
                failed += 1
                print(f"{file}:\n{messages}", file=sys.stderr)
    print(f"check_clang: {len(todo)} sources, {failed} with warnings or errors")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
