#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What the corpus accepts (compiler/test/accepted) is run under audit, which may find nothing.

Each program has a main, for this alone if need be (WITH_MAIN). It has to print what the plain program prints and to end
with status 0, without an error or a suspicion, and its objects have to move, unless a comment in it says

    // STILL: why nothing of it is managed
    // NOT RUN: why it cannot be run

Prints a line for each that is not as expected, and how many ran and moved; exits with 1 if one is not as expected.
"""

import argparse
import concurrent.futures
import pathlib
import re
import sys

sys.dont_write_bytecode = True
import run_audit  # noqa: E402

ACCEPTED = run_audit.HERE.parent / "test" / "accepted"
INPUTS = ["-I", run_audit.HERE.parent / "test" / "inputs", "-DWITH_MAIN"]


def comment(source, key):
    found = re.search(rf"^// {key}: (.+)$", source.read_text(encoding="utf-8"), re.MULTILINE)
    return found[1] if found else None


def outcome(options, source):
    """What is wrong, and how many objects have moved."""
    # A folder for each language, since list.c and list.cpp have one name without it.
    maker = run_audit.maker(argparse.Namespace(**{**vars(options), "out": options.out / source.suffix[1:]}))
    try:
        program, _ = maker.program(source, more=INPUTS)
        plain = maker.plain_program(source, more=INPUTS)
    except SystemExit as refused:
        return f"is not made: {refused}", 0
    expected = run_audit.run([plain])
    done = run_audit.run([program], {"OBASE_AUDIT": "1"})
    moved = re.search(r"(\d+) objects moved", done.stderr)
    moved = int(moved[1]) if moved else 0
    if expected.returncode != 0:
        return f"the plain program: status {expected.returncode}, printed {expected.stdout!r}", moved
    if done.returncode != 0 or done.stdout != expected.stdout:
        return f"status {done.returncode}, printed {done.stdout!r}, not {expected.stdout!r}: {done.stderr}", moved
    if "0 errors, 0 suspected, 0 known; " not in done.stderr:
        return done.stderr, moved
    if (moved == 0) != (comment(source, "STILL") is not None):
        return f"{moved} objects moved", moved
    return "", moved


def main():
    parser = run_audit.arguments("Runs the accepted programs of the corpus under audit.")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="only each Nth")
    parser.add_argument("names", nargs="*", help="of programs, list.c; without, all")
    options = parser.parse_args()
    options.link = "static"
    everything = sorted(ACCEPTED.iterdir())
    if unknown := set(options.names) - {source.name for source in everything}:
        parser.error(f"there is no {', '.join(sorted(unknown))} in {ACCEPTED}")
    chosen = [source for source in everything if source.name in options.names] or everything[::options.every]
    reasons = {source.name: comment(source, "NOT RUN") for source in chosen}
    running = [source for source in chosen if reasons[source.name] is None]
    wrong = moving = objects = 0
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for source, (said, moved) in zip(running, pool.map(lambda source: outcome(options, source), running)):
            objects += moved
            moving += moved != 0
            if said:
                wrong += 1
                print(f"{source.name}: {said}", flush=True)
    for name, reason in reasons.items():
        if reason is not None:
            print(f"{name}: not run: {reason}")
    print(f"{len(chosen)} of {len(everything)} accepted programs: {len(running)} ran under audit at {options.level}, "
          f"{wrong} not as expected; in {moving} of them {objects} objects moved")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
