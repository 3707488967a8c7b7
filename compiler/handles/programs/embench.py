# SPDX-License-Identifier: MIT
"""Embench 2 (https://github.com/embench/embench-iot), the folder that EMBENCH names: its programs for small devices, of which
each checks its own answer. Only --describe, for `obase bench handles --program embench`."""

import handled

# Each does its work this many times.
TIMES = 600


def main():
    options = handled.arguments(__doc__)
    folder = handled.given_folder("EMBENCH", "support/main.c")
    board = folder / "examples" / "native" / "speed"
    flags = ["-O3", "-w", f"-DGLOBAL_SCALE_FACTOR={TIMES}", "-DWARMUP_HEAT=1", "-I", folder / "support", "-I", board]
    common = [folder / "support" / "main.c", folder / "support" / "beebsc.c", board / "boardsupport.c"]
    handled.describe_each(options, [
        {"name": f"embench-{source.name}", "link": ["-lm"], "time": [], "count": [], "checks": [], "answer": "",
         "units": [(unit, [*flags, "-I", source]) for unit in [*common, *sorted(source.glob("*.c"))]]}
        for source in sorted((folder / "src").iterdir()) if source.is_dir()])


if __name__ == "__main__":
    main()
