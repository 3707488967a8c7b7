#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Small programs with marked pointers, each about one construct: right, refused, or found by the audit.

A program says in its first comment what is expected of it:

    right:          prints what plain clang makes it print, while its objects move; also under audit, which
                    finds no error
    right, still:   the same, and nothing of it can be managed, or lives long enough to move
    refused: TEXT   is not compiled, and TEXT is part of an error
    audit: KINDS: TEXT   is compiled, and wrong by the rules for marked fields in a way that only running it
                    under the audit shows: an error of one of the kinds, `stale-use or two-fields`, say
    encoded:        the same, and the audit cannot show it either: docs/compiler.md, limits

and what else it needs: `with: FILE`, another translation unit; `plain: FILE`, one that is compiled without the
plugins; `marks: FILE`, for --obase-marks. Each runs at every level that is asked for: what is right while the collector is
forced (torture.h), without and with OBASE_DEBUG_REARM=1, and under audit; what is left to the audit there alone. It is
linked as the drivers do it, with their free and realloc (--memory). What is right in one way and refused in another is a
failure.

Prints a line for each program that is not as expected, and figures at the end: what is refused of the
programs that are right is no failure as long as it is in --refused-wrongly.

What the programs of misjudged/ say of themselves is wrong. --misjudged runs these instead, and fails unless each is not as
expected: that is the test of this script.
"""

import argparse
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
FORCED = {"OBASE_WINDOW_SECONDS": "1000000", "OBASE_POISON_FREED": "1"}
AUDITED = {**FORCED, "OBASE_AUDIT": "1"}
LIMIT = 900  # seconds: what hangs ends; a machine may be very busy
KINDS = ["right", "refused", "audit", "encoded"]
ERRORS = {"stale-use", "unconverted-access", "two-fields", "freed-in-field"}  # docs/audit.md


class program:
    """A source and what it says of itself."""

    def __init__(self, source):
        self.source = source
        self.name = f"{source.parent.name}/{source.stem}{source.suffix.replace('.', '_')}"
        said = {}
        for line in source.read_text(encoding="utf-8").splitlines():
            if not line.startswith("//"):
                break
            if found := re.match(r"// ([a-z, ]+): ?(.*)$", line):
                said.setdefault(found.group(1), found.group(2))
        kind = next((k for k in said if k.split(",")[0] in KINDS), None)
        if kind is None:
            sys.exit(f"{source}: says none of {', '.join(KINDS)}")
        self.kind = kind.split(",")[0]
        self.moves = self.kind == "right" and not kind.endswith("still")
        self.message = said[kind]
        self.units = [source] + [source.parent / said[key] for key in ["with", "plain"] if key in said]
        self.plain_units = [source.parent / said["plain"]] if "plain" in said else []
        self.marks = source.parent / said["marks"] if "marks" in said else None
        self.findings = self.message.split(":")[0].split(" or ") if self.kind == "audit" else []
        if not set(self.findings) <= ERRORS:
            sys.exit(f"{source}: 'audit:' is followed by none of {', '.join(sorted(ERRORS))}")


def run(command, environment=None):
    try:
        return subprocess.run(command, env={**os.environ, **(environment or {})}, timeout=LIMIT,
                              capture_output=True, text=True, errors="replace")
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, -1, "", f"not over after {LIMIT} s")


class workplace:
    def __init__(self, options):
        self.options = options
        options.out.mkdir(parents=True, exist_ok=True)
        self.include = [f"-I{HERE}", f"-I{options.include}"]
        for name, defines in [("plain", []), ("forced", ["-DFORCED"])]:
            made = run([options.cxx, "-std=c++20", "-O1", *defines, *self.include, f"-I{HERE.parent.parent}",
                        "-c", str(HERE / "settle.cpp"), "-o", str(options.out / f"settle.{name}.o")])
            if made.returncode != 0:
                sys.exit(made.stderr)

    def path_of(self, one, flags, obase):
        return self.options.out / (one.name.replace("/", ".") + (".obase" if obase else ".plain") + "".join(flags))

    def make(self, one, flags, obase):
        """Returns the program's path, or what the compiler said."""
        options = self.options
        target = self.path_of(one, flags, obase)
        objects = []
        for number, unit in enumerate(one.units):
            cxx = unit.suffix == ".cpp"
            plugins = []
            if obase and unit not in one.plain_units:
                plugins = [f"-fplugin={options.front_end}", f"-fpass-plugin={options.plugin}",
                           "-Rpass=obase"]
                if one.marks:
                    plugins.append(f"-fplugin-arg-obase_visibility-marks={one.marks}")
            objects.append(f"{target}.{number}.o")
            made = run([options.cxx if cxx else options.cc, "-std=c++20" if cxx else "-std=gnu11", *flags,
                        "-w", "-pthread", *self.include, *plugins, "-c", str(unit), "-o", objects[-1]])
            if made.returncode != 0:
                return None, made.stderr
        settle = "forced" if obase else "plain"
        library = [str(options.memory), str(options.runtime)] if obase else []
        made = run([options.cxx, *flags, "-pthread", *objects, str(options.out / f"settle.{settle}.o"),
                    *library, "-lm", "-o", str(target)])
        for path in objects:
            pathlib.Path(path).unlink()
        if made.returncode != 0:
            sys.exit(f"{one.source}: {made.stderr}")
        return target, ""

    def outcome(self, one, level):
        """One of right, refused, accepted, wrong, and what there is to say of it."""
        flags = [level]
        target, errors = self.make(one, flags, obase=True)
        if target is None:
            if "obase" not in errors:
                return "wrong", "no refusal: " + errors
            return "refused", errors
        if one.kind == "audit":
            return self.outcome_under_audit(target, one.findings)
        if one.kind == "encoded":
            target.unlink()
            return "accepted", ""
        plain, errors = self.make(one, flags, obase=False)
        if plain is None:
            sys.exit(f"{one.source}: {errors}")
        expected = run([str(plain)])
        if expected.returncode != 0:
            sys.exit(f"{one.source}: the plain program: {expected.stderr}")
        plain.unlink()
        for rearm in ["0", "1"]:
            found = run([str(target)], {**FORCED, "OBASE_DEBUG_REARM": rearm})
            what = f"OBASE_DEBUG_REARM={rearm}: "
            if found.returncode != 0:
                return "wrong", f"{what}exit status {found.returncode}: {found.stderr[-1500:]}"
            if found.stdout != expected.stdout:
                return "wrong", f"{what}printed {found.stdout[-300:]!r}, not {expected.stdout[-300:]!r}"
            moved = re.search(r"^objects moved: (\d+)$", found.stderr, re.MULTILINE)
            if one.moves and (moved is None or moved.group(1) == "0"):
                return "wrong", f"{what}nothing moved"
        audited = run([str(target)], AUDITED)
        if audited.returncode != 0 or audited.stdout != expected.stdout:
            return "wrong", f"under audit: exit status {audited.returncode}: {audited.stderr[-3000:]}"
        if one.moves and re.search(r"; 0 objects moved", audited.stderr):
            return "wrong", "under audit nothing moved"
        target.unlink()
        return "right", "suspected" if " 0 suspected" not in audited.stderr else ""

    @staticmethod
    def outcome_under_audit(target, kinds):
        """Whether the audit names what is wrong, by one of the kinds of findings."""
        found = run([str(target)], AUDITED)
        told = set(re.findall(r"^obase audit: error: ([\w-]+):", found.stderr, re.MULTILINE))
        if not told & set(kinds) or found.returncode == 0:
            return "silent", (f"exit status {found.returncode}, not one of {' '.join(sorted(kinds))}: "
                              f"{found.stderr[-1500:]}")
        target.unlink()
        return "found", ""


def judge(one, outcome, said):
    """What is not as expected, or nothing."""
    first = next((line for line in said.splitlines() if "obase" in line and "error" in line), said)
    if one.kind == "right":
        return "" if outcome == "right" else f"{outcome}: {first}"
    if one.kind == "refused":
        if outcome != "refused":
            return f"expected to be refused, but {outcome} {said}"
        return "" if one.message in said else f"refused, but not with '{one.message}': {said}"
    if outcome == "refused":
        return f"refused, say so: {first}"
    return f"not found by the audit: {said}" if outcome == "silent" else ""


def main():
    parser = argparse.ArgumentParser(description="Runs the programs of compiler/torture.")
    for name in ["cc", "cxx", "plugin", "front-end", "runtime"]:
        parser.add_argument(f"--{name}", required=True)
    for name in ["include", "out"]:
        parser.add_argument(f"--{name}", required=True, type=pathlib.Path)
    parser.add_argument("--memory", required=True, type=pathlib.Path,
                        help="obase_memory.o, which the drivers link into each program")
    parser.add_argument("--level", action="append", required=True, metavar="-ON")
    parser.add_argument("--every", type=int, default=1, metavar="N",
                        help="only each Nth program of those that are not found by the audit, and of those")
    parser.add_argument("--refused-wrongly", type=pathlib.Path, default=HERE / "refused_wrongly",
                        help="names of programs that are right, and known to be refused")
    parser.add_argument("--misjudged", action="store_true", help="test this script")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("programs", nargs="*", help="parts of names; without, all")
    options = parser.parse_args()
    folder = HERE / "misjudged" if options.misjudged else HERE
    sources = sorted(path for path in folder.glob("*/*") if path.suffix in [".c", ".cpp"])
    everything = [program(source) for source in sources]
    chosen = [one for one in everything
              if not options.programs or any(part in one.name for part in options.programs)]
    if not chosen:
        parser.error(f"no program has a name with {options.programs} in it")
    chosen = [one for found in [False, True]
              for one in [one for one in chosen if (one.kind == "audit") == found][::options.every]]
    known = set(options.refused_wrongly.read_text(encoding="utf-8").split()) \
        if options.refused_wrongly.exists() else set()
    at = workplace(options)
    failed = 0
    counts = {}
    refused_wrongly, suspected = set(), set()
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        jobs = [(one, level, pool.submit(at.outcome, one, level))
                for one in chosen for level in options.level]
        for one, level, job in jobs:
            outcome, said = job.result()
            wrong = judge(one, outcome, said)
            counts[one.kind, outcome] = counts.get((one.kind, outcome), 0) + 1
            if one.kind == "right" and outcome == "refused":
                refused_wrongly.add(one.name)
                if one.name in known:
                    continue
            if outcome == "right" and said:
                suspected.add(one.name)
            if wrong:
                failed += 1
                print(f"{one.name} {level}: {wrong}", flush=True)
            elif options.misjudged:
                print(f"{one.name} {level}: NOT NOTICED", flush=True)
    rights = sum(one.kind == "right" for one in chosen)
    for name in sorted(known & {one.name for one in chosen} - refused_wrongly):
        failed += 1
        print(f"{name}: no longer refused, take it out of {options.refused_wrongly}")
    for (kind, outcome), count in sorted(counts.items()):
        print(f"{kind}, {outcome}: {count}")
    if suspected:
        print(f"right, and the audit suspects something: {' '.join(sorted(suspected))}")
    share = 100 * len(refused_wrongly) / rights if rights else 0
    print(f"{len(chosen)} programs at {' '.join(options.level)}, {failed} not as expected; of {rights} that are "
          f"right {len(refused_wrongly)} refused ({share:.1f} %): {' '.join(sorted(refused_wrongly))}")
    if options.misjudged:
        return 0 if failed == len(jobs) else 1
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
