#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The table of docs/protocol.md: for each rule and obligation the code that names it, the mutants that
break it, and the tests that must notice them.

Made from what is there anyway: comments of the code that name a rule (R10, O3, I2), and the fields
`rule` and `tests` of the mutant tables. So nothing is said twice, and a rule that no code names or no
mutant breaks shows as a gap.

usage: scripts/rules_table.py [--write | --check] [--root DIRECTORY]
       prints the table; --write puts it between the two marks in docs/protocol.md; --check exits with 1
       if what stands there is another one, or if a rule in use has no code or no mutant
"""

import argparse
import collections
import pathlib
import re
import sys
import tomllib

BEGIN, END = "<!-- rules: scripts/rules_table.py --write -->", "<!-- end of rules -->"
NAMES = [f"R{i}" for i in range(1, 18)] + [f"O{i}" for i in range(1, 8)] + [f"I{i}" for i in range(1, 4)]
UNUSED = {"R4"}
# Kept by there being one collector thread, and at compile time (src/runtime/refused_types.cpp).
WITHOUT_MUTANT = {"R13", "R15"}
NAMED = re.compile(r"\b([ROI]\d{1,2})\b")
TEST = re.compile(r"_(test|fuzz|bench)\.(cpp|hpp|c)$")


def code_places(root):
    places = collections.defaultdict(set)
    for folder in ("include", "src"):
        for path in (root / folder).rglob("*"):
            if path.suffix not in {".hpp", ".cpp", ".h", ".c"} or TEST.search(path.name):
                continue
            for line in path.read_text(encoding="utf-8").splitlines():
                comment = re.search(r"//.*|/?\*.*", line)
                for name in NAMED.findall(comment.group()) if comment else ():
                    places[name].add(path.name)
    return places


def mutants(root):
    broken, notice = collections.defaultdict(list), collections.defaultdict(set)
    for table in sorted((root / "src").rglob("*mutants.toml")):
        for row in tomllib.loads(table.read_text(encoding="utf-8"))["mutant"]:
            for name in set(NAMED.findall(row["rule"])):
                broken[name].append(row["name"])
                notice[name].update(row["tests"])
    return broken, notice


def make(root):
    places, (broken, notice) = code_places(root), mutants(root)
    gaps = []
    lines = ["| | code | mutants | tests |", "|---|---|---|---|"]
    for name in NAMES:
        if name in UNUSED:
            lines.append(f"| {name} | not used | | |")
            continue
        if not places[name]:
            gaps.append(f"{name}: no code names it")
        if not broken[name] and name not in WITHOUT_MUTANT:
            gaps.append(f"{name}: no mutant breaks it")
        cells = [sorted(places[name]), sorted(broken[name]), sorted(notice[name])]
        lines.append(f"| {name} | " + " | ".join(", ".join(f"`{x}`" for x in c) for c in cells) + " |")
    return "\n".join(lines), gaps


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=pathlib.Path,
                        default=pathlib.Path(__file__).resolve().parent.parent)
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--write", action="store_true")
    group.add_argument("--check", action="store_true")
    options = parser.parse_args()
    table, gaps = make(options.root)
    page = options.root / "docs" / "protocol.md"
    text = page.read_text(encoding="utf-8")
    if BEGIN not in text or END not in text:
        print(f"{page}: no marks for the table")
        return 1
    head, rest = text.split(BEGIN, 1)
    tail = rest.split(END, 1)[1]
    made = f"{head}{BEGIN}\n{table}\n{END}{tail}"
    if options.write:
        page.write_text(made, encoding="utf-8")
    elif options.check:
        if made != text:
            gaps.append("docs/protocol.md: the table is out of date: scripts/rules_table.py --write")
    else:
        print(table)
        return 0
    for gap in gaps:
        print(gap)
    return 1 if gaps else 0


if __name__ == "__main__":
    sys.exit(main())
