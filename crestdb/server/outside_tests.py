#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tests that others wrote, run against crestdb: Redis' own Tcl tests, and those of the client library redis-py.

usage: outside_tests.py CRESTDB redis|redis-py --cache DIRECTORY [UNIT ...]

redis: the unit tests of Debian's source package, in their external-server mode (`apt-get source`, with lists and a
cache of its own, so nothing of the system's apt changes). redis-py: the source archive of PyPI. Both are fetched into
--cache once. Exit status 77 where they cannot be had.

What is not run, and why, is in the tables below and in docs/server.md. Everything else must pass.
"""

import argparse
import os
import pathlib
import re
import subprocess
import sys

from resp import crestdb, reserved_port, scratch

SKIPPED = 77
REDIS_PY = "4.3.4"  # of Debian 12

# Commands that docs/server.md says are not there; a test that meets one of them says nothing.
ABSENT = re.compile(
    r"^(acl|bitcount|bitfield|bitfield_ro|bitop|bitpos|getbit|setbit|b?l(ins|pos|push|pushx|range|rem|set|trim|index|len|pop|move|mpop)\w*|"
    r"b?r(pop|push)\w*|s(add|card|diff|inter|ismember|members|mismember|move|pop|rand|rem|scan|union)\w*|sort\w*|x\w+|pf\w+|geo\w+|"
    r"z(diff|inter|union|pop|mpop|rand|range?store|remrange)\w*|zrangestore|bz\w+|hrandfield|lcs|stralgo|p?subscribe|publish|pubsub|"
    r"s?publish|ssubscribe|eval\w*|script|function|fcall\w*|dump|restore|migrate|move|swapdb|monitor|module|replicaof|slaveof|role|"
    r"sync|psync|wait|cluster|lolwut|failover|readonly|readwrite|bgrewriteaof|"
    # Subcommands.
    r"tracking|trackinginfo|unblock|pause|unpause|no-evict|getredir|caching|histogram|doctor|graph|malloc-stats|purge|"
    r"getkeysandflags|object|reload|rewrite)$", re.I)

# What needs an answer that differs by design, by the names of the tests; with the reason for docs/server.md.
REDIS_UNITS = ["unit/type/string", "unit/type/incr", "unit/type/hash", "unit/type/zset", "unit/expire", "unit/scan",
               "unit/keyspace", "unit/multi", "unit/protocol", "unit/quit", "unit/other", "unit/slowlog",
               "unit/latency-monitor", "unit/introspection-2", "unit/info-command"]
REDIS_SKIPPED = {
    "lists, sets, streams, bit operations, LCS, HRANDFIELD": [
        "MGET against non-string key", "/^SETBIT", "/^GETBIT", "SETRANGE against key with wrong type",
        "Extended SET GET with incorrect type should result in wrong type error", "/^LCS ", "/holding a list$", "/^HRANDFIELD",
        "EXPIRE - write on expire should work", "/^SSCAN", "SCAN regression test for issue #4906",
        "/^COPY basic usage for (list|intset|hashtable set|stream)", "MULTI / EXEC basics", "DISCARD",
        "MULTI where commands alter argc/argv", "/SORT with STORE", "Blocking commands ignores the timeout",
        "/^raw protocol response", "Regression for a crash with blocking ops and pipelining", "/^SLOWLOG - (Rew|commands with|too|get all)",
        "SAVE - make sure there are all the types as values", "command stats for BRPOP", "/(stats for GEOADD|stats for MULTI)$"],
    "sorted sets' stores, pops and random members": [
        "/^(ZUNION|ZINTER|ZDIFF|ZPOP|BZ|ZMPOP|ZRANGESTORE|ZRANDMEMBER|ZREMRANGE|Basic Z|zunion|zinter)",
        "/isolated from the point of view of BZ", "/^ZMSCORE retrieve (single|with missing)",
        # These read what a test of ZRANGESTORE wrote.
        "ZRANGE BYSCORE REV LIMIT", "ZRANGE BYLEX"],
    "MOVE, SWAPDB, scripts, MONITOR, publish and subscribe, tracking, ACL, modules": [
        "/^MOVE ", "/^SWAPDB ", "/script timeout", "/^RESET clears", "command stats for scripts"],
    "DUMP, encodings, parameters of encodings": ["/^Hash ziplist of various encodings", "/^Is the small hash", "/ziplist encoded"],
    "LATENCY HISTOGRAM and DOCTOR, events of scripts": [
        "/^LATENCY HISTOGRAM", "/^LATENCY DOCTOR", "LATENCY of expire events are correctly collected",
        "LATENCY RESET is able to reset events"],
    "a use of a key is a use of its object: TTL and TYPE are": ["TTL, TYPE and EXISTS do not alter the last access time of a key"],
    "COMMAND's filters, flags of keys, and commands that are not there": [
        "/^COMMAND GETKEYS(ANDFLAGS| XGROUP| EVAL| LCS| MORE)", "/^COMMAND LIST", "/^(ZUNIONSTORE|XREAD|EVAL|SORT|SORT_RO|MIGRATE|GEORADIUS) command is marked"],
}
REDIS_PY_FILES = ["tests/test_commands.py", "tests/test_pipeline.py", "tests/test_encoding.py"]
REDIS_PY_SKIPPED = {
    "ACL": ["test_auth", "test_acl_"],
    "SCAN's cursors are larger numbers": ["TestRedisCommands::test_scan"],
    "CLIENT LIST and KILL have no types, ids and users": ["test_client_list_", "test_client_kill_filter_by_user"],
    "CONFIG GET takes one pattern; COMMAND LIST no filter": ["test_config_get_multi_params", "test_command_list"],
    "MEMORY has STATS and USAGE": ["test_memory_malloc_stats"],
    "COMMAND GETKEYS of commands that are not there": ["test_command_getkeys"],
    "replication": ["test_sync", "test_psync"],
}


def run(command, **how):
    return subprocess.run([str(word) for word in command], check=True, capture_output=True, text=True, **how)


def skip(why):
    print(f"skipped: {why}")
    sys.exit(SKIPPED)


def redis_source(cache):
    """Debian's source package, with what the external-server mode cannot do without answers taken out."""
    tree = cache / "redis"
    if (tree / "ready").exists():
        return tree
    apt = cache / "apt"
    for directory in ("lists/partial", "archives/partial"):
        (apt / directory).mkdir(parents=True, exist_ok=True)
    release = re.search(r"VERSION_CODENAME=(\w+)", pathlib.Path("/etc/os-release").read_text())[1]
    key = "[signed-by=/usr/share/keyrings/debian-archive-keyring.gpg]"
    (apt / "sources.list").write_text(f"deb-src {key} http://deb.debian.org/debian {release} main\n"
                                      f"deb-src {key} http://deb.debian.org/debian-security {release}-security main\n")
    options = [word for option in (f"Dir::Etc::SourceList={apt}/sources.list", "Dir::Etc::SourceParts=-",
                                   f"Dir::State::Lists={apt}/lists", f"Dir::Cache::archives={apt}/archives",
                                   "Dir::Cache::srcpkgcache=", "Dir::Cache::pkgcache=", "APT::Sandbox::User=root")
               for word in ("-o", option)]
    try:
        run(["apt-get", *options, "update"])
        run(["apt-get", *options, "source", "--download-only", "redis"], cwd=apt)
        tree.mkdir(exist_ok=True)
        run(["tar", "xzf", next(apt.glob("redis_*.orig.tar.gz")), "-C", tree, "--strip-components=1"])
    except (subprocess.CalledProcessError, FileNotFoundError, StopIteration) as error:
        skip(f"no source package of redis: {error} {getattr(error, 'stderr', '') or ''}")
    harness = tree / "tests/support/server.tcl"
    text = harness.read_text()
    text = re.sub(r"^(\s+)(r function flush)$", r"\1catch {\2}", text, flags=re.M)
    text = re.sub(r"^(\s+)(r config set \$param \$val)$", r"\1catch {\2}", text, flags=re.M)
    harness.write_text(text)
    for unit in (tree / "tests/unit").rglob("*.tcl"):
        text = unit.read_text(errors="surrogateescape")
        unit.write_text(re.sub(r"^(\s*)(r config set (?:hash|zset|list|set)-max-.*)$", r"\1catch {\2}", text, flags=re.M),
                        errors="surrogateescape")
    (tree / "ready").touch()
    return tree


def test_redis(program, cache, units):
    from shutil import which
    tcl = which("tclsh")
    if tcl is None:
        skip("there is no tclsh here")
    tree = redis_source(cache)
    names = cache / "skipped"
    names.write_text("\n".join(name for group in REDIS_SKIPPED.values() for name in group) + "\n")
    failed, passed = [], 0
    for unit in units or REDIS_UNITS:
        with scratch() as directory, reserved_port() as port, \
                crestdb(program, directory, "--window", 1, tcp_port=port):
            done = subprocess.run([tcl, "tests/test_helper.tcl", "--host", "127.0.0.1", "--port", str(port), "--durable",
                                   "--ignore-encoding", "--ignore-digest", "--tags", "-needs:repl -needs:debug",
                                   "--skipfile", str(names), "--single", unit], cwd=tree, capture_output=True, text=True,
                                  errors="replace")
        text = re.sub(r"\x1b\[[0-9;]*m", "", done.stdout)
        ok = len(re.findall(r"^\[ok\]", text, re.M))
        wrong = re.findall(r"^\[(?:err|exception)\].*\n.*", text, re.M)
        passed += ok
        print(f"{unit}: {ok} pass, {len(wrong)} fail", flush=True)
        for failure in wrong:
            print("  " + failure[:600].replace("\n", "\n    "), flush=True)
        if wrong or ok == 0 or done.returncode not in (0, 1):
            failed.append(unit)
    print(f"{passed} tests of Redis pass")
    return 1 if failed else 0


PLUGIN = '''
import re, sys, pytest
sys.path.insert(0, {here!r})
from outside_tests import ABSENT, REDIS_PY_SKIPPED

def pytest_collection_modifyitems(items):
    for item in items:
        for why, names in REDIS_PY_SKIPPED.items():
            if any(item.nodeid.endswith(n) if "::" in n else n in item.name for n in names):
                item.add_marker(pytest.mark.skip(reason=why))

@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    report = outcome.get_result()
    if report.failed and call.excinfo is not None:
        met = re.search(r"unknown (?:sub)?command '([^']*)'", str(call.excinfo.value))
        if met and ABSENT.match(met[1].split()[0] if met[1] else ""):
            report.outcome = "skipped"
            report.longrepr = (str(item.path), 0, "not there: " + met[1])
'''


def test_redis_py(program, cache, files):
    tree, environment = cache / f"redis-{REDIS_PY}", cache / "venv"
    try:
        if not (environment / "ready").exists():
            run([sys.executable, "-m", "venv", environment])
            pip = environment / "bin/pip"
            run([pip, "download", "--no-deps", "--no-binary", ":all:", f"redis=={REDIS_PY}", "-d", cache])
            run(["tar", "xzf", cache / f"redis-{REDIS_PY}.tar.gz", "-C", cache])
            run([pip, "install", "pytest", "pytest-timeout", tree])
            (environment / "ready").touch()
    except (subprocess.CalledProcessError, FileNotFoundError) as error:
        skip(f"no redis-py: {error} {getattr(error, 'stderr', '') or ''}")
    plugin = cache / "crestdb_plugin.py"
    plugin.write_text(PLUGIN.format(here=str(pathlib.Path(__file__).resolve().parent)))
    with scratch() as directory, reserved_port() as port, \
            crestdb(program, directory, "--window", 1, tcp_port=port):
        # A test that waits for an event that cannot come ends by itself.
        done = subprocess.run([environment / "bin/python", "-m", "pytest", "-q", "-rf", "--timeout", "120", "-p", "crestdb_plugin",
                               "-p", "no:cacheprovider", "-m", "not redismod and not onlycluster",
                               "--redis-url", f"redis://127.0.0.1:{port}/9", *(files or REDIS_PY_FILES)],
                              cwd=tree, env={**os.environ, "PYTHONPATH": str(cache)}, capture_output=True, text=True)
    lines = done.stdout.splitlines()
    print("\n".join(line[:300] for line in lines if line.startswith("FAILED")) or done.stderr[-2000:])
    print(lines[-1] if lines else "no output")
    met = re.search(r"(\d+) passed", done.stdout)
    return 0 if done.returncode == 0 and met and int(met[1]) >= 100 else 1


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("crestdb")
    arguments.add_argument("which", choices=["redis", "redis-py"])
    arguments.add_argument("--cache", type=pathlib.Path, required=True)
    arguments.add_argument("units", nargs="*")
    args = arguments.parse_intermixed_args()
    args.cache.mkdir(parents=True, exist_ok=True)
    cache = args.cache.resolve()
    return {"redis": test_redis, "redis-py": test_redis_py}[args.which](args.crestdb, cache, args.units)


if __name__ == "__main__":
    sys.exit(main())
