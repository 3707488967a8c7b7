# SPDX-License-Identifier: MIT
"""memcached 1.6.18 of Debian's source, unchanged: its own testapp and tests in Perl, plain, at home and in stress mode.
MEMCACHED_TESTS names others of t/ than these. Items lie in slab pages, which are above 16 KiB and do not move; connections
and their buffers do, and libevent, which is foreign, calls back and keeps their addresses."""

import os
import re
import shutil
import subprocess
import sys

import handled
from handled import program

SOURCE = ("pool/main/m/memcached/memcached_1.6.18.orig.tar.xz", "35872bd25f8d29d7cc2072d23e74344530891bfd0aa4f4f64184a8ae7291164b")
# Not among them: those that are skipped here or need git, a certificate or sasl; that wait for the clock; that fill hundreds
# of megabytes; and maxconns, which tries until it succeeds and so has another number of tests each time.
TESTS = ("00-startup 64bit ascii-auth binary-get binary bogus-commands cas chunked-items conn-limits daemonize dash-M flags "
         "flush-all getandtouch getset incrdecr issue_104 issue_108 issue_14 issue_152 issue_163 issue_183 issue_192 "
         "issue_22 issue_29 issue_3 issue_41 issue_42 issue_50 issue_61 issue_68 issue_70 line-lengths lru "
         "malicious-commands metaget multiversioning noreply quit shutdown stats-conns stats-detail stats "
         "touch udp unixsocket watcher watcher_connid")


def build(options, name, compiler):
    folder = options.out / name
    program.unpack(program.source_package(options, *SOURCE), folder)
    command = " ".join(str(part) for part in compiler)
    program.run(["./configure", f"CC={command}", "--disable-coverage", "--disable-docs"], where=folder)
    program.run(["make", f"-j{os.cpu_count()}", "memcached", "memcached-debug", "testapp", "sizes", "timedrun"], where=folder)
    return folder


def passed_in(said):
    """Tests that passed and that failed, of the Test Anything Protocol."""
    return len(re.findall(r"^ok ", said, re.M)), re.findall(r"^not ok .*", said, re.M)


def main():
    options = handled.arguments(__doc__)
    if not os.path.exists("/usr/include/event.h"):
        print("skipped: there is no libevent-dev here, which memcached needs")
        sys.exit(program.SKIPPED)
    if shutil.which("perl") is None:
        print("skipped: there is no perl here, in which the tests are written")
        sys.exit(program.SKIPPED)
    folders = {name: build(options, name, compiler) for name, compiler in handled.compilers(options).items()}
    ways = {"plain": ("plain", {}), "home": ("handles", {}), "stress": ("handles", {"OBASE_HANDLES_STRESS": "2000"})}
    tests = os.environ.get("MEMCACHED_TESTS", TESTS).split()
    counts, failures = {}, []
    for way, (name, environment) in ways.items():
        count = 0
        for command in (["./testapp"], *(["perl", f"t/{test}.t"] for test in tests)):
            # Tests of root start servers as nobody, who cannot read the folder.
            done = subprocess.run(command, cwd=folders[name], text=True, errors="replace", timeout=1800,
                                  env={**os.environ, **environment}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            right, wrong = passed_in(done.stdout)
            count += right
            if wrong or done.returncode != 0 or right == 0:
                failures.append(f"memcached, {way}, {' '.join(command)}: exit status {done.returncode}\n{done.stdout[-2000:]}")
        counts[way] = count
        print(f"memcached, {way}: {count} tests of {len(tests) + 1} files")
    if failures:
        sys.exit("\n".join(failures))
    if len(set(counts.values())) != 1:
        sys.exit("with handles other tests than plain")


if __name__ == "__main__":
    main()
