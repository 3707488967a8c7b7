# SPDX-License-Identifier: MIT
"""What a page says of its origin: date, machine, build, commit, load."""

import datetime
import os
import pathlib
import platform
import re
import subprocess


def _output(*command, where=None):
    try:
        done = subprocess.run(command, cwd=where, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()


def machine():
    """As `obase bench` says it: some virtual machines' model names say little without family and model."""
    text = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").split("\n\n", 1)[0]
    cpu = {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in text.splitlines())}
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
    return (f"{cpu.get('model name', 'unknown processor')} (family {cpu.get('cpu family', '')}, "
            f"model {cpu.get('model', '')}), {os.cpu_count()} cores, {memory:.0f} GiB, Linux {platform.release().split('-')[0]}")


def commit(root):
    """The commit, and whether files differ from it; pages made before this one do not count."""
    name = _output("git", "rev-parse", "--short=12", "HEAD", where=root)
    if name is None:
        return "unknown, no git repository"
    changed = _output("git", "status", "--porcelain", "--", ".", ":!docs/results", where=root)
    return name + (", with uncommitted changes" if changed != "" else "")


def version(build, program):
    """What the program says of its version and build; None where it was not built."""
    return _output(str(pathlib.Path(build) / "bin" / program), "--version")


def clang(build):
    """The clang that compiles marked code: the one the build found."""
    cache = pathlib.Path(build) / "CMakeCache.txt"
    found = re.search(r"^OBASE_CLANGXX:\w+=(.+)$", cache.read_text(encoding="utf-8"), re.M) if cache.exists() else None
    said = _output(found[1] if found else "clang++-19", "--version")
    return said.splitlines()[0] if said else "unknown"


def load():
    return " ".join(f"{average:.2f}" for average in os.getloadavg())


def now():
    return datetime.datetime.now(datetime.timezone.utc)
