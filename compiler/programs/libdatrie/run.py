#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""libdatrie of Debian 12 with the marks of the file beside: its own tests while the collector is forced;
or, with --measure, page utilization and memory of a dictionary of which few keys are asked for.
"""

import os
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import program  # noqa: E402

ARCHIVE = "pool/main/libd/libdatrie/libdatrie_0.2.13.orig.tar.xz"
SHA256 = "12231bb2be2581a7f0fb9904092d24b0ed2a271a16835071ed97bed65267f4be"
KEYS, SECONDS = 50_000, 30
CHECKED_KEYS, CHECKED_SECONDS = 5_000, 5  # while the collector is forced


def built(options, name, compiler):
    """The folder of the library, built with the compiler."""
    folder = options.out / name
    program.unpack(program.source_package(options, ARCHIVE, SHA256), folder)
    program.run(["./configure", "--disable-shared", "--disable-doxygen-doc", f"CC={compiler}",
                 "CFLAGS=-O2 -g"], folder)
    program.run(["make", "-C", "datrie"], folder)
    return folder


def tests(folder, link, environment):
    """Runs the library's own tests; returns how many passed. Ends the script if one does not."""
    program.run(["make", "-C", "tests", "clean"], folder)
    done = program.run(["make", "-C", "tests", "check", f"LIBS={' '.join(link)}"], folder, environment)
    passed = re.search(r"^# PASS:\s+(\d+)$", done.stdout, re.MULTILINE)
    return int(passed.group(1)) if passed else 0


def check(options, plain, instrumented, compiler, link):
    """The tests are over in milliseconds, so the workload, which knows each key's value, runs, too."""
    expected = tests(plain, [], {})
    if expected == 0:
        sys.exit("libdatrie's own tests did not run")
    print(f"{'libdatrie':28}{'tests passed':>14}{'objects moved':>16}{'windows':>10}")
    print(f"{'plain clang':28}{expected:14}{'':>16}{'':>10}")
    for name, environment in (("forced", program.FORCED), ("forced, armed again",
                                                           program.REARMED)):
        statistics = options.out / "statistics.json"
        statistics.unlink(missing_ok=True)
        passed = tests(instrumented, link,
                       {**environment, "OBASE_TEST_STATISTICS": str(statistics)})
        workload(options, instrumented, compiler, link, "forced",
                 {**environment, "OBASE_TEST_STATISTICS": str(statistics)}, CHECKED_KEYS,
                 CHECKED_SECONDS)
        moved, windows = program.moved_in(statistics)
        print(f"{name:28}{passed:14}{moved:16}{windows:10}")
        if passed != expected or moved == 0:
            sys.exit(f"{expected} tests should pass, and objects should move")


def workload(options, folder, compiler, link, name, environment, keys, seconds):
    """Lines of the workload's output, and the history of its windows."""
    made = options.out / f"workload.{name}"
    program.run([*compiler.split(), "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-I", folder, "-I", HERE.parent,
                 HERE / "workload.c", folder / "datrie/.libs/libdatrie.a", *link, "-o", made])
    history = options.out / f"history.{name}.json"
    history.unlink(missing_ok=True)
    done = program.run([made, keys, seconds], environment={**environment,
                                                           "OBASE_TEST_HISTORY": str(history)})
    lines = [line.split() for line in done.stdout.splitlines() if re.match(r"[\d. ]+$", line)]
    windows = program.lines_of(history)
    return lines, windows[0] if windows else []


def measure(options, plain, instrumented, compiler, link):
    cold = options.out / "cold"
    cold.mkdir(exist_ok=True)
    quick = {"OBASE_WINDOW_SECONDS": "60", "OBASE_TIME_SCALE": "60"}
    runs = {
        "plain clang": (plain, options.clang, [], {}),
        "obase, observing": (instrumented, compiler, link, {**quick, "OBASE_MODE": "observe"}),
        "obase, moving": (instrumented, compiler, link,
                          {**quick, "OBASE_MODE": "hint", "OBASE_COLD_BACKING": f"file:{cold}"}),
    }
    print(f"{KEYS} keys, {SECONDS} s of look-ups, nearly all of one key in ten")
    print(f"{'':20}{'MiB at first':>14}{'MiB at the end':>16}{'of it file':>12}{'utilization':>13}"
          f"{'look-ups/s':>12}")
    measured = []
    for name, (folder, cc, objects, environment) in runs.items():
        lines, windows = workload(options, folder, cc, objects, name.split()[-1], environment,
                                  KEYS, SECONDS)
        first, last, half = lines[0], lines[-1], lines[len(lines) // 2]
        rate = (int(last[1]) - int(half[1])) / (float(last[0]) - float(half[0]))
        filled = program.utilization(windows[-2]) if len(windows) > 2 else None
        resident = [[int(line[2]), int(line[3])] for line in (first, last)]
        measured.append(program.measured(name, resident, rate, filled))
        print(f"{name:20}{(int(first[2]) + int(first[3])) / 1024:14.1f}"
              f"{(int(last[2]) + int(last[3])) / 1024:16.1f}{int(last[3]) / 1024:12.1f}"
              f"{'' if filled is None else f'{filled:.3f}':>13}{rate:12.0f}")
    program.write_measured(options, measured)


def main():
    options = program.arguments(__doc__)
    compiler = program.instrumenting(options, HERE / "marks")
    plain = built(options, "plain", options.clang)
    instrumented = built(options, "instrumented", compiler)
    link = program.forcing_object(options)
    if options.measure:
        measure(options, plain, instrumented, compiler, link)
    else:
        check(options, plain, instrumented, compiler, link)


if __name__ == "__main__":
    main()
