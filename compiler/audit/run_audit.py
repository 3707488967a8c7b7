#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Programs under OBASE_AUDIT=1: what must be reported, and what must not.

Each of programs/ says in its first comment what is expected:

    PLAIN: FILE       a unit that is compiled by clang alone
    SHARED: FILE      a shared library that is
    LINK: TEXT        what the linking driver says
    STATUS: NUMBER    the exit status
    EXPECT: TEXT      in what the audit writes; {folder} is that of the program, {any} anything
    FORBID: TEXT      not in it
    MOVED: NUMBER     so many objects have moved at least
    STRICT: NUMBER    the exit status with OBASE_AUDIT_STRICT=1
    KNOWN: LINE       with this line in the file of what is known, and strict, the status is 0

A program that is expected to end well prints under audit what it prints as a plain program. With --samples the samples of
the passes run, too, none of which may have a finding. With --command `obase-audit` is run on two of the programs.
"""

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
SAMPLES = HERE.parent / "passes" / "samples"
LIMIT = 300


def run(command, environment=None):
    return subprocess.run([str(word) for word in command], env={**os.environ, **(environment or {})},
                          capture_output=True, text=True, timeout=LIMIT)


def expectations(source):
    """{key: [texts]} of the comment at the top."""
    found = {}
    for key, text in re.findall(r"^(?:/?/?\s*\*|//) ([A-Z]+): (.*?)\s*$", source.read_text(), re.MULTILINE):
        found.setdefault(key, []).append(text)
    return found


def matches(expected, text):
    pattern = re.escape(expected).replace(re.escape("{folder}/"), r"(\S*/)?").replace(re.escape("{any}"), r"\S+")
    return re.search(pattern, text)


class maker:
    def __init__(self, options):
        self.options = options
        options.out.mkdir(parents=True, exist_ok=True)

    def driver(self, source):
        name = "obase-clang++" if source.suffix == ".cpp" else "obase-clang"
        standard = ["-std=c++20"] if source.suffix == ".cpp" else ["-std=gnu11"]
        return [self.options.drivers / name, *(["--obase-static"] if self.options.link == "static" else []), *standard,
                self.options.level, "-pthread"]

    def program(self, source, plain=(), more=(), shared=()):
        """The program, and what the driver said when it linked."""
        objects = []
        for unit in [*plain, *shared]:
            way = ["-shared", "-fPIC"] if unit in shared else ["-c"]
            target = self.options.out / (pathlib.Path(unit).stem + (".so" if unit in shared else ".o"))
            done = run([self.options.clang, "-std=gnu11", "-O1", "-gline-tables-only", "-I", self.options.include,
                        *way, HERE / "programs" / unit, "-o", target])
            if done.returncode != 0:
                sys.exit(done.stderr)
            objects.append(target)
        program = self.options.out / source.stem
        done = run([*self.driver(source), source, *objects, *more, "-o", program])
        if done.returncode != 0:
            sys.exit(done.stderr)
        return program, done.stderr

    def plain_program(self, source, more=()):
        program = self.options.out / f"{source.stem}.plain"
        # The driver's mode, since clang++ need not lie beside clang under a name like its own.
        mode = ["--driver-mode=g++"] if source.suffix == ".cpp" else []
        done = run([self.options.clang, *mode, "-std=c++20" if source.suffix == ".cpp" else "-std=gnu11", "-O1", "-pthread",
                    "-I", self.options.include, source, *more, "-o", program])
        if done.returncode != 0:
            sys.exit(done.stderr)
        return program


def wrong_in(maker, source):
    wanted = expectations(source)
    plain = wanted.get("PLAIN", [])
    shared = wanted.get("SHARED", [])
    program, said = maker.program(source, plain, shared=shared)
    for text in wanted.get("LINK", []):
        if text not in said:
            yield f"the driver did not say '{text}', but: {said}"
    if "LINK" not in wanted and "warning" in said:
        yield f"the driver said: {said}"
    done = run([program], {"OBASE_AUDIT": "1"})
    if done.returncode != int(wanted["STATUS"][0]):
        yield f"exit status {done.returncode}, expected {wanted['STATUS'][0]}"
    for text in wanted.get("EXPECT", []):
        if not matches(text, done.stderr):
            yield f"not said: {text}"
    for text in wanted.get("FORBID", []):
        if matches(text, done.stderr):
            yield f"said: {text}"
    for count in wanted.get("MOVED", []):
        # Of the process that has moved the most.
        moved = [int(number) for number in re.findall(r"(\d+) objects moved", done.stderr)]
        if not moved or max(moved) < int(count):
            yield f"fewer than {count} objects moved"
    if wanted["STATUS"] == ["0"] and not plain and not shared:
        expected = run([maker.plain_program(source)]).stdout
        if done.stdout != expected:
            yield f"printed {done.stdout!r}, not {expected!r}"
    # Without the audit nothing of it shows.
    if wanted["STATUS"] == ["0"] and (quiet := run([program])).stderr:
        yield f"without audit: {quiet.stderr}"
    strict = {"OBASE_AUDIT": "1", "OBASE_AUDIT_STRICT": "1"}
    for status in wanted.get("STRICT", []):
        if (found := run([program], strict).returncode) != int(status):
            yield f"strict: exit status {found}, expected {status}"
    for line in wanted.get("KNOWN", []):
        known = maker.options.out / f"{source.stem}.known"
        known.write_text("# fine\n" + line + "\n")
        found = run([program], {**strict, "OBASE_AUDIT_KNOWN": str(known)})
        if found.returncode != 0 or "1 known" not in found.stderr:
            yield f"known: exit status {found.returncode}: {found.stderr}"


def wrong_in_sample(maker, source):
    forcing = maker.options.out / "forcing.o"
    done = run([f"{maker.options.clang}", "-x", "c++", "-std=c++20", "-O1", "-I", maker.options.include, "-c",
                SAMPLES / "forcing.cpp", "-o", forcing])
    if done.returncode != 0:
        sys.exit(done.stderr)
    program, said = maker.program(source, more=[forcing])
    if said:
        yield f"the driver said: {said}"
    expected = run([program], {"OBASE_TEST_PAUSE": "1000"}).stdout
    done = run([program], {"OBASE_AUDIT": "1", "OBASE_TEST_PAUSE": "1000"})
    if done.returncode != 0 or done.stdout != expected:
        yield f"exit status {done.returncode}, printed {done.stdout!r}, not {expected!r}"
    if "0 errors, 0 suspected, 0 known; " not in done.stderr or "error:" in done.stderr:
        yield done.stderr
    moved = re.search(r"(\d+) objects moved", done.stderr)
    if moved is None or int(moved[1]) == 0:
        yield "nothing moved"


def wrong_in_command(maker):
    command = maker.options.command
    done = run([command, "--json", "--", maker.options.out / "head_and_tail"])
    report = json.loads(done.stdout.split("\n", 1)[1])  # behind the program's own line
    if done.returncode != 1 or report["errors"] < 1 or report["status"] != 1:
        yield f"status {done.returncode}: {done.stdout}{done.stderr}"
    found = report["findings"][0]
    if found["kind"] != "two-fields" or found["severity"] != "error" or found["bytes"] != 64 or \
            not found["operation"]["file"].endswith("head_and_tail.c") or found["operation"]["line"] < 20:
        yield f"the first finding is {found}"
    done = run([command, "--", maker.options.out / "right"])
    if done.returncode != 0 or "0 errors," not in done.stdout or "2 processes" not in done.stdout:
        yield f"status {done.returncode}: {done.stdout}{done.stderr}"
    done = run([command, "--", "true"])
    if done.returncode != 1 or "nothing was audited" not in done.stderr:
        yield f"true: status {done.returncode}: {done.stderr}"
    if (done := run([command, "--", "sh", "-c", "exit 5"])).returncode != 5:
        yield f"the command's status 5 became {done.returncode}"
    if (done := run([command, "--", "no-such-command"])).returncode != 127:
        yield f"a command that is not there: {done.returncode}"
    if (done := run([command, "--colour"])).returncode != 2:
        yield f"a wrong option: {done.returncode}"


def arguments(description):
    """The parser, with what run_corpus.py is asked, too."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--drivers", required=True, type=pathlib.Path, help="where obase-clang is")
    parser.add_argument("--clang", required=True)
    parser.add_argument("--include", required=True, type=pathlib.Path)
    parser.add_argument("--out", required=True, type=pathlib.Path)
    parser.add_argument("--level", default="-O1")
    return parser


def main():
    parser = arguments("Runs programs under audit.")
    parser.add_argument("--link", choices=["static", "shared"], default="static", help="libobase")
    parser.add_argument("--samples", action="store_true")
    parser.add_argument("--command", type=pathlib.Path, help="obase-audit")
    parser.add_argument("names", nargs="*", help="of programs; without, all")
    options = parser.parse_args()
    at = maker(options)
    good = True

    def report(name, wrong):
        nonlocal good
        wrong = list(wrong)
        good = good and not wrong
        print(f"{name}: {'; '.join(wrong) or 'as expected'}", flush=True)

    for source in sorted((HERE / "programs").iterdir()):
        wanted = options.names == [] or source.stem in options.names
        if source.suffix in [".c", ".cpp"] and not source.stem.endswith("_plain") and wanted:
            report(source.name, wrong_in(at, source))
    if options.samples:
        for source in sorted(SAMPLES.iterdir()):
            wanted = options.names == [] or source.stem in options.names
            if source.suffix in [".c", ".cpp"] and source.stem != "forcing" and wanted:
                report(source.name, wrong_in_sample(at, source))
    if options.command:
        report("obase-audit", wrong_in_command(at))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
