#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Does what the section "In five minutes" of docs/compiler.md says: its program, its command line.

    run DOCUMENT BUILD-DIRECTORY WORK-DIRECTORY

The work directory gets a link `build` to the build directory, so that the command is run as it is
written. The program must print what it says itself when all is well.
"""

import pathlib
import re
import subprocess
import sys

SECTION = "## In five minutes"


def main():
    if len(sys.argv) != 4:
        sys.exit("usage: run DOCUMENT BUILD-DIRECTORY WORK-DIRECTORY")
    document, build, work = (pathlib.Path(a).resolve() for a in sys.argv[1:])
    text = document.read_text(encoding="utf-8")
    if SECTION not in text:
        sys.exit(f"{document}: there is no section '{SECTION}'")
    section = text.split(SECTION, 1)[1].split("\n## ", 1)[0]
    program = re.search(r"```cpp\n(.*?)```", section, re.DOTALL)
    command = re.search(r"^    (build/bin/obase-clang\+\+ .* (\S+\.cpp) .*)$", section, re.MULTILINE)
    if not program or not command:
        sys.exit(f"{document}: '{SECTION}' has no C++ program, or no command line with obase-clang++")
    work.mkdir(parents=True, exist_ok=True)
    link = work / "build"
    link.unlink(missing_ok=True)
    link.symlink_to(build)
    (work / command.group(2)).write_text(program.group(1), encoding="utf-8")
    done = subprocess.run(["bash", "-c", command.group(1)], cwd=work, capture_output=True, text=True,
                          timeout=600)
    if done.returncode != 0 or done.stdout != "there\n" or done.stderr:
        sys.exit(f"{command.group(1)}\nexit status {done.returncode}, printed {done.stdout!r}, "
                 f"not 'there'\n{done.stderr}")
    print(f"{command.group(1)}: {done.stdout}", end="")


if __name__ == "__main__":
    main()
