# SPDX-License-Identifier: MIT
"""sqlite's speedtest1 in a process with 64 GiB of other objects, a tenth of whose runs is open. Only --describe, for
`obase bench handles --program sqlite64`."""

import handled
import sqlite

GIB = 64


def main():
    options = handled.arguments(__doc__)
    folder = sqlite.amalgamation(options)
    handled.describe_each(options, [
        {"name": "sqlite64", "units": [(source, sqlite.flags(folder)) for source in sqlite.sources(folder)], "link": sqlite.LINK,
         "time": ["--size", 40, ":memory:"], "count": None, "checks": [["--size", 5, "--verify", ":memory:"]], "answer": "Verification Hash:"}],
        environment=[f"HANDLES_BENCH_SPACE_GIB={GIB}"], figures_of_both=True)


if __name__ == "__main__":
    main()
