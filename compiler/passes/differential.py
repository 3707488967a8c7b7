# SPDX-License-Identifier: MIT
"""Programs that are made twice of one source, plain and with obase, and must print the same.

With obase: compiled with the plugins (--plugin), or rewritten by obase-rewrite and compiled without
(--rewriter). That program runs while the collector is forced (samples/forcing.hpp), and objects must
have moved.
"""

import argparse
import os
import pathlib
import re
import subprocess
import sys

# Only forced windows, a freed object is seen to be one, and the emptied runs go back at once.
FORCED = {"OBASE_WINDOW_SECONDS": "1000000", "OBASE_POISON_FREED": "1"}
LIMIT = 900  # seconds for one program or compilation, on a machine that is busy
SAMPLES = pathlib.Path(__file__).resolve().parent / "samples"
PROTOCOLS = ["arming", "atc"]


def run(command, environment=None):
    return subprocess.run(command, env={**os.environ, **(environment or {})}, timeout=LIMIT,
                          capture_output=True, text=True)


def failure_of(command):
    """Runs a compiler. Its words if it fails, otherwise nothing."""
    result = run(command)
    return "" if result.returncode == 0 else f"{' '.join(command)}\n{result.stdout}{result.stderr}"


def made(command):
    """Runs a compiler; ends the script with its words if it fails."""
    if failure := failure_of(command):
        sys.exit(failure)


def parser(description):
    """The arguments that all scripts need."""
    made_for = argparse.ArgumentParser(description=description)
    made_for.add_argument("--compiler", required=True, action="append", help="the first is clang")
    how = made_for.add_mutually_exclusive_group(required=True)
    how.add_argument("--plugin", help="of the passes")
    how.add_argument("--rewriter")
    made_for.add_argument("--front-end", help="the front end's plugin; without it the source says all")
    made_for.add_argument("--protocol", action="append", choices=PROTOCOLS,
                          help="default: arming; may be given more than once")
    made_for.add_argument("--runtime", required=True)
    for name in ["include", "out"]:
        made_for.add_argument(f"--{name}", required=True, type=pathlib.Path)
    return made_for


def language_of(source):
    return ["-std=c++20"] if source.suffix == ".cpp" else ["-x", "c", "-std=gnu11"]


def instrumented(options, protocol):
    """The arguments that make the plugins compile for a protocol."""
    arguments = [f"-fpass-plugin={options.plugin}"]
    if options.front_end:
        arguments.append(f"-fplugin={options.front_end}")
    if protocol != "arming":
        arguments += [f"-fplugin={options.plugin}", "-Xclang", "-mllvm", "-Xclang",
                      f"-obase-protocol={protocol}"]
    return arguments


class workplace:
    """Where programs are made, with what."""

    def __init__(self, options):
        self.options = options
        self.protocols = options.protocol or ["arming"]
        options.out.mkdir(parents=True, exist_ok=True)
        for name in ["plain", *self.protocols]:
            defines = [] if name == "plain" else [f"-DFORCED=obase::{name}"]
            made([options.compiler[0], "-std=c++20", "-O2", *defines, f"-I{options.include}", "-c",
                  str(SAMPLES / "forcing.cpp"), "-o", str(options.out / f"forcing.{name}.o")])

    def rewrite(self, sources):
        """All at once, for a rewriter; nothing otherwise."""
        options = self.options
        for suffix in [".cpp", ".c"]:
            of_language = [str(source) for source in sources if source.suffix == suffix]
            if not options.rewriter or not of_language:
                continue
            language = "-std=c++20" if suffix == ".cpp" else "-std=gnu11"
            for protocol in self.protocols:
                made([options.rewriter, f"--root={SAMPLES}", f"--protocol={protocol}",
                      f"--out={self.rewritten(protocol)}", *of_language, "--", language,
                      f"-I{options.include}"])

    def rewritten(self, protocol):
        """The folder."""
        return self.options.out / f"rewritten.{protocol}"

    def compile(self, compiler, source, program, flags, protocol):
        """What went wrong, or nothing. Without a protocol the program is plain."""
        options = self.options
        arguments = []
        if protocol and options.rewriter:
            source = self.rewritten(protocol) / source.name
        elif protocol:
            arguments = instrumented(options, protocol)
        # clang 19 warns of what -march=native itself says on processors with AVX10.
        places = ["-gline-tables-only", "-Wno-invalid-feature-combination"] if "clang" in compiler else ["-g1"]
        failure = failure_of([compiler, *language_of(source), *flags, *places, "-Wall", "-Wextra", "-Werror",
                              "-pthread", f"-I{options.include}", f"-I{SAMPLES}", *arguments, "-c",
                              str(source), "-o", f"{program}.o"])
        if failure:
            return failure
        runtime = [options.runtime] if protocol else []
        failure = failure_of([compiler, *flags, "-pthread", f"{program}.o",
                              str(options.out / f"forcing.{protocol or 'plain'}.o"), *runtime,
                              "-lstdc++", "-lm", "-o", str(program)])
        pathlib.Path(f"{program}.o").unlink()
        return failure

    def differs(self, source, name, flags, environment=None, compiler=None):
        """Makes and runs: yields what a run is called, what is wrong with it, how many objects moved."""
        compiler = compiler or self.options.compiler[0]
        program = self.options.out / name
        if wrong := self.compile(compiler, source, program, flags, None):
            yield "plain", wrong, 0
            return
        plain = run([str(program)], environment)
        if plain.returncode != 0 or not plain.stdout:
            yield "plain", f"exit status {plain.returncode}: {plain.stderr}", 0
            return
        for protocol in self.protocols:
            program = self.options.out / f"{name}.{protocol}"
            if wrong := self.compile(compiler, source, program, flags, protocol):
                yield protocol, wrong, 0
                continue
            # Under rearming an access that was not converted meets an armed word at once.
            for rearm in ["0", "1"] if protocol == "arming" else ["0"]:
                result = run([str(program)],
                             {**FORCED, "OBASE_DEBUG_REARM": rearm, **(environment or {})})
                yield protocol + (" rearm" if rearm == "1" else ""), *wrong_in(result, plain.stdout)


def wrong_in(result, expected):
    """What is wrong with a run, and how many objects moved."""
    if result.returncode != 0:
        return f"exit status {result.returncode}: {result.stderr[-4000:]}", 0
    if result.stdout != expected:
        return f"printed {result.stdout!r}, not {expected!r}", 0
    found = re.search(r"^objects moved: (\d+)$", result.stderr, re.MULTILINE)
    moved = int(found.group(1)) if found else 0
    return ("" if moved > 0 else "nothing moved: " + result.stderr[-2000:]), moved


def report(name, results):
    """A line for each run; true if all were right."""
    good = True
    for what, wrong, moved in results:
        good = good and not wrong
        print(f"{name} {what}: {wrong or f'as plain, {moved} objects moved'}", flush=True)
    return good
