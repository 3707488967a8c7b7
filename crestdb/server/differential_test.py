#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Random commands to redis-server and to crestdb: the replies must be the same.

usage: differential_test.py CRESTDB [--commands N] [--seed S] [--threads T] [options of crestdb ...]

Keys are few, so that commands meet keys of every type. What has no order (HGETALL, KEYS) is compared as
a set, remaining times with a second's grace. Exit status 77 without redis-server.
"""

import argparse
import itertools
import os
import random
import sys
import time

from resp import Error, crestdb, redis, scratch, skip_without

KEYS = [f"k{i}" for i in range(12)]
LEX_KEYS = ["l0", "l1"]  # of one score each: by name, others have no order in Redis either
FIELDS = [f"f{i}" for i in range(8)]
# Requests at the edges, words apart by |: wrong subcommands, flags that exclude each other, options without a value. K: a key.
EDGES = [line.split("|") for line in """\
OBJECT|IDLETIME|nokey
OBJECT
LATENCY|RESET
LATENCY|RESET|x
LATENCY|HISTORY
LATENCY|x
SLOWLOG|GET|-2
SLOWLOG|GET|a
SLOWLOG|GET|0
SLOWLOG|GET|-1|2
SLOWLOG|RESET
SLOWLOG|x
COPY|K|d1|DB|1
COPY|K|d1|DB|1|REPLACE
COPY|K|K
COPY|K|s|DB|0
COPY|K|s|DB|-1
COPY|K|s|DB|16
COPY|K|s|DB
COPY|nokey|x
SCAN
ZRANGE|K|-|+|BYLEX|REV|LIMIT|0|1
ZRANGE|K|+|-|BYLEX|REV|LIMIT|0|1
ZRANGE|K|+|-|BYLEX|REV|LIMIT|0|-1|WITHSCORES
ZRANGE|K|0|-1|LIMIT|0|1
ZRANGE|K|(1|5|BYSCORE|LIMIT|1|1|WITHSCORES
ZRANGE|K|5|(1|BYSCORE|REV
ZRANGE|K|0|-1|REV|BYLEX
ZRANGE|K|0|1|BYSCORE|BYLEX
ZRANGE|K|0|1|LIMIT|a|b|BYSCORE
ZADD|K|NX|GT|1|a
ZADD|K|GT|LT|1|a
ZADD|K|XX|NX|1|a
ZADD|K|INCR|1|a|2|b
ZADD|K|CH
ZADD|K|XX|CH|GT|5|a
ZMSCORE|K
ZCOUNT|K|a|b
ZLEXCOUNT|K|x|y
ZINCRBY|K|nan|a
HELLO|1
HELLO|4
HELLO|x
HELLO|3|AUTH|a
CLIENT
CLIENT|x
CLIENT|SETNAME|
CLIENT|SETNAME|abc
CLIENT|GETNAME
CLIENT|NO-EVICT|on
CLIENT|NO-EVICT|x
CLIENT|REPLY|x
CLIENT|KILL|a:1
CLIENT|KILL|ID|x
CLIENT|KILL|ID|9999
CLIENT|KILL|BAD|1
CLIENT|KILL|TYPE|x
CLIENT|KILL|TYPE|normal|SKIPME|x
CLIENT|LIST|TYPE|x
CLIENT|LIST|TYPE|pubsub
CLIENT|LIST|ID|9999
CLIENT|LIST|ID|x
CLIENT|LIST|x
MULTI|x
NOSUCH
INCR|K
WATCH
UNWATCH|x
CONFIG|GET
CONFIG|GET|nosuch
CONFIG|SET|nosuch|1
CONFIG|SET|maxmemory|x
CONFIG|SET|maxmemory
CONFIG|SET|maxmemory|1mb|maxmemory|2mb
CONFIG|RESETSTAT
CONFIG|x
MEMORY|USAGE|nokey
MEMORY|x
COMMAND|COUNT|x
COMMAND|GETKEYS|MSET|a|1|b|2
COMMAND|GETKEYS|PING
COMMAND|GETKEYS|NOSUCH
COMMAND|GETKEYS|GET
COMMAND|GETKEYS|EXPIRE|a|1
COMMAND|INFO|nosuch
COMMAND|x
AUTH
AUTH|x
AUTH|default|x
AUTH|a|b|c
SELECT|-1
SELECT|16
SELECT|99999999999999999999
SET|K|v|GET|NX
SET|K|v|GET
GETRANGE|K|a|b
SETRANGE|K|-1|x
SETRANGE|K|536870912|x
SETRANGE|nokey|5|
INCRBYFLOAT|K|x
INCRBYFLOAT|K|1e400
INCRBYFLOAT|K|0.1
INCRBYFLOAT|K|-0.1
DECRBY|K|-9223372036854775808
INCRBY|K|x
APPEND|K|x
STRLEN|K
MSET|a
MSETNX|a|1|a|2
MGET|a|K|K
HINCRBYFLOAT|K|f|nan
HINCRBY|K|f|x
HSET|K|a
HSET|s2|a|b|c
HMGET|K
HGETALL|K
HSCAN|nokey|0|NOVALUES
HSCAN|K|0|NOVALUES
ZSCAN|K|0|COUNT|a
HSCAN|K|x
HSCAN|nokey|0
RANDOMKEY|x
DBSIZE|x
KEYS
TOUCH
TOUCH|K|K|nokey
UNLINK
PING|a|b
ECHO
TIME|x
LASTSAVE|x
SAVE|x
SHUTDOWN|x
SHUTDOWN|SAVE|NOSAVE
SHUTDOWN|ABORT
SHUTDOWN|ABORT|NOSAVE
CLIENT|KILL|USER|x
CLIENT|KILL|TYPE|pubsub
CLIENT|NO-EVICT|off
SUBSTR|K|0|1
GETDEL|K
GETSET|K|x
SCAN|0|TYPE
SCAN|99999999999999999999
OBJECT|FREQ
""".splitlines()]
UNORDERED = {"HKEYS", "HVALS", "KEYS", "HGETALL", "SCAN", "HSCAN", "ZSCAN"}


class Commands:
    def __init__(self, seed):
        self.r = random.Random(seed)
        self.in_multi = False

    def key(self):
        return self.r.choice(KEYS)

    def value(self):
        r = self.r
        kind = r.randrange(8)
        if kind < 3:
            return str(r.randint(-20, 20))
        if kind == 3:
            return r.choice(["1.5", "-2.25", "1e3", "abc", "", " 1", "9223372036854775807", "-9223372036854775808",
                             "0x10", "inf", "nan", "00", "+1", "1 ", "3.0e-2"])
        if kind == 4:
            return bytes(r.randrange(256) for _ in range(r.randrange(12)))
        if kind == 5:
            return "x" * r.choice([1, 43, 44, 45, 100, 1000, 16383, 16384, 20000])
        return r.choice("abcdef") * r.randrange(1, 10)

    def number(self):
        return self.r.choice([0, 1, -1, 2, 3, 5, -5, 10, 100, "a", "", "1.5", 9223372036854775807,
                              -9223372036854775808, "9223372036854775808"]) \
            if self.r.random() < .5 else self.r.randint(-10, 10)

    def score(self):
        r = self.r
        return r.choice(["inf", "-inf", "+inf", "nan", "a", "1.5", "-0.1", "1e10", "0.1", "3.3333333"]) \
            if r.random() < .2 else r.randint(-5, 5)

    def bound(self):
        r = self.r
        score = r.choice(["-inf", "+inf", "(1", "(-inf", "x", "2.5"]) if r.random() < .4 else r.randint(-5, 5)
        return score if r.random() < .8 else f"({score}"

    def lex(self):
        return self.r.choice(["-", "+", "[f2", "(f2", "[f5", "(f6", "[", "f3", "[f"])

    def far(self, seconds):
        """A time in a week or so, that never ends in the test."""
        base = int(time.time()) + 604800 + self.r.randrange(1000)
        return base if seconds else base * 1000

    def expiry(self):
        r = self.r
        return r.choice([["EX", 604800], ["PX", 604800000], ["EXAT", self.far(True)], ["PXAT", self.far(False)],
                         ["EX", 0], ["PX", -1], ["EX", "a"], ["EX"], ["EX", 9223372036854775807]])

    def one(self):
        r, key = self.r, self.key
        some = [[], ["NX"], ["XX"], ["GET"], ["KEEPTTL"], ["NX", "XX"], ["NX", "GET"], ["bad"]]
        table = [
            (8, lambda: ["GET", key()]),
            (8, lambda: ["SET", key(), self.value()]),
            (5, lambda: ["SET", key(), self.value(), *r.choice(some),
                         *(self.expiry() if r.random() < .5 else [])]),
            (1, lambda: ["SETEX", key(), r.choice([604800, 0, -1, "a"]), self.value()]),
            (1, lambda: ["PSETEX", key(), r.choice([604800000, 0, -1, "a"]), self.value()]),
            (1, lambda: ["SETNX", key(), self.value()]),
            (2, lambda: ["MGET", *(key() for _ in range(r.randrange(1, 5)))]),
            (1, lambda: ["MSET", *(x for _ in range(r.randrange(1, 4)) for x in (key(), self.value()))]),
            (1, lambda: ["MSET", key(), 1, key()]),
            (1, lambda: ["MSETNX", *(x for _ in range(r.randrange(1, 3)) for x in (key(), self.value()))]),
            (1, lambda: ["GETSET", key(), self.value()]),
            (1, lambda: ["GETDEL", key()]),
            (2, lambda: ["GETEX", key(), *r.choice([[], ["PERSIST"], ["PERSIST", "EX", 1], self.expiry()])]),
            (3, lambda: ["APPEND", key(), self.value()]),
            (1, lambda: ["STRLEN", key()]),
            (2, lambda: [r.choice(["GETRANGE", "SUBSTR"]), key(), self.number(), self.number()]),
            (2, lambda: ["SETRANGE", key(), r.choice([0, 1, 5, 30, -1, "a", 536870912, 20000]), self.value()]),
            (3, lambda: [r.choice(["INCR", "DECR"]), key()]),
            (3, lambda: [r.choice(["INCRBY", "DECRBY"]), key(), self.number()]),
            (3, lambda: ["INCRBYFLOAT", key(), r.choice([self.number(), "0.1", "1e2", "3.0e3", "inf", "nan", "-.5"])]),
            (2, lambda: [r.choice(["DEL", "UNLINK", "EXISTS", "TOUCH"]), *(key() for _ in range(r.randrange(1, 4)))]),
            (1, lambda: ["COPY", key(), key(), *r.choice([[], ["REPLACE"], ["DB", 0], ["DB", 1], ["DB", 99],
                                                          ["DB", "x"], ["x"]])]),
            (3, lambda: self.expire()),
            (3, lambda: [r.choice(["TTL", "PTTL", "EXPIRETIME", "PEXPIRETIME", "PERSIST", "TYPE"]), key()]),
            (1, lambda: [r.choice(["RENAME", "RENAMENX"]), key(), key()]),
            (1, lambda: ["KEYS", r.choice(["*", "k?", "k1*", "k[0-4]", "k[^1]", "\\k2", "x", "", "**1", "k[1", "[k]3"])]),
            (1, lambda: ["DBSIZE"]),
            (1, lambda: ["SCAN", 0, "COUNT", 100000, *r.choice([[], ["TYPE", "hash"], ["MATCH", "k1*"],
                                                                ["TYPE", "string"]])]),
            (.3, lambda: ["SCAN", r.choice(["x", "-1", "0"]), r.choice(["COUNT", "MATCH", "BAD"]),
                          r.choice(["0", "a", "-1"])]),
            (.2, lambda: [r.choice(["FLUSHALL", "FLUSHDB"]), *r.choice([[], ["ASYNC"], ["SYNC"], ["x"]])]),
            (6, lambda: ["HSET", key(), *(x for _ in range(r.randrange(1, 4)) for x in (r.choice(FIELDS), self.value()))]),
            (.5, lambda: ["HSET", key(), "f"]),
            (1, lambda: ["HMSET", key(), *(x for _ in range(r.randrange(1, 3)) for x in (r.choice(FIELDS), self.value()))]),
            (1, lambda: ["HSETNX", key(), r.choice(FIELDS), self.value()]),
            (3, lambda: [r.choice(["HGET", "HEXISTS", "HSTRLEN"]), key(), r.choice(FIELDS)]),
            (1, lambda: ["HMGET", key(), *(r.choice(FIELDS) for _ in range(r.randrange(1, 4)))]),
            (3, lambda: [r.choice(["HGETALL", "HKEYS", "HVALS", "HLEN"]), key()]),
            (2, lambda: ["HDEL", key(), *(r.choice(FIELDS) for _ in range(r.randrange(1, 4)))]),
            (2, lambda: ["HINCRBY", key(), r.choice(FIELDS), self.number()]),
            (2, lambda: ["HINCRBYFLOAT", key(), r.choice(FIELDS), r.choice([self.number(), "0.1", "inf", "1e5"])]),
            (1, lambda: ["HSCAN", key(), 0, "COUNT", 100000, *r.choice([[], ["MATCH", "f[1-3]"]])]),
            (6, lambda: ["ZADD", key(), *r.choice([[], [], [], ["NX"], ["XX"], ["GT"], ["LT"], ["CH"], ["INCR"],
                                                   ["NX", "XX"], ["GT", "LT"], ["GT", "CH"], ["XX", "INCR"],
                                                   ["LT", "INCR"]]),
                         *(x for _ in range(r.randrange(1, 4)) for x in (self.score(), r.choice(FIELDS)))]),
            (.3, lambda: ["ZADD", key(), 1, "a", 2]),
            (2, lambda: ["ZREM", key(), *(r.choice(FIELDS) for _ in range(r.randrange(1, 3)))]),
            (3, lambda: [r.choice(["ZSCORE", "ZRANK", "ZREVRANK"]), key(), r.choice(FIELDS)]),
            (1, lambda: ["ZMSCORE", key(), *(r.choice(FIELDS) for _ in range(r.randrange(1, 4)))]),
            (2, lambda: ["ZINCRBY", key(), self.score(), r.choice(FIELDS)]),
            (2, lambda: ["ZCOUNT", key(), self.bound(), self.bound()]),
            (1, lambda: ["ZCARD", key()]),
            (1, lambda: ["ZLEXCOUNT", r.choice(LEX_KEYS), self.lex(), self.lex()]),
            (2, lambda: ["ZADD", r.choice(LEX_KEYS), 0, r.choice(FIELDS)]),
            (1, lambda: ["ZREM", r.choice(LEX_KEYS), r.choice(FIELDS)]),
            (5, lambda: self.zrange()),
            (2, lambda: [r.choice(["ZRANGEBYSCORE", "ZREVRANGEBYSCORE"]), key(), self.bound(), self.bound(),
                         *r.choice([[], ["WITHSCORES"], ["LIMIT", 1, 2], ["LIMIT", 0, -1], ["LIMIT", -1, 2],
                                    ["WITHSCORES", "LIMIT", 1, 3], ["LIMIT", 1], ["x"]])]),
            (1, lambda: [r.choice(["ZRANGEBYLEX", "ZREVRANGEBYLEX"]), r.choice(LEX_KEYS), self.lex(), self.lex(),
                         *r.choice([[], ["LIMIT", 1, 2], ["WITHSCORES"]])]),
            (1, lambda: ["ZREVRANGE", key(), self.number(), self.number(), *r.choice([[], ["WITHSCORES"], ["x"]])]),
            (1, lambda: ["ZSCAN", key(), 0, "COUNT", 100000]),
            (1, lambda: r.choice([["PING"], ["PING", "x"], ["PING", "a", "b"], ["ECHO", "x"], ["ECHO"], ["nosuch", "a"],
                                  ["GET"], ["SELECT", 0], ["SELECT", 99], ["SELECT", "x"], ["HGET", "k1"],
                                  ["OBJECT", "ENCODING", "none"], ["OBJECT", "REFCOUNT", "none"], ["OBJECT", "x", "y"],
                                  ["TYPE"], ["AUTH", "x"], ["AUTH", "u", "x"], ["CLIENT", "GETNAME"], ["HELLO", "4"],
                                  ["HELLO", "x"], ["CLIENT", "SETNAME", "a b"], ["RANDOMKEY", "x"], ["EXEC", "a"],
                                  ["MEMORY", "USAGE", "none"], ["COMMAND", "GETKEYS", "GET", "k"]])),
            (3, lambda: self.edge(r.choice(EDGES))),
            (2, lambda: self.transaction()),
        ]
        weights = [w for w, _ in table]
        return r.choices(table, weights)[0][1]()

    def edge(self, words):
        return [self.key() if word == "K" else word for word in words]

    def edges(self):
        """Each once, outside a transaction."""
        return [["DISCARD"], *map(self.edge, EDGES)]

    def transaction(self):
        return self.r.choice([["MULTI"], ["MULTI"], ["EXEC"], ["EXEC"], ["EXEC"], ["DISCARD"],
                              ["WATCH", self.key()], ["UNWATCH"]])

    def expire(self):
        r = self.r
        name = r.choice(["EXPIRE", "PEXPIRE", "EXPIREAT", "PEXPIREAT"])
        seconds, absolute = name in ("EXPIRE", "EXPIREAT"), name.endswith("AT")
        if absolute:
            amount = self.far(seconds)
        else:
            # Hardly ever the same twice: whether it is greater (GT) would depend on the millisecond.
            amount = r.randrange(604800, 700000) * (1 if seconds else 1000)
        if r.random() < .25:
            amount = r.choice([0, -1, "a", 9223372036854775807, -9223372036854775808])
        return [name, self.key(), amount, *r.choice([[], [], ["NX"], ["XX"], ["GT"], ["LT"], ["NX", "GT"],
                                                     ["GT", "LT"], ["XX", "LT"], ["y"]])]

    def zrange(self):
        r = self.r
        by = r.choice(["", "", "BYSCORE", "BYLEX"])
        low, high = {"": self.number, "BYSCORE": self.bound, "BYLEX": self.lex}[by], None
        words = ["ZRANGE", r.choice(LEX_KEYS) if by == "BYLEX" else self.key(), low(), low()]
        words += [by] if by else []
        words += ["REV"] if r.random() < .4 else []
        words += r.choice([[], [], ["LIMIT", 1, 2], ["LIMIT", 0, -1]])
        words += ["WITHSCORES"] if r.random() < .4 else []
        return words


def normal(command, reply):
    """What of a reply is compared."""
    name = str(command[0]).upper()
    if isinstance(reply, Error):
        return ("error", str(reply))
    if name in ("SCAN", "HSCAN", "ZSCAN") and isinstance(reply, list):
        if 100000 not in command:
            return "a step"  # how far one step goes is each server's affair
        items = reply[1]
        if name != "SCAN":
            items = list(zip(items[::2], items[1::2]))
        return [reply[0], sorted(items)]
    if name == "HGETALL" and isinstance(reply, list):
        return sorted(zip(reply[::2], reply[1::2]))
    if name == "HGETALL" and isinstance(reply, tuple):
        return sorted(reply[1])
    if name in UNORDERED and isinstance(reply, list):
        return sorted(reply)
    return reply


def same(command, ours, theirs):
    if normal(command, ours) == normal(command, theirs):
        return True
    name = str(command[0]).upper()
    grace = {"TTL": 30, "PTTL": 30000, "EXPIRETIME": 30, "PEXPIRETIME": 30000}.get(name)
    if grace and isinstance(ours, int) and isinstance(theirs, int) and ours > 0 and theirs > 0:
        return abs(ours - theirs) <= grace
    return False


def compare(ours, theirs, commands, queued):
    """Sends the commands to both. The commands of a transaction are kept, for comparing what EXEC returns."""
    for command, a, b in zip(commands, ours.many(commands), theirs.many(commands)):
        name = str(command[0]).upper()
        if name == "EXEC" and isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
            for inner, x, y in zip(queued, a, b):
                if not same(inner, x, y):
                    return f"{inner!r} in EXEC: crestdb {x!r}, redis {y!r}"
        elif not same(command, a, b):
            return f"{command!r}: crestdb {a!r}, redis {b!r}"
        if a == "QUEUED":
            queued.append(command)
        elif name in ("EXEC", "DISCARD") or (name == "MULTI" and a == "OK"):
            queued.clear()
    return ""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--commands", type=int)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--most-failures", type=int, default=1, help="go on after the first of them")
    arguments, options = parser.parse_known_args()
    skip_without("redis-server")
    count = arguments.commands or (1_000_000 if os.environ.get("OBASE_TEST_TIER") == "long" else 20_000)
    with scratch() as directory, crestdb(arguments.program, directory, *options) as one, redis(directory) as two:
        ours, theirs = one.client(), two.client()
        commands = Commands(arguments.seed)
        done, queued, failed = 0, [], 0
        for protocol in ("2", "3"):
            for client in (ours, theirs):
                client.many([["MULTI"], ["DISCARD"], ["HELLO", protocol]])
            queued.clear()
            most = count * (1 if protocol == "2" else 2) // 2
            # At first no key is there; in the end most are.
            batches = itertools.chain([commands.edges()], itertools.repeat(None))
            while done < most:
                batch = next(batches) or [commands.one() for _ in range(200)]
                if done + len(batch) >= most:
                    batch += commands.edges()
                why = compare(ours, theirs, batch, queued)
                if why:
                    print(f"after {done} commands, seed {arguments.seed}, RESP{protocol}: {why}")
                    failed += 1
                    if failed == arguments.most_failures:
                        return 1
                    for client in (ours, theirs):
                        client.many([["MULTI"], ["DISCARD"], ["FLUSHALL"]])
                    queued.clear()
                done += len(batch)
        print(f"{done} commands, {failed} batches with another reply" if failed else f"{done} commands, the same replies")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
