# SPDX-License-Identifier: MIT
"""Redis 7.0.15 of Debian's source, unchanged, with the C library's malloc: tests of its own suite (./runtest), plain, at home
and in stress mode. REDIS_TESTS names others than these.

With --measure, what temperature brings and costs: REDIS_KEYS values of 1,000 bytes, of which one in ten is read as fast as it goes,
in random order, a hundred in a pipeline, by one client; REDIS_PAIRS runs at home and as many whose cold values may leave, in turns.
After REDIS_WINDOWS windows GETs are counted for a while. What is cold lies in the folder REDIS_COLD, which must be on a disk;
in --out, unless given. --json writes all runs, --built takes the server of an earlier run.
"""

import json
import os
import pathlib
import random
import re
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time

import handled
from handled import program

SOURCE = ("pool/main/r/redis/redis_7.0.15.orig.tar.gz", "4b1dc4ee6d622a09fff9c6777191209750fb5e5a725ef78ea012d6eef4c22982")
TESTS = "unit/type/list unit/type/hash unit/type/zset unit/expire unit/scripting unit/dump unit/sort unit/multi unit/keyspace"
# Each test there waits for nothing else than its server: those that look at memory or at seconds are not among them.
UNDER_STRESS = "unit/type/list unit/type/hash unit/multi unit/keyspace"


def built(options, *names):
    """Redis in the folder of each name. What is there is made again only if what makes it has changed."""
    archive = program.source_package(options, *SOURCE)
    plain, handles = handled.compilers(options).values()
    ways = {"plain": (plain, ["MALLOC=libc"]),
            "handles": (handles, ["MALLOC=libc", f"REDIS_LDFLAGS={handled.figures_object(options)}"]),
            # What activedefrag needs: the jemalloc that comes with Redis.
            "activedefrag": (plain, ["MALLOC=jemalloc", "redis-server"])}
    for name in names:
        compiler, wanted = ways[name]
        stamp = options.out / f"{name}.made"
        state = " ".join(str(part) for part in (*compiler, *wanted, handled.fingerprint(options) if name == "handles" else ""))
        if stamp.exists() and stamp.read_text() == state:
            continue
        program.unpack(archive, options.out / name)
        command = " ".join(str(part) for part in compiler)
        cxx = command.replace("obase-clang", "obase-clang++") if name == "handles" else f"{command} --driver-mode=g++"
        program.run(["make", f"-j{os.cpu_count()}", f"CC={command}", f"CXX={cxx}", "OPTIMIZATION=-O2", *wanted],
                    where=options.out / name)
        stamp.write_text(state)


VALUE_BYTES = 1000
PIPELINE = 100
WINDOW_SECONDS = 3
COUNTED_SECONDS = 15


class client:
    """One connection. Every reply is compared."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(path)

    @staticmethod
    def request(*words):
        return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%b\r\n" % (len(word), word) for word in words)

    def receive(self, size):
        parts = bytearray(size)
        view = memoryview(parts)
        while view:
            got = self.socket.recv_into(view)
            if got == 0:
                sys.exit("redis closed the connection")
            view = view[got:]
        return parts

    def ask(self, wanted, *words):
        self.socket.sendall(self.request(*words))
        got = bytes(self.receive(len(wanted)))
        if got != wanted:
            sys.exit(f"redis said {got!r} to {words}, and not {wanted!r}")


def reply(key):
    value = b"value:%d" % key
    return b"$%d\r\n%b\r\n" % (VALUE_BYTES, value.ljust(VALUE_BYTES, b"\0"))


def one_run(options, environment, keys, windows):
    """Memory in MiB, GETs a second, and processor time of the server for one, from the last window on."""
    with tempfile.TemporaryDirectory(prefix="obase-redis-") as folder:
        path = f"{folder}/socket"
        process = subprocess.Popen(
            [options.out / "handles" / "src" / "redis-server", "--port", "0", "--unixsocket", path, "--dir", folder, "--save", "", "--enable-debug-command", "yes"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            env={**os.environ, **environment})
        try:
            for _ in range(200):
                if os.path.exists(path):
                    break
                time.sleep(.05)
            connection = client(path)
            connection.ask(b"+OK\r\n", b"DEBUG", b"POPULATE", b"%d" % keys, b"key", b"%d" % VALUE_BYTES)
            numbers = random.Random(1)
            pipelines = []
            for _ in range(max(10, keys // 500)):
                chosen = [10 * numbers.randrange(keys // 10) for _ in range(PIPELINE)]
                pipelines.append((b"".join(client.request(b"GET", b"key:%d" % key) for key in chosen), chosen))
            start = sum(program.resident_kib(process.pid)) / 1024
            begin = time.monotonic()
            end = begin + windows * WINDOW_SECONDS
            at, counting, got, spent = 0, None, 0, 0
            while True:
                now = time.monotonic()
                if counting is None and now >= end:
                    counting, got, spent = now, 0, processor_seconds(process.pid)
                if counting is not None and now - counting >= COUNTED_SECONDS:
                    break
                request, chosen = pipelines[at]
                at = (at + 1) % len(pipelines)
                connection.socket.sendall(request)
                wanted = b"".join(map(reply, chosen))
                if connection.receive(len(wanted)) != wanted:
                    sys.exit("a value is wrong")
                got += PIPELINE
            spent = processor_seconds(process.pid) - spent
            peak = int(re.search(r"VmHWM:\s+(\d+)", pathlib.Path(f"/proc/{process.pid}/status").read_text())[1]) / 1024
            return {"start_mib": start, "peak_mib": peak, "end_mib": sum(program.resident_kib(process.pid)) / 1024,
                    "gets_per_second": got / (now - counting), "processor_us_per_get": 1e6 * spent / got}
        finally:
            process.kill()
            process.wait()


def processor_seconds(process):
    """Of its first thread, which answers."""
    return int(pathlib.Path(f"/proc/{process}/task/{process}/schedstat").read_text().split()[0]) * 1e-9


def measure(options):
    if not options.built:
        built(options, "handles")
    keys, pairs, windows = (int(os.environ.get(name, default)) for name, default in
                            (("REDIS_KEYS", 1000000), ("REDIS_PAIRS", 5), ("REDIS_WINDOWS", 20)))
    states = {"home": {"OBASE_HANDLES": "off"},
              "temperature": {"OBASE_MODE": "hint", "OBASE_COLD_BACKING": f"file:{os.environ.get('REDIS_COLD', options.out)}",
                              "OBASE_WINDOW_SECONDS": str(WINDOW_SECONDS), "OBASE_MEMORY": "none"}}
    runs = []
    for pair in range(pairs):
        for state in sorted(states, reverse=pair % 2 != 0):
            runs.append({"pair": pair, "state": state, **one_run(options, states[state], keys, windows)})
            print(" ".join(f"{name} {value:.1f}" if isinstance(value, float) else f"{name} {value}"
                           for name, value in runs[-1].items()), flush=True)
    of = {state: sorted((run for run in runs if run["state"] == state), key=lambda run: run["pair"]) for state in states}

    def ratios(name):
        return sorted(there[name] / home[name] for there, home in zip(of["temperature"], of["home"]))

    figures = {"throughput_ratio": ratios("gets_per_second"), "processor_ratio": ratios("processor_us_per_get"),
               "memory_share": sorted(run["end_mib"] / run["start_mib"] for run in of["temperature"])}
    for name, all_of_them in figures.items():
        print(f"{name}: {statistics.median(all_of_them):.3f} ({all_of_them[0]:.3f} to {all_of_them[-1]:.3f})")
    if options.json:
        options.json.write_text(json.dumps({"keys": keys, "value_bytes": VALUE_BYTES, "windows": windows, "runs": runs, **figures},
                                           indent=1) + "\n")


def main():
    options = handled.arguments(__doc__)
    if options.measure:
        measure(options)
        return
    if options.describe:
        names = ("plain", "activedefrag", "handles")
        built(options, *names)
        handled.write(options, {"servers": {name: options.out / name / "src" / "redis-server" for name in names}})
        return
    if shutil.which("tclsh") is None:
        print("skipped: there is no tclsh here, which runs the tests")
        sys.exit(program.SKIPPED)
    built(options, "plain", "handles")
    ways = {"plain": ("plain", {}), "home": ("handles", {}), "stress": ("handles", {"OBASE_HANDLES_STRESS": "2000"})}
    passed = {}
    for way, (name, environment) in ways.items():
        tests = os.environ.get("REDIS_TESTS", UNDER_STRESS if way == "stress" else TESTS).split()
        chosen = [word for test in tests for word in ("--single", test)]
        # Ports below those that the kernel gives away.
        done = program.run(["./runtest", "--clients", "2", "--baseport", "22000", "--portcount", "4000", *chosen],
                           where=options.out / name, environment=environment)
        passed[way] = len(re.findall(r"\[ok\]", re.sub(r"\x1b\[[0-9;]*m", "", done.stdout)))
        print(f"redis, {way}: {passed[way]} tests of {len(tests)} files")
    if passed["home"] != passed["plain"] or min(passed.values()) == 0:
        sys.exit("with handles other tests than plain")


if __name__ == "__main__":
    main()
