#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks the Promela models: clean ones must have no error, mutants must have one.

    models/check.py            everything (two jobs, about 2 GiB each)
    models/check.py --quick    the part for CI
    models/check.py --only pins  runs whose model or flags contain the word

Exit code 0 if all is as expected, 1 if not, 77 if spin or the C compiler is missing.
"""
import argparse
import concurrent.futures
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
SKIPPED = 77

# What a run must end with. `never` is a clean search for something that must not be reachable: the
# mutant's fault is that it never gets there.
CLEAN, ERROR, REACHED, NEVER = "clean", "error", "reached", "never"


class Run:
    def __init__(self, model, flags, expected, quick):
        self.model, self.flags, self.expected, self.quick = model, flags, expected, quick


def clean(model, flags="", quick=True):
    return [Run(model, flags, CLEAN, quick)]


def mutants(model, flags, names, quick=True):
    return [Run(model, f"{flags} MUTANT_{name}".strip(), ERROR, quick) for name in names.split()]


def reached(model, flags):
    return [Run(model, flags, REACHED, True)]


RUNS = (
    # Nothing of what follows is worth anything if the interesting step is never taken.
    reached("arming", "REACH_PUBLISH")
    + reached("arming_slots", "WINDOWS=1 REACH_PUBLISH")
    + reached("arming_nested", "REACH_PARENT")
    + reached("arming_nested", "REACH_CHILD")
    + reached("arming_pins", "REACH_PUBLISH")
    + reached("arming_pins", "REACH_PINNED")
    + reached("marked", "WINDOWS=1 REACH_PUBLISH")
    + reached("marked", "WINDOWS=1 REACH_SECOND_SLOT")
    + reached("handles", "REACH_PUBLISH")
    + reached("atc", "REACH_COMMIT")
    + reached("atc", "RECREATE REACH_COMMIT")
    + reached("atc", "MOVE_OBJECT REACH_COMMIT")
    # handles
    + clean("handles", "WINDOWS=2 FOREIGN=2")
    + clean("handles", "SECOND_FOREIGN USES=1")
    + clean("handles", "SECOND_USER USES=1", quick=False)
    + mutants(
        "handles",
        "FOREIGN=2",
        "ALIAS_USED_BEFORE_IT_IS_READY A_TOUCH_IS_OVERLOOKED COPIED_BEFORE_THE_PAGE_IS_AWAY HOME_WITHOUT_A_STOP "
        "ONLINE_IGNORES_STOPS PROTECTED_LAST PUBLISHED_OVER_A_TOUCH TAKEN_WITHOUT_A_WAIT",
    )
    + mutants("handles", "SECOND_FOREIGN USES=1", "THE_PAGE_RETURNS_EMPTY")
    # arming
    + clean("arming")
    + clean("arming", "XCHG_ENTRY")
    + clean("arming", "PRIVATE")
    + clean("arming", "NESTED SKIP_WAIT")
    + clean("arming", "REPLACE")
    + clean("arming", "DEBUG_REARM SKIP_WAIT")
    + clean("arming", "NS=2")
    + clean("arming", "WINDOWS=3 SKIP_WAIT PRIVATE", quick=False)
    + clean("arming", "WINDOWS=3 SKIP_WAIT NESTED", quick=False)
    + clean("arming", "WINDOWS=3 SKIP_WAIT REPLACE", quick=False)
    + clean("arming", "SKIP_WAIT NESTED REPLACE DEBUG_REARM", quick=False)
    + clean("arming", "SKIP_WAIT NS=2", quick=False)
    + clean("arming", "REPLACE NS=2", quick=False)
    + mutants(
        "arming",
        "",
        "EPOCH_BEFORE_ARM NO_WAIT NO_MEMBARRIER ADDRESS_FROM_FIRST_LOAD STORE_PUBLISH FREE_BEFORE_CAS",
    )
    + mutants("arming", "PRIVATE", "BORN_AS_ARMED")
    + mutants("arming", "NESTED", "INNER_SCOPE_RECORDS")
    + mutants("arming", "SKIP_WAIT", "LIST_SURVIVES_SCAN ARMED_IS_ENOUGH")
    + mutants("arming", "REPLACE", "LOAD_THEN_STORE RETIRE_FREES RETIRE_TAKEN_AFTER_WAIT")
    + mutants("arming", "DEBUG_REARM", "DEBUG_REARMS_ARMED")
    # slots
    + clean("arming_slots", "WINDOWS=1")
    + clean("arming_slots", "OPTIMISTIC")
    + clean("arming_slots", quick=False)
    + mutants(
        "arming_slots",
        "WINDOWS=1",
        "HAZARD_BEFORE_CLEAR WORD_BEFORE_WAIT NO_HANDSHAKE NO_SEQUENCE BIT_BEFORE_WORD NO_HAZARD"
        " HAZARD_BY_STORE NO_SODA_RECHECK_IN_SCAN NO_SODA_RECHECK HAZARD_ACROSS_WAIT",
    )
    + mutants("arming_slots", "OPTIMISTIC", "NO_VALIDATION TOUCH_BY_AND")
    # nested guides
    + clean("arming_nested", "WINDOWS=1")
    + clean("arming_nested", quick=False)
    + mutants(
        "arming_nested",
        "",
        "BITS_AFTER_PUBLISH BITS_BEFORE_WAIT VISIT_BETWEEN VETO_CLEARS_SOURCE FREE_BEFORE_BITS"
        " SOURCE_BITS_STAY VETO_LEAVES_BITS COPY_BEFORE_WAIT",
    )
    # pins
    + clean("arming_pins", "WINDOWS=1 HANDOVER")
    + clean("arming_pins", quick=False)
    + clean("arming_pins", "HANDOVER", quick=False)
    + mutants(
        "arming_pins",
        "",
        "PIN_AFTER_SCOPE ADDRESS_OUTLIVES_PIN PINS_BEFORE_WAIT NO_PIN_CHECK RECLAIM_IGNORES_PINS",
    )
    + mutants("arming_pins", "HANDOVER", "COPY_TO_OWN_RECORD")
    # marked pointers
    + clean("marked", "WINDOWS=1")
    + mutants(
        "marked",
        "WINDOWS=1",
        "ONE_WAIT SECOND_WAIT_WITHOUT_A_NEW_EPOCH NO_WAIT FLAG_AFTER_THE_SLOT KEEPS_BOTH"
        " SHOWS_WHAT_IT_GIVES_UP",
    )
    # ATC
    + clean("atc")
    + clean("atc", "STICKY=1")
    + clean("atc", "NESTED XCHG_ENTRY")
    + clean("atc", "RECHECK", quick=False)
    + clean("atc", "NESTED", quick=False)
    + clean("atc", "ROUNDS=1 RECREATE")
    + clean("atc", "RECREATE", quick=False)
    + clean("atc", "ROUNDS=1 REPLACE XCHG_ENTRY")
    + clean("atc", "REPLACE XCHG_ENTRY", quick=False)
    + clean("atc", "ROUNDS=1 REPLACE", quick=False)
    + clean("atc", "ROUNDS=1 MOVE_OBJECT")
    + clean("atc", "MOVE_OBJECT", quick=False)
    + mutants(
        "atc",
        "",
        "TAI_COLLISION PHASE_BEFORE_TAI EPOCH_BEFORE_PHASE NO_MEMBARRIER NO_PREPARE_WAIT"
        " SKIP_WHEN_ACCESS_SET ATC_WRAPS LOCK_NOT_CLEARED NO_GRACE SWEEP_ALWAYS LOCK_IGNORES_COUNT"
        " STORE_COMMIT FREE_BEFORE_COMMIT ADDRESS_FROM_FIRST_LOAD",
    )
    + mutants("atc", "STICKY=1", "STICKY_COUNTED_DOWN")
    + mutants("atc", "NESTED", "INNER_SCOPE_RECORDS")
    + mutants(
        "atc",
        "RECREATE",
        "BORN_ZERO QUIET_BY_SCOPE NO_EXIT_HAZARD NO_EXIT_SODA_CHECK DESTROY_NO_WAIT",
    )
    + mutants("atc", "MOVE_OBJECT", "BORN_ZERO")
    + mutants("atc", "MOVE_OBJECT", "QUIET_BY_SCOPE", quick=False)
    # Algorithm 1 of the slides compares with the word from before the lock. It never commits
    # undisturbed, and it does commit after a touch that has been counted out again.
    + mutants("atc", "", "COMPARE_UNLOCKED_WORD")
    + [Run("atc", "REACH_COMMIT MUTANT_COMPARE_UNLOCKED_WORD", NEVER, True)]
)


class Failed(Exception):
    pass


def command(arguments, directory):
    done = subprocess.run(
        arguments, cwd=directory, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    return done.returncode, done.stdout


def search(run, memory_mib):
    """Returns (outcome, states, MiB, detail); raises Failed if the search proves nothing."""
    with tempfile.TemporaryDirectory(prefix="obase-models-") as directory:
        flags = [f"-D{flag}" for flag in run.flags.split()]
        code, text = command(["spin", *flags, "-a", str(HERE / f"{run.model}.pml")], directory)
        if code != 0 or not pathlib.Path(directory, "pan.c").exists() or "Error" in text:
            raise Failed("spin: " + text.strip())
        level = "-O1" if run.expected in (CLEAN, NEVER) else "-O0"  # short searches: compile fast
        options = [level, "-w", "-DSAFETY", "-DCOLLAPSE", f"-DMEMLIM={memory_mib}"]
        code, text = command(["gcc", *options, "-o", "pan", "pan.c"], directory)
        if code != 0:
            raise Failed("gcc: " + text.strip())
        _, text = command(["./pan", "-m200000"], directory)
    errors = re.search(r"errors: (\d+)", text)
    states = re.search(r"(\d+) states, stored", text)
    memory = re.search(r"([\d.]+)\s+total actual memory usage", text)
    if errors is None or states is None or memory is None:
        raise Failed(text.strip())
    detail = re.search(r"pan:\d+: (.*)", text)
    found = int(errors.group(1)) > 0
    if not found:
        for incomplete in ("max search depth too small", "reached -DMEMLIM bound", "out of memory"):
            if incomplete in text:
                raise Failed("search not complete: " + incomplete)
    return (
        "error" if found else "clean",
        int(states.group(1)),
        float(memory.group(1)),
        detail.group(1) if detail else "",
    )


def judge(run, memory_mib):
    start = time.monotonic()
    try:
        outcome, states, memory, detail = search(run, memory_mib)
    except Failed as reason:
        return run, False, "broken", 0, 0.0, time.monotonic() - start, str(reason)
    wanted = "clean" if run.expected in (CLEAN, NEVER) else "error"
    # A reachability run must stop at its own assert(false), not at something else.
    good = outcome == wanted and (run.expected != REACHED or "violated 0 " in detail)
    return run, good, outcome, states, memory, time.monotonic() - start, detail


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="the part for CI")
    parser.add_argument("--jobs", type=int, default=2, help="searches at a time")
    parser.add_argument("--memory", type=int, default=2000, help="MiB per search")
    parser.add_argument("--only", default="", help="runs whose model or flags contain this")
    options = parser.parse_args()

    for tool in ("spin", "gcc"):
        if shutil.which(tool) is None:
            print(f"models: skipped, {tool} is not installed")
            return SKIPPED

    runs = [
        run
        for run in RUNS
        if (run.quick or not options.quick) and options.only in f"{run.model} {run.flags}"
    ]
    if not runs:
        print(f"no run contains {options.only!r}")
        return 1
    passed = failed = 0
    print(f"{'':6} {'expected':8} {'outcome':8} {'states':>11} {'MiB':>5} {'s':>6}  model, flags: first error")
    with concurrent.futures.ThreadPoolExecutor(max_workers=options.jobs) as pool:
        for run, good, outcome, states, memory, seconds, detail in pool.map(
            lambda run: judge(run, options.memory), runs
        ):
            passed, failed = passed + good, failed + (not good)
            print(
                f"{'ok' if good else 'FAILED':6} {run.expected:8} {outcome:8} {states:11,} {memory:5.0f}"
                f" {seconds:6.1f}  {run.model} {run.flags}" + (f": {detail}" if detail else ""),
                flush=True,
            )
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


sys.exit(main())
