#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Requests at the edges, with their replies: flags that exclude each other, counts, types of clients, parameters
given twice, and what is looked at first. differential_test.py compares such requests with Redis' replies; this
needs no Redis, and sees whom a request has met.

usage: edges_test.py CRESTDB [NAME ...]     only the tests of these names
"""

import sys

from resp import Error, crestdb, scratch

SYNTAX = "ERR syntax error"


def check(got, expected):
    if got != expected or isinstance(got, Error) != isinstance(expected, Error):
        raise AssertionError(f"{got!r}, expected {expected!r}")


def fails(got, why):
    check(got, Error(why))


def ids(listed):
    """Of the clients in a reply of CLIENT LIST."""
    return sorted(int(line.split()[0].removeprefix(b"id=")) for line in listed.splitlines())


def test_client_list(s):
    first, second = s.client(), s.client()
    both = sorted([first("CLIENT", "ID"), second("CLIENT", "ID")])
    check(ids(first("CLIENT", "LIST")), both)
    check(ids(first("CLIENT", "LIST", "TYPE", "NORMAL")), both)
    for other in ("pubsub", "master", "replica", "slave"):
        check(ids(first("CLIENT", "LIST", "TYPE", other)), [])
    check(ids(first("CLIENT", "LIST", "ID", both[1])), both[1:])
    check(ids(first("CLIENT", "LIST", "ID", 9999, both[0], both[0], both[1])), both)
    fails(first("CLIENT", "LIST", "TYPE", "x"), "ERR Unknown client type 'x'")
    fails(first("CLIENT", "LIST", "ID", both[0], 0), "ERR Invalid client ID")
    fails(first("CLIENT", "LIST", "ID"), SYNTAX)
    fails(first("CLIENT", "LIST", "TYPE", "normal", "x"), SYNTAX)


def test_client_kill(s):
    first, second, third = s.client(), s.client(), s.client()

    def gone(client):
        try:
            client("PING")
        except ConnectionError:
            return True
        return False

    check(first("CLIENT", "KILL", "TYPE", "pubsub"), 0)
    check(first("CLIENT", "KILL", "TYPE", "pubsub", "ID", second("CLIENT", "ID")), 0)
    fails(first("CLIENT", "KILL", "USER", "x"), "ERR No such user 'x'")
    fails(first("CLIENT", "KILL", "TYPE", "x"), "ERR Unknown client type 'x'")
    fails(first("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "x"), SYNTAX)
    fails(first("CLIENT", "KILL", "TYPE", "normal", "SKIPME"), SYNTAX)
    check([client("PING") for client in (first, second, third)], 3 * ["PONG"])
    check(first("CLIENT", "KILL", "ID", second("CLIENT", "ID"), "USER", "default"), 1)
    check([gone(second), gone(third)], [True, False])
    check(first("CLIENT", "KILL", "TYPE", "normal"), 1)  # not who asks
    check([gone(third), gone(first)], [True, False])
    check(first("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "no"), 1)
    check(gone(first), True)


def test_client_no_evict(s):
    client = s.client()
    check([client("CLIENT", "NO-EVICT", how) for how in ("on", "OFF")], ["OK", "OK"])
    fails(client("CLIENT", "NO-EVICT", "x"), SYNTAX)


def test_config_set(s):
    client = s.client()

    def value(name):
        return client("CONFIG", "GET", name)[1]

    check(client("CONFIG", "SET", "maxmemory", "1mb", "timeout", 100), "OK")
    fails(client("CONFIG", "SET", "maxmemory", "2mb", "timeout", 200, "MaxMemory", "3mb"),
          "ERR CONFIG SET failed (possibly related to argument 'MaxMemory') - duplicate parameter")
    check([value("maxmemory"), value("timeout")], [b"1048576", b"100"])
    # All or nothing.
    fails(client("CONFIG", "SET", "maxmemory", "2mb", "nosuch", 1),
          "ERR Unknown option or number of arguments for CONFIG SET - 'nosuch'")
    check(value("maxmemory"), b"1048576")
    # As Redis has units.
    for given, bytes_ in (("2k", 2000), ("2K", 2000), ("2kb", 2048), ("2M", 2000000), ("2Mb", 2 << 20), ("3G", 3000000000)):
        check(client("CONFIG", "SET", "maxmemory", given), "OK")
        check(value("maxmemory"), b"%d" % bytes_)
    check(client("CONFIG", "SET", "maxmemory", "1mb"), "OK")
    # More pairs than there are parameters.
    many = [word for i in range(5000) for word in (f"nosuch{i}", 1)]
    fails(client("CONFIG", "SET", *many), "ERR Unknown option or number of arguments for CONFIG SET - 'nosuch0'")


def test_slowlog(s):
    client = s.client()
    client("CONFIG", "SET", "slowlog-log-slower-than", 0)
    client("SLOWLOG", "RESET")
    for i in range(12):
        client("SET", "k", i)
    client("CONFIG", "SET", "slowlog-log-slower-than", -1)

    def commands(*count):
        return [entry[3] for entry in client("SLOWLOG", "GET", *count)]

    sets = [[b"SET", b"k", b"%d" % i] for i in reversed(range(12))]
    check(client("SLOWLOG", "LEN"), 13)  # RESET is the first
    check(commands(-1), sets + [[b"SLOWLOG", b"RESET"]])
    check(commands(), sets[:10])
    check(commands(3), sets[:3])
    check(commands(0), [])
    check(len(commands(1000)), 13)
    for count in (-2, "a"):
        fails(client("SLOWLOG", "GET", count), "ERR count should be greater than or equal to -1")
    fails(client("SLOWLOG", "GET", -1, 2),
          "ERR unknown subcommand or wrong number of arguments for 'GET'. Try SLOWLOG HELP.")
    check([client("SLOWLOG", "RESET"), client("SLOWLOG", "LEN")], ["OK", 0])


def test_long_numbers(s):
    client = s.client()
    # As long as what INCRBYFLOAT itself has written.
    written = client("INCRBYFLOAT", "k", "1e1000")
    check(len(written) > 255, True)
    check(client("INCRBYFLOAT", "k", 0), written)
    check(client("HINCRBYFLOAT", "h", "f", written), written)
    check(client("HINCRBYFLOAT", "h", "f", 0), written)
    client("SET", "k", 5120 * "0")  # longer than what it writes
    fails(client("INCRBYFLOAT", "k", 0), "ERR value is not a valid float")
    client("SET", "k", 5119 * "0")
    check(client("INCRBYFLOAT", "k", 1), b"1")


def test_scans(s):
    client = s.client()
    client("HSET", "h", "f", "v")
    client("ZADD", "z", 1, "m")
    for name, key, found in (("HSCAN", "h", [b"f", b"v"]), ("ZSCAN", "z", [b"m", b"1"])):
        check(client(name, key, 0), [b"0", found])
        check(client(name, key, 1 << 40), [b"0", []])  # no cursor of ours
        fails(client(name, key, 0, "NOVALUES"), SYNTAX)
        fails(client(name, key, 0, "COUNT", "a"), "ERR value is not an integer or out of range")
        fails(client(name, key, 0, "COUNT", 0), SYNTAX)
        fails(client(name, key, 0, "TYPE", "hash"), SYNTAX)
        # The cursor is looked at first, options only of a key that is there.
        check(client(name, "nokey", 0, "NOVALUES"), [b"0", []])
        check(client(name, "nokey", 0, "COUNT", "a"), [b"0", []])
        fails(client(name, "nokey", "x"), "ERR invalid cursor")
        client("SET", "k", "v")
        fails(client(name, "k", 0, "NOVALUES"), "WRONGTYPE Operation against a key holding the wrong kind of value")
        fails(client(name, "k", "x"), "ERR invalid cursor")
    fails(client("SCAN", 0, "NOVALUES"), SYNTAX)


def test_shutdown(s):
    client = s.client()
    fails(client("SHUTDOWN", "SAVE", "NOSAVE"), SYNTAX)
    fails(client("SHUTDOWN", "ABORT", "NOSAVE"), SYNTAX)
    fails(client("SHUTDOWN", "x"), SYNTAX)
    fails(client("SHUTDOWN", "ABORT"), "ERR No shutdown in progress.")
    check(client("PING"), "PONG")


def main():
    failed = 0
    for name, test in sorted(globals().items()):
        if not name.startswith("test_") or (sys.argv[2:] and name[5:] not in sys.argv[2:]):
            continue
        with scratch() as directory, crestdb(sys.argv[1], directory) as server:
            try:
                test(server)
            except Exception as error:  # noqa: BLE001 each is reported, and the others run
                failed += 1
                print(f"FAILED {name}: {type(error).__name__}: {error}", flush=True)
            else:
                print(f"ok {name}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
