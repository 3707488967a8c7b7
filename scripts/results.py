#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs what the documents quote, and writes docs/results/PAGE.md.

usage: scripts/results.py [--quick] [--as-built] [--build DIRECTORY] [--out DIRECTORY] [PAGE...]
       scripts/results.py --list

Without a page: all of them. What each runs and shows is the table in obase_results/pages.py. A page has date, machine,
build, commit and load beside the commands and their tables; its JSON stays in build/results (or --out).

--quick is a smoke size that decides nothing: it needs --out, and docs/results is refused. --as-built does not build
before, and the page says so.

A page is written as a whole or not at all. SIGINT or SIGTERM ends the command that runs, and what there is of its page
is written, marked as partial.

Exit: 0 written; 1 a command failed or is missing; 2 usage; 130 interrupted.
"""

import argparse
import contextlib
import json
import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
# pylint: disable=wrong-import-position
from obase_results import provenance
from obase_results.pages import PAGES

ROOT = pathlib.Path(__file__).resolve().parent.parent
PUBLISHED = ROOT / "docs" / "results"
SKIPPED, INTERRUPTED = 77, 130


class Failure(Exception):
    """One sentence; no page is written."""


class Stop:
    """Asked for by SIGINT and SIGTERM, which are passed on to the command: it has a process group of its own."""

    def __init__(self):
        self.signal = None
        self.process = None
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._handle)

    @property
    def asked(self):
        return self.signal is not None

    def _handle(self, number, _frame):
        self.signal = number
        self._pass_on()

    def _pass_on(self):
        if self.asked and self.process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, self.signal)

    def wait_for(self, process):
        """The exit status. It looks now and then: a signal just before a blocking wait would be handled after it."""
        self.process = process
        self._pass_on()  # what came since the process began
        pause = 0.01
        while (status := process.poll()) is None:
            time.sleep(pause)
            pause = min(2 * pause, 0.5)
        self.process = None
        return status


def tail(path, lines=20):
    return "\n".join(path.read_text(encoding="utf-8", errors="replace").splitlines()[-lines:])


def shown(path):
    """Below the repository's root as it would be typed there."""
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else str(path)


def is_there(program):
    return (ROOT / program).is_file() if "/" in program else shutil.which(program) is not None


def run(words, log, stop, environment=None):
    """The exit status of a command, whose output goes to the file `log`."""
    if not is_there(words[0]):
        raise Failure(f"{words[0]} is missing: `make` builds it")
    with log.open("wb") as output:
        try:
            process = subprocess.Popen(words, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=output,
                                       stderr=subprocess.STDOUT, start_new_session=True,
                                       env={**os.environ, **(environment or {})})
        except OSError as error:
            raise Failure(f"{words[0]}: {error.strerror}") from error
        return stop.wait_for(process)


def build(directory, targets, log, stop):
    if targets and run(["cmake", "--build", directory, "--target", *targets], log, stop) != 0 and not stop.asked:
        raise Failure(f"{' '.join(targets)} could not be built\n{tail(log)}")


class Taken:
    """What a page is made of, as its commands run."""

    def __init__(self, steps):
        self.results = [[] for _ in steps]  # JSON
        self.commands = []                  # as typed, with how many runs
        self.skipped = []                   # sentences
        self.partial = False


def why_skipped(file, log):
    said = json.loads(file.read_text(encoding="utf-8")).get("skipped") if file.exists() else None
    return said or tail(log, 1).removeprefix("skipped: ")


def measure(words, typed, file, environment, stop):
    """(exit status, JSON): of an interrupted command the JSON may be None; of a skipped one it is why."""
    log = file.with_suffix(".log")
    file.unlink(missing_ok=True)
    status = run(words, log, stop, environment)
    if stop.asked and not (status == INTERRUPTED and file.exists()):
        return INTERRUPTED, None
    if status == SKIPPED:
        return SKIPPED, why_skipped(file, log)
    if status not in (0, INTERRUPTED):
        raise Failure(f"{typed}: exit status {status}\n{tail(log)}")
    try:
        result = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise Failure(f"{typed}: wrote no JSON: {error}") from error
    return (INTERRUPTED if result.get("partial") else status), result


def planned(page, quick):
    """(number of the step, step, command, which of its runs), in the order of the runs."""
    return [(at, step, command, again) for at, step in enumerate(page.steps) if not quick or step.quick is not None
            for command in step.commands for again in range(step.runs)]


def take(name, page, options, data, stop):
    """Runs the page's commands. Raises Failure."""
    taken = Taken(page.steps)
    if options.quick:
        taken.skipped = [f"{step.commands[0][0]} has no smoke size" for step in page.steps if step.quick is None]
    plan = planned(page, options.quick)
    for number, (at, step, command, again) in enumerate(plan, 1):
        file = data / (f"{name}.{number}.json" if len(plan) > 1 else f"{name}.json")
        words = [word.format(build=options.build, json=shown(file)) for word in
                 command + (step.quick if options.quick else ())]
        typed = " ".join([f"{key}={value}" for key, value in step.environment] + [shlex.join(words)])
        if again == 0:
            taken.commands.append(typed + (f"   # {step.runs} times" if step.runs > 1 else ""))
        print(f"-- {name}: {typed}", file=sys.stderr, flush=True)
        status, result = measure(words, typed, file, dict(step.environment), stop)
        if status == SKIPPED:
            taken.skipped.append(f"{typed}: {result}")
        elif result is not None:
            taken.results[at].append(result)
        if status == INTERRUPTED:
            taken.partial = True
            break
    return taken


def page_text(name, page, taken, origin, quick):
    lines = [f"# Results: {name}", "", page.about, f"Made by `make results WHAT={name}`, and not edited.", ""]
    if quick:
        lines += ["**Smoke size: these figures decide nothing.**", ""]
    if taken.partial:
        lines += ["**Partial: the run was interrupted. What is missing here was not measured.**", ""]
    lines += ["| | |", "|---|---|", *(f"| {key} | {value} |" for key, value in origin), ""]
    lines += [*(f"    {command}" for command in taken.commands), ""]
    lines += [f"Skipped: {sentence}\n" for sentence in taken.skipped]
    for step, results in zip(page.steps, taken.results):
        for table in step.tables:
            try:
                lines += table.lines(results)
            except (AttributeError, KeyError, TypeError) as error:
                raise Failure(f"{table.title}: the JSON is not what the table reads: {error!r}") from error
    return "\n".join(lines).rstrip("\n") + "\n"


def write(path, text):
    """All of the file or, on an error, nothing of it."""
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=path.parent, prefix=f".{path.name}.",
                                     delete=False) as file:
        try:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
            os.chmod(file.name, 0o644)
            os.replace(file.name, path)
        except BaseException:
            os.unlink(file.name)
            raise


def run_script(name, page, data, stop):
    """Runs commands that write the page themselves."""
    log = data / f"{name}.log"
    for words in page.script:
        print(f"-- {name}: {shlex.join(words)}", file=sys.stderr, flush=True)
        if run(words, log, stop) != 0 and not stop.asked:
            raise Failure(f"{shlex.join(words)} failed\n{tail(log)}")
        if stop.asked:
            return


def linked(index, name):
    """The text of docs/results/README.md in which the page has a link."""
    return re.sub(rf"(?<!\[)`{re.escape(name)}`(?=[, |])", f"[`{name}`]({name}.md)", index)


def make(name, page, options, stop):
    """Measures and writes the page."""
    data = options.out or ROOT / "build" / "results"
    data.mkdir(parents=True, exist_ok=True)
    if page.script:
        run_script(name, page, data, stop)
        return
    commit = provenance.commit(ROOT)  # of what is built, whatever is checked out meanwhile
    if not options.as_built:
        build(options.build, sorted({target for step in page.steps for target in step.targets}),
              data / f"{name}.build.log", stop)
    begin, load_before = provenance.now(), provenance.load()
    taken = take(name, page, options, data, stop)
    if not any(taken.results) and not taken.skipped:
        return  # interrupted before there was anything
    seconds = (provenance.now() - begin).total_seconds()
    origin = [("date", f"{begin:%Y-%m-%d %H:%M} UTC, {seconds:.0f} s"), ("machine", provenance.machine()),
              ("build", provenance.version(ROOT / options.build, page.program) or "unknown")]
    if page.marked:
        origin.append(("compiler of marked code", provenance.clang(ROOT / options.build)))
    origin += [("commit", commit + (", as built before" if options.as_built else "")),
               ("load (1, 5, 15 minutes)", f"{load_before} at the start, {provenance.load()} at the end")]
    path = (options.out or PUBLISHED) / f"{name}.md"
    write(path, page_text(name, page, taken, origin, options.quick))
    index = path.parent / "README.md"
    if index.exists():
        write(index, linked(index.read_text(encoding="utf-8"), name))
    print(f"{shown(path)}: written" + (", partial" if taken.partial else ""), flush=True)


def parse(arguments, pages):
    parser = argparse.ArgumentParser(description="Measures, and writes the pages of docs/results.")
    parser.add_argument("--list", action="store_true", help="print the pages")
    parser.add_argument("--quick", action="store_true", help="a smoke size that decides nothing; needs --out")
    parser.add_argument("--as-built", action="store_true", help="do not build before")
    parser.add_argument("--build", default="build", metavar="DIRECTORY", help="of the programs (default: build)")
    parser.add_argument("--out", type=pathlib.Path, metavar="DIRECTORY", help="instead of docs/results")
    parser.add_argument("page", nargs="*", metavar="PAGE")
    options = parser.parse_args(arguments)
    for name in options.page:
        if name not in pages:
            parser.error(f"no page '{name}'; the pages are {', '.join(pages)}")
    if options.out is not None and options.out.resolve() == PUBLISHED:
        options.out = None
    if options.quick and options.out is None:
        parser.error("--quick needs --out DIRECTORY, another one than docs/results: its figures decide nothing")
    if options.out is not None:
        options.out = options.out.resolve()
        if any(pages[name].script for name in options.page):
            parser.error("a page that commands write themselves has no other place than docs/results")
    return options


def main(arguments, pages=None):
    pages = PAGES if pages is None else pages
    options = parse(arguments, pages)
    if options.list:
        for name, page in pages.items():
            print(f"{name:16}{page.about.split(' ([')[0].rstrip('.:')}")
        return 0
    wanted = options.page or [name for name, page in pages.items() if not (page.script and options.out)]
    stop = Stop()
    for name in wanted:
        try:
            make(name, pages[name], options, stop)
        except Failure as failure:
            print(f"results: {name}: {failure}", file=sys.stderr)
            return 1
        except OSError as error:
            print(f"results: {name}: {error.filename}: cannot be written: {error.strerror}", file=sys.stderr)
            return 1
        if stop.asked:
            return INTERRUPTED
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
