# SPDX-License-Identifier: MIT
"""The programs of `obase bench handles` that come with obase: walks.c. Only --describe; compiler/handles/samples tests what
such programs do."""

import pathlib

import handled

# (name, letter, nodes, repetitions of a run that is timed, of one whose instructions are counted)
PROGRAMS = [("list", "l", 20000, 8000, 200), ("list-1m", "l", 1000000, 6, 1), ("bst", "b", 20000, 3000, 60),
            ("hash", "h", 20000, 6000, 60), ("array", "a", 20000, 12000, 100), ("pairs", "m", 1000, 30000, 300)]


def main():
    options = handled.arguments(__doc__)
    if not options.describe:
        raise SystemExit("own.py: expected --describe FILE")
    source = pathlib.Path(__file__).resolve().parent / "walks.c"
    handled.describe(options, [(source, ["-O3"])], [], [
        {"name": name, "time": [time, letter, nodes], "count": [count, letter, nodes], "checks": [], "answer": "sum "}
        for name, letter, nodes, time, count in PROGRAMS])


if __name__ == "__main__":
    main()
