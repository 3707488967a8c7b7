# SPDX-License-Identifier: MIT
"""The NAS parallel benchmarks 3.0 in C with OpenMP (https://github.com/benchmark-subsetting/NPB3.0-omp-C), the folder that NPB
names: class W; each verifies its answer. Only --describe, for `obase bench handles --program npb`."""

import shutil

import handled
from handled import program

PROGRAMS = ["bt", "cg", "ep", "ft", "is", "lu", "mg", "sp"]
COMMON = ["c_print_results", "c_randdp", "c_timers", "wtime"]
# The C of 1991: functions without a type, main among them.
FLAGS = ["-O3", "-w", "-std=gnu89", "-fopenmp", "-mcmodel=medium"]


def main():
    options = handled.arguments(__doc__)
    folder = options.out / "source"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(handled.given_folder("NPB", "sys/setparams.c"), folder, ignore=shutil.ignore_patterns(".git"))
    setparams = folder / "sys" / "setparams"
    program.run([options.clang, "-w", "-std=gnu89", folder / "sys" / "setparams.c", "-lm", "-o", setparams])
    shutil.copy(folder / "config" / "make.def.template", folder / "config" / "make.def")
    described = []
    for name in PROGRAMS:
        source = folder / name.upper()
        program.run([setparams, name, "W"], where=source)
        # is has a generator of its own.
        units = [source / f"{name}.c", *(folder / "common" / f"{unit}.c" for unit in COMMON if (name, unit) != ("is", "c_randdp"))]
        described.append({"name": f"npb-{name}", "link": ["-fopenmp", "-lm"], "time": [], "count": None, "checks": [],
                          "answer": " Verification",
                          "units": [(unit, [*FLAGS, "-I", source, "-I", folder / "common"]) for unit in units]})
    handled.describe_each(options, described, environment=handled.ONE_THREAD)


if __name__ == "__main__":
    main()
