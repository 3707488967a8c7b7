#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares the instructions of a dereference, of a scope and of making an owner with the golden counts.

Runs the program under callgrind with two lengths of its loops; the difference, divided by that of the
lengths, is the number of instructions per step, and must be a whole number. Status: 0 equal, 1 different
(with a table of both), 77 cannot be told here (with the reason), which ctest shows as skipped.

usage: check_instructions.py PROGRAM GOLDEN.json --compiler ID VERSION --build TYPE --sanitize LIST
           [--checks FLAG] [--update]

--update writes what was counted into the golden file: do it when the code was meant to change, and say
in the commit why the counts did.
"""

import argparse
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

SKIPPED = 77
LENGTHS = (1000, 3000)
LOOPS = ["plain_latency", "arming_latency", "arming_latency_scope",
         "plain_throughput", "arming_throughput", "arming_throughput_scope",
         "arming_owner"]


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(SKIPPED)


def inclusive_costs(path):
    """Instructions of each of LOOPS with all that it calls, from a callgrind output file."""
    names, costs, current, after_call = {}, {}, None, False
    for line in path.read_text().splitlines():
        if match := re.match(r"(c?)fn=\((\d+)\)(?: (.*))?$", line):
            called, number, name = match.groups()
            if name:
                names[number] = name
            if not called:
                current = names[number]
        elif line.startswith("calls="):
            after_call = True
        elif match := re.match(r"(?:[+-]?\d+|\*) (\d+)$", line):
            # The line after calls= is the cost of the callee; both count for the caller.
            if current in LOOPS:
                costs[current] = costs.get(current, 0) + int(match.group(1))
            after_call = False
    assert not after_call
    return costs


def count(valgrind, program, steps, folder):
    output = pathlib.Path(folder, f"callgrind.{steps}")
    done = subprocess.run([valgrind, "--tool=callgrind", f"--callgrind-out-file={output}",
                           "--compress-strings=yes", program, str(steps)],
                          capture_output=True, text=True)
    if done.returncode != 0 or not output.exists():
        print(done.stdout + done.stderr, file=sys.stderr)
        sys.exit(f"{program} {steps} under callgrind ended with status {done.returncode}")
    costs = inclusive_costs(output)
    missing = [name for name in LOOPS if name not in costs]
    if missing:
        sys.exit(f"callgrind saw no {', '.join(missing)}: were they inlined?")
    return costs


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("golden", type=pathlib.Path)
    parser.add_argument("--compiler", nargs=2, required=True, metavar=("ID", "VERSION"))
    parser.add_argument("--build", required=True)
    parser.add_argument("--sanitize", default="")
    parser.add_argument("--checks", default="")
    parser.add_argument("--update", action="store_true")
    arguments = parser.parse_args()

    golden = json.loads(arguments.golden.read_text())
    identity, version = arguments.compiler
    major = version.split(".")[0]
    if f"{identity} {major}" != golden["compiler"]:
        skip(f"the counts are those of {golden['compiler']}, this build is by {identity} {version}")
    if arguments.build.lower() != golden["build"]:
        skip(f"the counts are those of a {golden['build']} build, this one is '{arguments.build}'")
    if arguments.sanitize:
        skip(f"built with sanitizer {arguments.sanitize}")
    if arguments.checks.upper() in ("1", "ON", "TRUE", "YES"):
        skip("built with scope checks")
    valgrind = shutil.which("valgrind")
    if valgrind is None:
        skip("valgrind is not installed")

    with tempfile.TemporaryDirectory() as folder:
        short, long = (count(valgrind, arguments.program, n, folder) for n in LENGTHS)
    steps = LENGTHS[1] - LENGTHS[0]
    per_step = {}
    for name in LOOPS:
        difference = long[name] - short[name]
        if difference % steps != 0:
            sys.exit(f"{name}: {difference} instructions for {steps} steps: not the same in each")
        per_step[name] = difference // steps
    if arguments.update:
        golden["instructions_per_step"] = per_step
        arguments.golden.write_text(json.dumps(golden, indent=2) + "\n")
    wanted = golden["instructions_per_step"]
    print(f"{'instructions per step':28} golden  counted")
    for name in LOOPS:
        print(f"{name:28} {wanted.get(name, '-'):>6}  {per_step[name]:>7}"
              f"{'' if wanted.get(name) == per_step[name] else '   <-- different'}")
    for kind in ("latency", "throughput"):
        plain, guide = per_step[f"plain_{kind}"], per_step[f"arming_{kind}"]
        print(f"{kind}: a dereference adds {guide - plain} to a plain pointer's, "
              f"a scope {per_step[f'arming_{kind}_scope'] - guide}")
    return 0 if wanted == per_step else 1


if __name__ == "__main__":
    sys.exit(main())
