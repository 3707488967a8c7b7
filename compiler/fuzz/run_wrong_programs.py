#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Random programs in which addresses go where they may not (make_wrong_program.py): refused, or as plain, or
found by the audit.

    run_wrong_programs.py --seeds FIRST:COUNT ...

Each at a level that its seed decides, with the collector forced, without and with OBASE_DEBUG_REARM=1, and
under audit. A program of the kind "harmless" is right: it must not be refused, and nothing may be found. Of the
others one that prints anything but the plain program's output must have an error in the audit's report. A seed
that fails is printed; its source stays in --out.
"""

import argparse
import concurrent.futures
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.dont_write_bytecode = True
sys.path.insert(0, str(HERE.parent / "torture"))
import run_torture  # noqa: E402


class random_program:
    """What run_torture.workplace wants to know of a program."""

    def __init__(self, source, kind):
        self.source, self.kind, self.name = source, kind, source.stem
        self.units, self.plain_units, self.marks, self.moves = [source], [], None, kind != "owners"


def judge(kind, outcome):
    """What is wrong with an outcome, or nothing."""
    if kind == "harmless":
        return outcome != "right"
    return outcome not in ["right", "refused", "found"]


def main():
    parser = argparse.ArgumentParser(description="Runs random programs that are mostly wrong.")
    for name in ["cc", "cxx", "plugin", "front-end", "runtime", "seeds"]:
        parser.add_argument(f"--{name}", required=True)
    for name in ["include", "memory", "out"]:
        parser.add_argument(f"--{name}", required=True, type=pathlib.Path)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    first, _, count = options.seeds.partition(":")
    if not first.isdigit() or not count.isdigit():
        parser.error(f"--seeds: '{options.seeds}' is not FIRST:COUNT")
    at = run_torture.workplace(options)
    at.include.append(f"-I{HERE.parent.parent}")
    failed, counts = [], {}

    def outcome_of(seed):
        source = options.out / f"wrong_{seed}.cpp"
        text = subprocess.run([HERE / "make_wrong_program.py", str(seed)], capture_output=True, text=True,
                              check=True).stdout
        source.write_text(text, encoding="utf-8")
        kind = text.split()[1]
        one, level = random_program(source, kind), f"-O{seed % 4}"
        outcome, said = at.outcome(one, level)
        if outcome == "wrong" and kind != "harmless":
            found, heard = at.outcome_under_audit(at.path_of(one, [level], obase=True), run_torture.ERRORS)
            outcome, said = (found, "") if found == "found" else (outcome, f"{said}; audit: {heard}")
        return kind, source, outcome, said

    seeds = range(int(first), int(first) + int(count))
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for seed, (kind, source, outcome, said) in zip(seeds, pool.map(outcome_of, seeds)):
            counts[kind, outcome] = counts.get((kind, outcome), 0) + 1
            if judge(kind, outcome):
                failed.append(seed)
                print(f"seed {seed}, -O{seed % 4}, {kind}: {outcome} {said}", flush=True)
            else:
                source.unlink()
    for (kind, outcome), number in sorted(counts.items()):
        print(f"{kind}, {outcome}: {number}")
    print(f"{count} programs, {len(failed)} not as expected: {failed}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
