# SPDX-License-Identifier: MIT
"""Compiles the samples with `obase-clang --handles` and runs them at home and in stress mode, beside clang's own.

A sample says in its lines what it prints (`//> TEXT`, in order), and at its beginning with what it is compiled
(`// flags: ...`; `// driver: ...`, by obase-clang alone) and linked (`// unit: FILE`, instrumented; `// foreign: FILE`, by clang alone; `// library: FILE`, an
instrumented shared object), and what some of its functions call
(`// calls: NAME always FUNCTION...`, how the name begins; `optimized` instead of `always`: not at -O0). What is refused says so (`// refused: TEXT`).
"""

import argparse
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
WAYS = {"home": {}, "stress": {"OBASE_HANDLES_STRESS": "1"}, "stress5": {"OBASE_HANDLES_STRESS": "5"}}


def said(text, what):
    return [word for line in re.findall(rf"^// {what}: (.*)$", text, re.M) for word in line.split()]


def expected(text):
    return [line.rstrip() for line in re.findall(r"//> ?(.*)$", text, re.M)]


def run(command, environment=None):
    # A program that hangs is told to end, and fails with that.
    return subprocess.run(["timeout", "300", *(str(part) for part in command)], text=True, errors="replace",
                          env={**os.environ, **(environment or {})}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)


def refused(options, source):
    text = source.read_text()
    wanted = re.search(r"^// refused: (.*)$", text, re.M)[1]
    command = [options.driver, "--handles", "-I", options.include, *said(text, "flags"), source, "-o", options.out / source.stem]
    done = run(command)
    if done.returncode == 0 or wanted not in done.stdout:
        return [f"{source.name}: expected to be refused with '{wanted}', exit status {done.returncode}\n{done.stdout}"]
    told = [line for line in done.stdout.splitlines() if "error:" in line]
    if len(told) != len(set(told)):
        return [f"{source.name}: told more than once\n{done.stdout}"]
    return []


def sample(options, source, variant):
    text = source.read_text()
    cxx = source.suffix == ".cpp"
    flags = variant.split(",") + said(text, "flags")
    name = f"{source.stem}{variant}".replace(",", "").replace("/", "_")
    language = ["-std=c++20"] if cxx else ["-std=gnu17"]
    driver = f"{options.driver}++" if cxx else options.driver
    foreign, plain_units = [], []
    for part in said(text, "foreign"):
        foreign.append(options.out / f"{name}.{part}.o")
        built = run([options.clang, "-O1", "-c", source.parent / part, "-o", foreign[-1]])
        if built.returncode != 0:
            return [built.stdout]
    units = [source] + [source.parent / part for part in said(text, "unit")]
    libraries = {"plain": [], "handles": []}
    for part in said(text, "library"):
        for way, compiler in (("plain", [options.clang]), ("handles", [options.driver, "--handles"])):
            library = options.out / f"lib{name}.{part}.{way}.so"
            built = run([*compiler, *flags, "-fPIC", "-shared", source.parent / part, "-o", library])
            if built.returncode != 0:
                return [built.stdout]
            libraries[way] += [library, f"-Wl,-rpath,{options.out.resolve()}"]
    plain, ours = options.out / f"{name}.plain", options.out / f"{name}.handles"
    for command in ([f"{options.clang}", *(["--driver-mode=g++"] if cxx else []), *language, *flags, *units, *foreign, *libraries["plain"], "-o", plain],
                    [driver, "--handles", *said(text, "driver"), *language, *flags, *units, *foreign, *libraries["handles"], "-o", ours]):
        built = run(command)
        if built.returncode != 0:
            return [f"{name}: {' '.join(str(part) for part in command)}\n{built.stdout}"]
    wrong = []
    if (calls := said(text, "calls")) and "-flto" not in flags and ("always" in calls or "-O0" not in flags):
        unit = options.out / f"{name}.o"
        run([driver, "--handles", *language, *flags, "-c", source, "-o", unit])
        code = run(["objdump", "-dr", unit]).stdout.split("\n\n")
        for function in calls[2:]:
            if not any(re.search(rf"^[0-9a-f]+ <\S*{function}>:", part, re.M) and calls[0] in part for part in code):
                wrong.append(f"{name}: {function} has no call of {calls[0]}\n")
    for way, program, environment in [("plain", plain, {})] + [(way, ours, WAYS[way]) for way in options.ways]:
        done = run([program], environment)
        if done.returncode != 0 or done.stdout.rstrip("\n").split("\n") != expected(text):
            wrong.append(f"{name}, {way}: exit status {done.returncode}, printed\n{done.stdout[-3000:]}\nand not\n" + "\n".join(expected(text)))
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clang", required=True)
    parser.add_argument("--driver", required=True, help="obase-clang")
    parser.add_argument("--include", required=True)
    parser.add_argument("--out", required=True, type=pathlib.Path)
    parser.add_argument("--variant", action="append", default=[], help="flags, with commas between")
    parser.add_argument("--ways", default="home,stress,stress5")
    parser.add_argument("--refused", action="store_true", help="what must be refused, too")
    parser.add_argument("samples", nargs="*", help="all, if none is named")
    options = parser.parse_args()
    options.ways = options.ways.split(",")
    options.out.mkdir(parents=True, exist_ok=True)
    all_samples = sorted([*HERE.glob("samples/*.c"), *HERE.glob("samples/*.cpp")])
    chosen = [s for s in all_samples if not s.stem.endswith("_part") and (not options.samples or s.stem in options.samples)]
    jobs = [(sample, (options, source, variant)) for source in chosen for variant in options.variant or ["-O2"]]
    if options.refused:
        jobs += [(refused, (options, source)) for source in sorted(HERE.glob("refused/*.c"))]
    if not jobs:
        sys.exit("no sample has such a name")
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        wrong = [line for lines in pool.map(lambda job: job[0](*job[1]), jobs) for line in lines]
    print(f"{len(jobs)} programs, {len(wrong)} wrong")
    sys.exit("\n".join(wrong) if wrong else 0)


if __name__ == "__main__":
    main()
