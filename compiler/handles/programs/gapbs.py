# SPDX-License-Identifier: MIT
"""The GAP benchmark suite (https://github.com/sbeamer/gapbs), the folder that GAPBS names: C++ and OpenMP, on a Kronecker
graph that it makes; each verifies its answer. Only --describe, for `obase bench handles --program gapbs`."""

import handled

# (logarithm of the nodes, trials) of a run that is timed.
KERNELS = {"bc": (16, 16), "bfs": (17, 32), "cc": (17, 32), "cc_sv": (17, 16), "pr": (16, 32), "pr_spmv": (16, 32),
           "sssp": (16, 16), "tc": (12, 16)}
COUNTED = (10, 2) # of one whose instructions are


def arguments(scale, trials):
    return ["-g", str(scale), "-n", str(trials), "-v"]


def main():
    options = handled.arguments(__doc__)
    folder = handled.given_folder("GAPBS", "src/bfs.cc")
    flags = ["-std=c++11", "-O3", "-w", "-fopenmp"]
    handled.describe_each(options, [
        {"name": f"gapbs-{kernel}", "link": ["-fopenmp"], "time": arguments(*timed), "count": arguments(*COUNTED), "checks": [],
         "answer": "Verification: ", "units": [(folder / "src" / f"{kernel}.cc", flags)]} for kernel, timed in KERNELS.items()],
        environment=handled.ONE_THREAD)


if __name__ == "__main__":
    main()
