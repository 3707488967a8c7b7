#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Clients and proxies that others wrote, as their users have them.

usage: clients_test.py CRESTDB jedis|go-redis|ycsb|nutcracker|sharded --cache DIRECTORY

jedis, go-redis: each type, pipelines, transactions, an error (clients/). ycsb: YCSB's own client and workloads A to F with a
binding over jedis; each read and each scan is verified. nutcracker: two servers behind the proxy. sharded: two
servers, redis-py chooses by the key. What is needed is fetched into --cache once, by mvn, go and pip. Exit status 77
where it cannot be had.
"""

import argparse
import pathlib
import re
import shutil
import subprocess
import sys
import time

from resp import Client, crestdb, reserved_port, scratch, skip_without

HERE = pathlib.Path(__file__).resolve().parent / "clients"
POM = """<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>crestdb</groupId><artifactId>clients</artifactId><version>1</version><dependencies>
<dependency><groupId>redis.clients</groupId><artifactId>jedis</artifactId><version>4.4.3</version></dependency>
<dependency><groupId>site.ycsb</groupId><artifactId>core</artifactId><version>0.17.0</version></dependency>
</dependencies></project>
"""
GO_MODULE = "module crestdb/clients\ngo 1.19\nrequire github.com/redis/go-redis/v9 v9.0.5\n"
#             read update insert scan read-modify-write, distribution
WORKLOADS = {"a": (.5, .5, 0, 0, 0, "zipfian"), "b": (.95, .05, 0, 0, 0, "zipfian"), "c": (1, 0, 0, 0, 0, "zipfian"),
             "d": (.95, 0, .05, 0, 0, "latest"), "e": (0, 0, .05, .95, 0, "zipfian"), "f": (.5, 0, 0, 0, .5, "zipfian")}
COLD = ("--window", .2, "--hints", "pageout", "--mode", "hint")


def skip(why):
    print(f"skipped: {why}")
    sys.exit(77)


def check(condition, what):
    if not condition:
        raise AssertionError(what)


def fetched(command, where):
    """What a package client brings, or the end of the test."""
    try:
        subprocess.run(command, cwd=where, check=True, capture_output=True, text=True)
    except (subprocess.CalledProcessError, FileNotFoundError) as error:
        skip(f"{command[0]}: {error} {(getattr(error, 'stdout', '') or '')[-500:]}{(getattr(error, 'stderr', '') or '')[-500:]}")


def java(cache, name):
    """The class path with that program of clients/ compiled."""
    skip_without("javac")
    jars, classes = cache / "jars", cache / "classes"
    if not (jars / "ready").exists():
        skip_without("mvn")
        (cache / "pom.xml").write_text(POM)
        fetched(["mvn", "-q", "-B", "dependency:copy-dependencies", f"-DoutputDirectory={jars}"], cache)
        (jars / "ready").touch()
    path = f"{classes}:{jars}/*"
    subprocess.run(["javac", "-cp", path, "-d", classes, HERE / f"{name}.java"], check=True)
    return path


def test_jedis(program, cache):
    path = java(cache, "JedisSmoke")
    with scratch() as directory, reserved_port() as port, crestdb(program, directory, tcp_port=port):
        subprocess.run(["java", "-cp", path, "JedisSmoke", str(port)], check=True)


def test_go_redis(program, cache):
    skip_without("go")
    module = cache / "go"
    module.mkdir(exist_ok=True)
    shutil.copy(HERE / "go_redis_smoke.go", module / "main.go")
    if not (module / "go.sum").exists():
        (module / "go.mod").write_text(GO_MODULE)
        fetched(["go", "mod", "tidy"], module)
    subprocess.run(["go", "build", "-o", "smoke", "."], cwd=module, check=True)
    with scratch() as directory, reserved_port() as port, crestdb(program, directory, tcp_port=port):
        subprocess.run([module / "smoke", str(port)], check=True)


def ycsb(path, port, phase, workload, records, operations):
    read, update, insert, scan, modify, distribution = WORKLOADS[workload]
    options = {"workload": "site.ycsb.workloads.CoreWorkload", "recordcount": records, "operationcount": operations, "port": port,
               "readproportion": read, "updateproportion": update, "insertproportion": insert, "scanproportion": scan,
               "readmodifywriteproportion": modify, "requestdistribution": distribution, "dataintegrity": "true", "threadcount": 4}
    words = [word for item in options.items() for word in ("-p", f"{item[0]}={item[1]}")]
    done = subprocess.run(["java", "-cp", path, "site.ycsb.Client", phase, "-db", "YcsbBinding", *words], capture_output=True,
                          text=True)
    counts = {(what, status): int(n) for what, status, n in
              re.findall(r"^\[([A-Z-]+)\], Return=(\w+), (\d+)$", done.stdout, re.M)}
    wrong = {key: n for key, n in counts.items() if key[1] != "OK"}
    check(done.returncode == 0 and not wrong, f"{workload}: {wrong} {done.stdout[-1500:]}{done.stderr[-1500:]}")
    return {what: n for (what, _), n in counts.items()}


def test_ycsb(program, cache):
    path = java(cache, "YcsbBinding")
    records = 20_000
    for workload in WORKLOADS:
        operations = 2_000 if workload == "e" else 20_000  # of some 50 records each
        with scratch() as directory, reserved_port() as port, \
                crestdb(program, directory, "--threads", 2, "--cold", f"file:{directory}", *COLD, tcp_port=port) as s:
            counts = ycsb(path, port, "-load", workload, records, operations)
            check(counts.get("INSERT") == records, f"loaded {counts}")
            counts = ycsb(path, port, "-t", workload, records, operations)
            reads = counts.get("READ", 0)
            check(counts.get("VERIFY", 0) == reads, f"{workload}: {reads} reads, verified {counts.get('VERIFY')}")
            rows = sum(counts.get(what, 0) for what in ("READ", "UPDATE", "INSERT", "SCAN"))
            check(rows >= operations, f"{workload}: {counts}")
            check(s.client()("DBSIZE") == records + 1 + counts.get("INSERT", 0), f"{workload}: keys")
            print(f"YCSB {workload}: {counts}", flush=True)


def test_nutcracker(program, _):
    proxy = shutil.which("nutcracker") or shutil.which("nutcracker", path="/usr/sbin")
    if proxy is None:
        skip("there is no nutcracker here")
    with scratch() as first, scratch() as second, scratch() as directory, reserved_port() as port, reserved_port() as stats, \
            crestdb(program, first) as a, crestdb(program, second) as b:
        conf = pathlib.Path(directory) / "nutcracker.yml"
        conf.write_text(f"crestdb:\n  listen: 127.0.0.1:{port}\n  hash: fnv1a_64\n  distribution: ketama\n  redis: true\n"
                        f"  servers:\n   - {a.socket}:1 one\n   - {b.socket}:1 two\n")
        with open(pathlib.Path(directory) / "log", "w+") as log:
            running = subprocess.Popen([proxy, "-c", conf, "-a", "127.0.0.1", "-s", str(stats), "-o", f"{directory}/nutcracker.log"],
                                       stdout=log, stderr=log)
            try:
                c = None
                while c is None:
                    if running.poll() is not None:
                        raise AssertionError(f"nutcracker ended: {pathlib.Path(directory, 'nutcracker.log').read_text()}")
                    try:
                        c = Client(("127.0.0.1", port))
                    except ConnectionError:
                        time.sleep(.02)
                check(all(r == "OK" for r in c.many([("SET", f"k{i}", f"v{i}") for i in range(2000)])), "SET")
                check(c.many([("GET", f"k{i}") for i in range(2000)]) == [b"v%d" % i for i in range(2000)], "GET")
                check(c("MGET", *(f"k{i}" for i in range(100))) == [b"v%d" % i for i in range(100)], "MGET of both servers")
                check(c("HSET", "h", "f", "v") == 1 and c("ZADD", "z", 1, "m") == 1 and c("INCR", "n") == 1, "other types")
                sizes = [s.client()("DBSIZE") for s in (a, b)]
                check(sum(sizes) == 2003 and min(sizes) > 500, f"both have some: {sizes}")
                check(c("DEL", *(f"k{i}" for i in range(2000))) == 2000, "DEL of both servers")
            finally:
                running.kill()
                running.wait()
    print(f"nutcracker: ok, {sizes} keys")


def test_sharded(program, cache):
    environment = cache / "venv"
    if not (environment / "ready").exists():
        fetched([sys.executable, "-m", "venv", environment], cache)
        fetched([environment / "bin/pip", "install", "redis==4.3.4"], cache)
        (environment / "ready").touch()
    code = """
import redis, sys, zlib
servers = [redis.Redis(unix_socket_path=path) for path in sys.argv[1:]]
def of(key): return servers[zlib.crc32(key.encode()) % len(servers)]
for i in range(2000): assert of(f"k{i}").set(f"k{i}", f"v{i}")
for i in range(2000): assert of(f"k{i}").get(f"k{i}") == b"v%d" % i
for s in servers:
    with s.pipeline() as p: assert p.hset("h", "f", "v").hget("h", "f").execute() == [1, b"v"]
sizes = [s.dbsize() for s in servers]
assert sum(sizes) == 2002 and min(sizes) > 500, sizes
print("redis-py by key: ok,", sizes, "keys")
"""
    with scratch() as first, scratch() as second, crestdb(program, first) as a, crestdb(program, second) as b:
        subprocess.run([environment / "bin/python", "-c", code, a.socket, b.socket], check=True)


def main():
    tests = {"jedis": test_jedis, "go-redis": test_go_redis, "ycsb": test_ycsb, "nutcracker": test_nutcracker, "sharded": test_sharded}
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("crestdb")
    arguments.add_argument("which", choices=tests)
    arguments.add_argument("--cache", type=pathlib.Path, required=True)
    args = arguments.parse_args()
    args.cache.mkdir(parents=True, exist_ok=True)
    tests[args.which](args.crestdb, args.cache.resolve())
    return 0


if __name__ == "__main__":
    sys.exit(main())
