# SPDX-License-Identifier: MIT
"""A program without a mark whose cold objects leave memory: cold_strings.c, compiled with --handles alone, with COLD in a file.

It reads one key in ten until half of its memory has gone, and then all of them: each must be right. With OBASE_HANDLES=off it
must keep its memory, so that it is not the program that gives it back. The shares of docs/handles.md are off: other tests use
the machine. TEMPERATURE_ENTRIES names another size than this.
"""

import os
import re
import sys

from handled import program

# Each string that is read is read some eight times in a window.
QUICK = {"OBASE_WINDOW_SECONDS": "1", "OBASE_COLD_THRESHOLD": "1", "OBASE_HANDLES_TICK_MS": "20",
         "OBASE_HANDLES_TRACK": "1", "OBASE_HANDLES_USED": "1", "OBASE_HANDLES_SHARE": "1", "OBASE_SHOW_STATS": "1", "OBASE_MEMORY": "none"}
READS_PER_SECOND = "40000"
UNTIL_HALF_IS_LEFT = "0"


def resident(said):
    return [int(kib) for kib in re.findall(r"(\d+) KiB", said)]


def figure(name, said):
    return int(re.search(rf"obase: handles: {name} (\d+)", said)[1])


def check(holds, what, said):
    if not holds:
        sys.exit(f"{what}:\n{said[-4000:]}")


def main():
    options = program.arguments(__doc__)
    entries = os.environ.get("TEMPERATURE_ENTRIES", "50000")
    options.out.mkdir(parents=True, exist_ok=True)
    files = options.out / "cold"
    files.mkdir(exist_ok=True)
    why = ""
    try:
        os.close(os.open(files, os.O_TMPFILE | os.O_RDWR, 0o600))
        kind = program.run(["stat", "-f", "-c", "%T", files]).stdout.strip()
        if kind in ("tmpfs", "ramfs"):
            why = f"it is a {kind}"
    except OSError as problem:
        why = problem.strerror
    if why:
        print(f"skipped: {files} can hold no cold memory: {why}")
        sys.exit(program.SKIPPED)
    driver = [options.bin / "obase-clang", "--handles"]
    made = options.out / "cold_strings"
    program.run([*driver, "-O2", "-c", options.source / "compiler/handles/programs/cold_strings.c", "-o", f"{made}.o"])
    program.run([*driver, f"{made}.o", "-o", made])

    home = program.run([made, entries, "3", READS_PER_SECOND], environment={**QUICK, "OBASE_HANDLES": "off", "OBASE_MODE": "hint"}).stdout
    check(" 0 wrong" in home and min(resident(home)) > 0.9 * max(resident(home)), "at home memory is what it was", home)
    said = program.run([made, entries, UNTIL_HALF_IS_LEFT, READS_PER_SECOND],
                       environment={**QUICK, "OBASE_COLD_BACKING": f"file:{files}", "OBASE_MODE": "hint"}).stdout
    check(" 0 wrong" in said, "all strings are right", said)
    check(figure("left_bytes", said) > 0 and figure("tracked_uses", said) > 0, "what is cold left memory", said)
    print(f"{max(resident(said))} KiB, then {resident(said)[-1]}; {figure('moved', said)} objects moved, in {figure('windows', said)} windows")


if __name__ == "__main__":
    main()
