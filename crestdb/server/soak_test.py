#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Churn and expiry for a long time: memory stays what the live data needs.

usage: soak_test.py CRESTDB [--rounds N] [options of crestdb ...]

A day of a cache in rounds: in each, a tenth of the keys is replaced by others of other sizes, keys end by themselves,
hashes and sorted sets grow and shrink, values are appended to, clients come and go, and now and then a snapshot is
written in the background. The collector's window is .2 s instead of 120, so a round of some tenths of a second is as
many windows as minutes of a server. Whatever the rounds, the same number of keys is live. What is compared:

  used_memory       of the server's accounts, between rounds alike: growth is what the accounts forget
  used_memory_rss   beside used_memory, in the first third of the rounds and in the last: growth is what leaks
  history           of the collector's windows, of which obase keeps 1,024 (4 MiB) unless it is told otherwise: one
  at the end        all keys deleted: the accounts are what empty tables take

200 rounds in the long tier, 5,000 in the soak tier; 20 by hand. Exit status 1 if memory grew.
"""

import argparse
import os
import random
import sys

from resp import Error, crestdb, scratch

ROUNDS = {"long": 200, "soak": 5000}.get(os.environ.get("OBASE_TEST_TIER", ""), 20)
KEYS = 20_000


def info(client, *fields):
    text = dict(line.split(":", 1) for line in client("INFO").decode().split("\r\n") if ":" in line)
    return [int(text[field]) for field in fields]


def several(client, commands):
    for at in range(0, len(commands), 500):
        for command, reply in zip(commands[at:at + 500], client.many(commands[at:at + 500])):
            if isinstance(reply, Error):
                raise AssertionError(f"{command[:2]}: {reply}")


def value(r):
    return bytes([97 + r.randrange(26)]) * (r.randrange(20, 400) if r.random() < .99 else r.randrange(16_000, 70_000))


def one_round(s, client, r, number):
    commands = []
    # Other sizes for a tenth; another tenth ends within the next seconds, and is there again in the next round.
    for key in r.sample(range(KEYS), KEYS // 10):
        commands.append(("SET", f"k{key}", value(r)))
    for key in r.sample(range(KEYS), KEYS // 10):
        commands.append(("SET", f"k{key}", value(r), "PX", r.randrange(1, 3000)))
    for _ in range(300):
        commands.append(("APPEND", f"a{r.randrange(50)}", b"x" * r.randrange(2000)))
        h, z = f"h{r.randrange(20)}", f"z{r.randrange(20)}"
        commands.append(("HSET", h, f"f{r.randrange(500)}", value(r)[:300]))
        commands.append(("HDEL", h, f"f{r.randrange(500)}"))
        commands.append(("ZADD", z, r.randrange(1000), f"m{r.randrange(500)}"))
        commands.append(("ZREM", z, f"m{r.randrange(500)}"))
    commands += [("DEL", f"a{i}") for i in range(50) if (i + number) % 5 == 0]
    several(client, commands)
    # Hot ones.
    several(client, [("GET", f"k{key}") for key in range(1000)])
    # Clients that go without a word.
    for _ in range(20):
        gone = s.client()
        gone.send(("WATCH", "k1", "k2"), ("MULTI",), ("GET", "k1"))
        gone.socket.sendall(b"*3\r\n$3\r\nSET\r\n$5\r\nk")
        gone.close()
    if number % 50 == 49:
        client("BGSAVE")


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("crestdb")
    arguments.add_argument("--rounds", type=int, default=ROUNDS)
    args, options = arguments.parse_known_args()
    r = random.Random(1)
    overheads, rss = [], []
    with scratch() as directory, crestdb(args.crestdb, directory, "--threads", 2, "--window", .2, "--cold", f"file:{directory}",
                                         "--hints", "pageout", "--timeout", 60, *options) as s:
        client = s.client()
        for number in range(args.rounds):
            one_round(s, client, r, number)
            # Of the same live data: every key there, none that ends.
            several(client, [("SET", f"k{key}", b"v" * (key * 37 % 300)) for key in range(KEYS)])
            several(client, [("DEL", f"{kind}{i}") for kind in "ahz" for i in range(50)])
            if client("DBSIZE") != KEYS:
                raise AssertionError(f"{client('DBSIZE')} keys")
            used, resident = info(client, "used_memory", "used_memory_rss")
            overheads.append(used)
            rss.append(resident)
            if number % max(1, args.rounds // 20) == 0:
                print(f"round {number}: used {used >> 10} KiB, resident {resident >> 10} KiB", flush=True)
        third = max(1, args.rounds // 3)
        several(client, [("DEL", f"k{key}") for key in range(KEYS)])
        end, history, windows = info(client, "used_memory", "obase_history_windows", "obase_windows")
    print(f"used {min(overheads) >> 10} to {max(overheads) >> 10} KiB; resident at most {max(rss[:third]) >> 10} KiB in the first "
          f"third, {max(rss[-third:]) >> 10} in the last; {end >> 10} KiB of an empty server")
    failed = []
    # Tables keep some room after growth: that is all that may differ for the same data.
    if max(overheads[-third:]) > min(overheads) * 1.1 + (1 << 20):
        failed.append("the accounts grew")
    if max(rss[-third:]) > max(rss[:third]) * 1.1 + (8 << 20):
        failed.append("resident memory grew")
    if history > 1 or windows < 2:
        failed.append(f"{history} of {windows} windows are kept")
    if end > 256 * 1024:
        failed.append("an empty server has used memory")
    print("; ".join(failed) or "no growth")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
