#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Random programs with marked pointers (make_program.py), compiled by plain clang and with the plugins.

    run_programs.py --seeds FIRST:COUNT ...

Each at a level, and with other flags, that its seed decides, the forced one also with
OBASE_DEBUG_REARM=1. A seed that fails is printed with its flags; --seeds SEED:1 does it again, and its
source stays in --out.
"""

import pathlib
import random
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.dont_write_bytecode = True
sys.path.insert(0, str(HERE.parent / "passes"))
import differential  # noqa: E402


def flags_of(seed):
    pick = random.Random(-seed - 1)
    flags = [pick.choice(["-O0", "-O1", "-O2", "-O3", "-Os"])]
    if pick.random() < 0.3:
        flags.append("-march=native")
    if pick.random() < 0.2:
        flags.append("-fno-exceptions")
    if pick.random() < 0.1:
        flags.append("-fno-inline")
    return flags


def main():
    parser = differential.parser("Runs random programs.")
    parser.add_argument("--seeds", required=True, metavar="FIRST:COUNT")
    options = parser.parse_args()
    first, _, count = options.seeds.partition(":")
    if not first.isdigit() or not count.isdigit():
        parser.error(f"--seeds: '{options.seeds}' is not FIRST:COUNT")
    at = differential.workplace(options)
    failed = []
    for seed in range(int(first), int(first) + int(count)):
        source = options.out / f"seed_{seed}.cpp"
        with open(source, "w", encoding="utf-8") as out:
            subprocess.run([HERE / "make_program.py", str(seed)], stdout=out, check=True)
        flags = flags_of(seed)
        if differential.report(f"seed {seed} {' '.join(flags)}", at.differs(source, f"seed_{seed}", flags)):
            for path in [source, options.out / f"seed_{seed}", options.out / f"seed_{seed}.arming"]:
                path.unlink()
        else:
            failed.append(seed)
    print(f"{int(count)} programs, {len(failed)} wrong: {failed}" if failed else f"{int(count)} programs, all right")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
