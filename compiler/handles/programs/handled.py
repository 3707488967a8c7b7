# SPDX-License-Identifier: MIT
"""What the scripts of the programs share: building plain and with handles, running three ways, ratios.

A script is called as those of compiler/programs are, and takes from there what it needs of Debian's sources. With
--measure it prints time and instructions of the program with handles at home over those of clang -O3.
"""

import os
import pathlib
import re
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "programs"))
import program  # noqa: E402

# A move of everything costs as much as there are objects: not at every poll.
WAYS = {"home": {}, "stress": {"OBASE_HANDLES_STRESS": "2000"}, "stress, rarer": {"OBASE_HANDLES_STRESS": "100000"}}


def compilers(options):
    return {"plain": [options.clang], "handles": [options.bin / "obase-clang", "--handles"]}


def compare(name, commands, filtered=lambda text: text):
    """Runs {way: (command, environment)}; ends the script if one prints something else than the first."""
    wanted = None
    for way, (command, environment) in commands.items():
        said = filtered(program.run(command, environment=environment).stdout)
        if wanted is None:
            wanted = said
        if said != wanted:
            sys.exit(f"{name}, {way}: printed\n{said[-2000:]}\nand not\n{wanted[-2000:]}")
        print(f"{name}, {way}: as clang's")


def instructions(command):
    valgrind = shutil.which("valgrind")
    if valgrind is None:
        return None
    said = program.run([valgrind, "--tool=callgrind", "--callgrind-out-file=/dev/null", *command]).stdout
    return int(re.search(r"Collected : (\d+)", said)[1])


def measure(name, plain, handles, counted_plain, counted_handles, pairs=9):
    """Time of interleaved pairs (median of ratios), and instructions of a smaller run."""
    ratios = []
    for _ in range(pairs):
        spent = []
        for command in (plain, handles):
            program.run(command)  # the file is warm
            begin = os.times()
            program.run(command)
            end = os.times()
            spent.append(end.children_user - begin.children_user)
        ratios.append(spent[1] / spent[0])
    ratios.sort()
    one, other = instructions(counted_plain), instructions(counted_handles)
    counted = "no valgrind here" if one is None else f"{other / one:.3f}"
    print(f"{name}: processor time {ratios[len(ratios) // 2]:.3f} ({ratios[0]:.3f} to {ratios[-1]:.3f}), instructions {counted}")
