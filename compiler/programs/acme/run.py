# SPDX-License-Identifier: MIT
"""acme of Debian 12, an assembler, with the marks of the file beside and some edited lines (its trees are in a struct, since
a marked variable is one file's): its own tests and examples, plain, forced and under audit; or, with --measure, instructions,
and memory of a source with many symbols of which few are used.
"""

import os
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import program  # noqa: E402

ARCHIVE = "pool/main/a/acme/acme_0.97~svn20211115+ds.orig.tar.xz"
SHA256 = "51daafabec834428da6771d847df1f159f68467e7c2496340dd3a06b238e1635"
SYMBOLS = 500_000


def name(symbol):
    # Neither in the order of the alphabet nor in that of the trees.
    return f"register_{symbol * 2654435761 % 4294967296:010}_of_the_graphics_chip"


def source(symbols, used, times):
    """Defines symbols, then names those with the numbers in `used` in turn, and says so each time."""
    lines = [f"{name(symbol)} = {symbol}" for symbol in range(symbols)]
    return "\n".join([*lines, "*=0", f"!for i, 1, {times} {{", '!warn "once more"',
                      *(f"!set x = {name(symbol)}\n!if x != {symbol} {{ !serious \"wrong\" }}" for symbol in used),
                      "}", ""])


def build(folder, compiler, link):
    sources = sorted(at for at in (folder / "src").glob("*.c") if not at.name.startswith("_"))
    program.run([*compiler.split(), "-O2", "-g", "-w", *sources, *link, "-lm", "-o", folder / "assembler"])


def runs(folder, at, environment, *arguments):
    """What the assembler says of a source, without the number of what has moved, and its status."""
    done = subprocess.run([folder / "assembler", "-v0", *arguments], cwd=at, text=True, errors="replace", timeout=1800,
                          env={**os.environ, **environment}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return done.returncode, re.sub(r"objects moved: \d+\n", "", done.stdout)


def tests(folder, environment):
    """How many sources give what is beside them, or end as they should; and one of many symbols."""
    (folder / "many.a").write_text(source(5000, range(5000), 4))
    passed = 0
    wanted = [("testing", ["math1.a"], 0, None), ("testing", ["numberflags.a"], 0, None),
              (".", ["-o", "many.o", "many.a"], 0, None)]
    wanted += [("testing/cpus", [f"test-{at.stem[9:]}.a"], 0, (f"out-{at.stem[9:]}.o", at.name))
               for at in (folder / "testing/cpus").glob("expected-*.o")]
    wanted += [("testing/errors", [at.name], 1, None) for at in (folder / "testing/errors").glob("*.a")]
    wanted += [("testing/warnings", [at.name], 0, None) for at in (folder / "testing/warnings").glob("*.a")]
    wanted += [("examples", ["--format", "cbm", "-o", f"{out}.out", *more, f"{at}.a"], 0, (f"{out}.out", f"{out}.exp"))
               for at, out, more in [("c64doubledabble", "c64doubledabble", []), ("c64misc", "c64misc", []),
                                     ("ddrv", "ddrv128", ["-DSYSTEM=128"]), ("ddrv", "ddrv64", ["-DSYSTEM=64"]),
                                     ("macedit", "macedit", [])]]
    for at, arguments, status, files in wanted:
        found, said = runs(folder, folder / at, {**environment, "ACME": str(folder / "ACME_Lib")}, *arguments)
        made, right = [(folder / at / file).read_bytes() for file in files] if files and found == 0 else (b"", b"")
        if found != status or made != right:
            print(f"acme {' '.join(arguments)}: status {found}, made {len(made)} bytes: {said[-2000:]}")
            return 0
        passed += 1
    return passed


def instructions(folder):
    (folder / "none.a").write_text(source(20000, [], 1))
    (folder / "each.a").write_text(source(20000, range(20000), 1))
    return [("a source that names each of 20,000 symbols", [folder / "assembler", "-v0", folder / "each.a"], 1)]


def workload(folder, seconds):
    (folder / "hot.a").write_text(source(SYMBOLS, range(0, SYMBOLS, 10), 10**9))
    return [sys.executable, HERE.parent / "watched.py", str(seconds), folder / "assembler", "-v0", folder / "hot.a"]


def main():
    options = program.arguments(__doc__)
    program.tested_program(options, "acme 0.97", HERE, ARCHIVE, SHA256, build, tests, instructions, workload, 120, 4).main()


if __name__ == "__main__":
    main()
