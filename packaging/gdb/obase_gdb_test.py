# SPDX-License-Identifier: MIT
"""Runs gdb on the program of guides.cpp and compares what the printers say with what is in there.

usage: python3 obase_gdb_test.py PROGRAM
"""

import pathlib
import re
import subprocess
import sys

PRINTERS = pathlib.Path(__file__).resolve().parent / "obase_gdb.py"
EXPECTED = {
    "null": "null",
    "plain": "plain, at ADDRESS = {object = {key = 7, value = 49}}",
    "armed": "armed, window stamp 12, at ADDRESS = {object = {key = 7, value = 49}}",
    "born": "born, at ADDRESS = {object = {key = 7, value = 49}}",
    "unreadable": "armed, window stamp 3, at 0x10 = {object = <not readable>}",
    "owner": "born, at ADDRESS = {object = {key = 7, value = 49}}",
    "pointer": "ADDRESS = {object = {key = 7, value = 49}}",
}
# Words of the ATC protocol, by the diagram in include/obase/word/atc.hpp.
ATC_WORDS = {
    0: "null",
    0x3000_0000_0000_1000: "ATC 0, CIW 0, unvisited, at 0x1000",
    0x5283_7FFF_0000_1000: "ATC 3, CIW 5, HOT, accessed, at 0x7fff00001000",
    0xAFFF_0000_0000_1000: "ATC sticky, CIW 31, COLD, locked, at 0x1000",
    0x0080_0000_0000_0000: "ATC 0, CIW 1, NEW, null",
}


def gdb(program, *commands):
    options = [option for command in commands for option in ("-ex", command)]
    # What goes wrong is in the output; the comparison reports it.
    return subprocess.run(
        ["gdb", "-nx", "-batch", "-iex", "set auto-load off", "-iex", "set debuginfod enabled off",
         *options, program],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False).stdout


def main():
    program = sys.argv[1]
    output = gdb(program, f"source {PRINTERS}", "break stop_here", "run", "up",
                 "print &object", *(f"print {name}" for name in EXPECTED),
                 *(f"python print('ATC word:', describe_atc({word})[0])" for word in ATC_WORDS))
    printed = [line.split(" = ", 1)[1] for line in output.splitlines()
               if re.match(r"\$\d+ = ", line)]
    if len(printed) != 1 + len(EXPECTED):
        print(f"gdb printed {len(printed)} values:\n{output}")
        return 1
    address = re.search(r"0x[0-9a-f]+", printed[0]).group()
    failures = 0
    for (name, expected), got in zip(EXPECTED.items(), printed[1:]):
        # References are printed with their own address first.
        got = re.sub(r"^\([^)]*&\) @0x[0-9a-f]+: ", "", got)
        expected = expected.replace("ADDRESS", address)
        if got != expected:
            print(f"{name}: expected '{expected}', got '{got}'")
            failures += 1
    described = re.findall(r"^ATC word: (.*)$", output, re.MULTILINE)
    if described != list(ATC_WORDS.values()):
        print(f"ATC words: expected {list(ATC_WORDS.values())}, got {described}")
        failures += 1
    print(f"{len(EXPECTED)} guides, {failures} printed wrongly")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
