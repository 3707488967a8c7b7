#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""crestdb from outside: connections, limits, passwords, snapshots, kills, and what is cold.

usage: server_test.py CRESTDB [NAME ...]     only the tests of these names

Exit status 77 never: what a test needs and this machine lacks is said, and the test is left out.
"""

import os
import pathlib
import random
import re
import resource
import select
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request

from resp import Client, Error, crestdb, packed, reserved_port, scratch

PROGRAM = None
LONG = os.environ.get("OBASE_TEST_TIER") == "long"


def check(condition, what):
    if not condition:
        raise AssertionError(what)


def eventually(condition, what):
    """Waits for it, however slow the machine is; a test that hangs is ended from outside, and has said for what."""
    begin = said = time.monotonic()
    while not condition():
        if time.monotonic() > said + 30:
            said = time.monotonic()
            print(f"  waiting since {said - begin:.0f} s: {what}", flush=True)
        time.sleep(0.02)


def server(directory, *options, **how):
    return crestdb(PROGRAM, directory, *options, **how)


def info(client, field):
    for line in client("INFO").decode().split("\r\n"):
        if line.startswith(field + ":"):
            return line.split(":", 1)[1]
    raise AssertionError(f"INFO has no {field}")


def refused(*options, status=None):
    """The message of a server that does not start, with that status or any other than 0."""
    with scratch() as directory:
        done = subprocess.run([pathlib.Path(PROGRAM).resolve(), *map(str, options)], cwd=directory, timeout=30,
                              capture_output=True, text=True)
        check(done.returncode in ((1, 2) if status is None else (status,)), f"{options}: status {done.returncode}")
        check(len(done.stderr.strip().splitlines()) >= 1, f"{options}: no message")
        return done.stderr


def test_command_line():
    check("needs --requirepass" in refused("--port", 1, "--bind", "0.0.0.0"), "open to the network")
    for option, value in (("--protocol", "x"), ("--hints", "x"), ("--maxmemory", "1xb"), ("--memory", "10Q"),
                          ("--cold", "/tmp"), ("--policy", "foo"), ("--mode", "foo"), ("--cold-threads", "0"),
                          ("--maxmemory-policy", "lru"), ("--timeout", "long"), ("--unixsocketperm", "9")):
        said = refused(option, value, status=2)
        check(option in said and value in said and "_" not in said, f"{option} {value}: {said}")
    check("/does/not/exist" in refused("--cold", "file:/does/not/exist", status=1), "COLD's directory")
    check("no such directory" in refused("--dir", "/does/not/exist"), "directory")
    check("nothing to listen on" in refused("--port", 0), "no socket")
    with scratch() as directory:
        how = "--unixsocket", f"{directory}/s", "--dir", directory, "--no-load"
        said = refused(*how, "--pidfile", f"{directory}/none/p", status=1)
        check("none/p" in said and "written" in said, f"a file for the process's number: {said}")
    check("no address" in refused("--port", 1, "--bind", "nowhere.example"), "address")
    with scratch() as directory:
        # The file that is installed: as it is, and with every setting in it.
        shipped = pathlib.Path(__file__).resolve().parents[2] / "packaging/server/crestdb.conf.in"
        every = pathlib.Path(directory) / "every.conf"
        lines = [line[1:] if re.match(r"#[a-z-]+ = .", line) else line for line in shipped.read_text().splitlines()
                 if not line.startswith("#requirepass")]  # tested elsewhere
        every.write_text("\n".join(lines).replace("/var/lib/crestdb", directory).replace("/run/crestdb", directory))
        check(sum(" = " in line and line[0] != "#" for line in lines) > 20, "the file's settings are found")
        for conf in (shipped, every):
            with server(directory, "--config", conf, name="d") as s:
                check(str(s.client()("GET", "k"))[:6] in ("None", "NOAUTH"), conf)
        for text, place, expected in (
                ("# what\nnosuchthing = 1\n", 2, "'nosuchthing' is no setting"),
                ("port = 1\n\nport 6390\n", 3, "expected 'name = value', not 'port 6390'"),
                ("[network]\n", 1, "expected 'name = value'"),
                ("port = 1\nport = 2\n", 2, f"'port' is set already, at {every}:1"),
                ("port = x\n", 1, "--port"), ("port = 65536\n", 1, "--port"), ("memory = 10Q\n", 1, "--memory"),
                ("maxmemory = 1xb\n", 1, "--maxmemory"), ("config = other\n", 1, "'config' is no setting"),
                ("dbfilename = a/b\n", 1, "--dbfilename"), ("load = perhaps\n", 1, "perhaps")):
            every.write_text(text)
            said = refused("--config", every, status=2)
            check(said.startswith(f"crestdb: {every}:{place}: ") and expected in said, f"{text!r}: {said}")
        check("--config" in refused("--config", "/does/not/exist", status=2), "no such file")
        check("--config" in refused("--config", directory, status=2), "a directory")
        name = pathlib.Path(directory) / "c.conf"
        with reserved_port() as port:
            name.write_text(f"# a comment\nport = {port}\nmaxmemory = 100mb\nmaxmemory-policy = allkeys-lru\n"
                            "unixsocket = c\nmemory = none\nno-load = true\nhints = \"none\"\n")
            with server(directory, "--config", name, name="c", tcp_port=port) as s:
                check(s.client()("CONFIG", "GET", "maxmemory") == [b"maxmemory", b"104857600"], "file is read")
                check(Client(("127.0.0.1", port))("PING") == "PONG", "TCP")


def test_frames():
    with scratch() as directory, server(directory, "--threads", 2) as s:
        stream = b"".join(packed(("SET", f"k{i}", "v" * i)) + packed(("GET", f"k{i}")) for i in range(40))
        for step in (1, 3, 7, 64):
            c = s.client()
            for at in range(0, len(stream), step):
                c.socket.sendall(stream[at:at + step])
            for i in range(40):
                check(c.read() == "OK" and c.read() == b"v" * i, f"pieces of {step}")
        for bytes_, error in ((b"*1\r\n$-5\r\n", "invalid bulk length"), (b"*a\r\n", "invalid multibulk length"),
                              (b"*1\r\n$99999999999\r\n", "invalid bulk length"), (b"*1\r\nx\r\n", "expected '$'"),
                              (b'get "x\r\n', "unbalanced quotes"), (b"x" * 70000, "too big inline")):
            c = s.client()
            c.socket.sendall(bytes_)
            reply = c.read()
            check(isinstance(reply, Error) and error in reply, f"{bytes_[:20]}: {reply}")
            try:
                c.read()
                check(False, "still open after a protocol error")
            except (ConnectionError, OSError):
                pass
        c = s.client()
        c.socket.sendall(b"POST / HTTP/1.1\r\nHost: x\r\n\r\nFLUSHALL\r\n")
        check(c.socket.recv(100) == b"", "HTTP is closed without an answer")
        # What is announced is not set aside.
        before = int(info(s.client(), "used_memory_rss"))
        many = [s.client() for _ in range(50)]
        for c in many:
            c.socket.sendall(b"*2\r\n$3\r\nGET\r\n$500000000\r\nabc")
        time.sleep(0.3)
        check(int(info(s.client(), "used_memory_rss")) < before + (64 << 20), "memory for announced bytes")
        # Half-closed: what was sent is answered.
        c = s.client()
        c.send(*[("PING",)] * 1000)
        c.socket.shutdown(socket.SHUT_WR)
        check(all(c.read() == "PONG" for _ in range(1000)), "half-closed")
        check(s.client()("PING") == "PONG", "the server lives")


def test_connections():
    count = 10_000 if LONG else 2000
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < count + 200:
        print(f"  left out: only {hard} open files are allowed")
        return
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4 * count), hard))
    with scratch() as directory, server(directory, "--threads", 2, "--maxclients", count) as s:
        first = s.client()
        before = int(info(first, "used_memory_rss"))
        clients = [s.client() for _ in range(count - 1)]
        for c in clients:
            c.send(("PING",))
        check(all(c.read() == "PONG" for c in clients), "all are answered")
        check(int(info(first, "connected_clients")) == count, "counted")
        grown = int(info(first, "used_memory_rss")) - before
        check(grown < count * 10 * 1024, f"{grown // count} bytes for an idle connection")
        late = s.client()
        check(late.read() == "ERR max number of clients reached", "one too many")
        # A third die without a word, the others are served.
        for c in clients[::3]:
            c.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            c.close()
        rest = [c for i, c in enumerate(clients) if i % 3]
        for c in rest:
            c.send(("ECHO", "x"))
        check(all(c.read() == b"x" for c in rest), "the others are served")
        eventually(lambda: int(info(first, "connected_clients")) == len(rest) + 1, "the dead are gone")
        # KILL and idle ones.
        victim = rest[0]
        number = victim("CLIENT", "ID")
        check(first("CLIENT", "KILL", "ID", number) == 1, "killed")
        try:
            victim("PING")
            check(False, "a killed client is served")
        except (ConnectionError, OSError):
            pass
        check(first("CONFIG", "SET", "timeout", 1) == "OK", "timeout")
        eventually(lambda: int(info(first, "connected_clients")) <= 1, "idle clients are closed")


def test_few_descriptors():
    with scratch() as directory:
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        s = server(directory)
        s.command = ["prlimit", "--nofile=100:100"] + s.command
        with s:
            clients = []
            for _ in range(120):
                try:
                    clients.append(s.client(timeout=2))
                except OSError:
                    break
            served = 0
            for c in clients:
                try:
                    served += c("PING") == "PONG"
                except (OSError, ConnectionError):
                    pass
            check(20 <= served <= 40, f"{served} of {len(clients)} served with 100 descriptors")
            for c in clients:
                c.close()
            eventually(lambda: s.client(timeout=5)("PING") == "PONG", "the server lives")
            check(s.client()("SET", "k", "v") == "OK", "and works")


def test_slow_reader():
    with scratch() as directory, server(directory, "--threads", 1) as s:
        c = s.client()
        value = b"x" * 100_000
        c("SET", "large", value)
        c("SET", "small", "y" * 1000)
        before = int(info(c, "used_memory_rss"))
        slow = s.client()
        slow.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        requests = packed(("GET", "small")) * 30000 + packed(("GET", "large")) * 200
        # Sent in another thread: the server stops reading when its bounds are reached.
        sender = threading.Thread(target=lambda: slow.socket.sendall(requests))
        sender.start()
        time.sleep(0.5)
        check(c("PING") == "PONG", "others are served")
        grown = int(info(c, "used_memory_rss")) - before
        check(grown < 40 << 20, f"{grown} bytes for a client that does not read")
        c("SET", "large", "z" * 100_000)  # replies under way are as of their requests, or later ones
        for i in range(30000):
            check(slow.read() == b"y" * 1000, f"reply {i}")
        for i in range(200):
            got = slow.read()
            check(got in (value, b"z" * 100_000), f"large reply {i} is mixed")
        sender.join()


def test_large_values_move_while_they_are_sent():
    with scratch() as directory, server(directory, "--threads", 2, "--window", 0.05, "--cold", f"file:{directory}",
                                        "--hints", "pageout") as s:
        c = s.client()
        values = {f"k{i}": bytes([97 + i % 26]) * (20_000 + 1000 * i) for i in range(40)}
        for key, value in values.items():
            c("SET", key, value)
        slow = [s.client() for _ in range(6)]
        for reader in slow:
            reader.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        moved = 0
        rounds = 0
        while rounds < (800 if LONG else 25) or moved == 0:
            keys = random.sample(sorted(values), 6)
            for reader, key in zip(slow, keys):
                reader.send(("GET", key))
            time.sleep(0.05)  # windows pass while the replies are in the middle
            for key in keys[:2]:
                # Replaced and deleted while it is sent.
                c("DEL", key)
                c("SET", key, values[key])
            for reader, key in zip(slow, keys):
                check(reader.read() == values[key], f"{key} is not what was stored")
            rounds += 1
            moved = int(re.search(rb"obase_moved_objects:(\d+)", c("INFO", "obase"))[1])


def test_passwords():
    with scratch() as directory, server(directory) as s:
        admin = s.client()
        check(admin("CONFIG", "SET", "requirepass", "secret") == "OK", "set")
        c = s.client()
        check(str(c("GET", "k")).startswith("NOAUTH"), "GET")
        check(str(c("HELLO", 3)).startswith("NOAUTH"), "HELLO")
        check(str(c("AUTH", "wrong")).startswith("WRONGPASS"), "wrong")
        check(str(c("AUTH", "other", "secret")).startswith("WRONGPASS"), "user")
        check(c("HELLO", 3, "AUTH", "default", "secret")[0] == "map", "HELLO with AUTH")
        check(c("GET", "k") is None, "then served")
        check(c("RESET") == "RESET" and str(c("GET", "k")).startswith("NOAUTH"), "RESET forgets")
        check(c("AUTH", "secret") == "OK", "AUTH")


def test_expiry_and_clients():
    with scratch() as directory, server(directory, "--threads", 2) as s:
        c = s.client()
        for i in range(2000):
            c.send(("SET", f"k{i}", "v", "PX", 300 + i % 50))
        for i in range(2000):
            c.read()
        check(c("SET", "stays", "v") == "OK", "set")
        eventually(lambda: c("DBSIZE") == 1, "keys that nobody asks for end")
        check(int(info(c, "expired_keys")) == 2000, "counted")
        check(c("SET", "k", "v", "PX", 30) == "OK", "set")
        time.sleep(0.05)
        check(c("GET", "k") is None and c("TTL", "k") == -2, "over at its time")
        c.send(("CLIENT", "REPLY", "SKIP"), ("PING",), ("ECHO", "a"), ("CLIENT", "REPLY", "OFF"), ("PING",),
               ("CLIENT", "REPLY", "ON"), ("ECHO", "b"))
        check([c.read() for _ in range(3)] == [b"a", "OK", b"b"], "CLIENT REPLY")
        check(c("CLIENT", "SETNAME", "me") == "OK" and b"name=me" in c("CLIENT", "LIST"), "names")
        check(c("QUIT") == "OK", "QUIT")


def test_atomicity():
    """Transfers between counters by several clients: the sum stays, seen from EXEC."""
    with scratch() as directory, server(directory, "--threads", 2, "--window", 0.05) as s:
        accounts = [f"account:{i}" for i in range(8)]
        s.client()("MSET", *(x for a in accounts for x in (a, 100)))
        rounds = 20_000 if LONG else 700
        wrong, writers = [], []

        def transfer(seed):
            r, c = random.Random(seed), s.client()
            for _ in range(rounds):
                a, b = r.sample(accounts, 2)
                c.send(("MULTI",), ("DECR", a), ("INCR", b), ("EXEC",))
                for _ in range(4):
                    c.read()

        def look():
            c = s.client()
            while any(w.is_alive() for w in writers):
                total = sum(int(v) for v in c("MGET", *accounts))
                if total != 800:
                    wrong.append(total)

        def watch():
            """Optimistic increments of one counter."""
            c = s.client()
            for _ in range(rounds):
                c("WATCH", "counter")
                value = int(c("GET", "counter") or 0)
                c.send(("MULTI",), ("SET", "counter", value + 1), ("INCR", "tries"), ("EXEC",))
                c.read(), c.read(), c.read(), c.read()

        writers += [threading.Thread(target=transfer, args=(i,)) for i in range(3)]
        writers += [threading.Thread(target=watch) for _ in range(2)]
        threads = writers + [threading.Thread(target=look)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        check(not wrong, f"sums {wrong[:3]}")
        c = s.client()
        check(c("GET", "counter") == c("GET", "tries"), "an optimistic increment was lost")


def test_snapshots():
    with scratch() as directory:
        s = server(directory)
        with s:
            c = s.client()
            for i in range(3000):
                c.send(("SET", f"k{i}", f"v{i}"))
            for i in range(3000):
                c.read()
            c("HSET", "h", "f", "v")
            c("ZADD", "z", 1.5, "m")
            check(c("SAVE") == "OK", "SAVE")
            c("SET", "later", 1)
            check(c("BGSAVE") == "Background saving started", "BGSAVE")
            eventually(lambda: info(c, "rdb_bgsave_in_progress") == "0", "the child ends")
            check(info(c, "rdb_last_bgsave_status") == "ok", "it was written")
            check(s.stop() == 0, "SIGTERM")
        check(not s.socket.exists(), "the socket is removed")
        with s:
            c = s.client()
            check(c("DBSIZE") == 3003 and c("GET", "k7") == b"v7" and c("ZSCORE", "z", "m") == b"1.5", "read back")
        path = pathlib.Path(directory) / "dump.crestdb"
        whole = bytearray(path.read_bytes())
        whole[len(whole) // 2] ^= 1
        path.write_bytes(whole)
        try:
            s.start()
            check(False, "a damaged snapshot was taken")
        except RuntimeError as error:
            check("is damaged at byte" in str(error), f"no place in: {error}")
        # Full: the error says so, and the old snapshot stays.
        path.unlink()
        with s:
            c = s.client()
            c("SET", "k", "v")
            check(c("SAVE") == "OK", "first")
            before = path.read_bytes()
            c("SET", "large", b"x" * 3_000_000)
            subprocess.run(["prlimit", f"--pid={s.process.pid}", "--fsize=1000000:1000000"], check=True)
            reply = c("SAVE")
            check(isinstance(reply, Error), f"a full disk: {reply}")
            check(path.read_bytes() == before, "the old snapshot is untouched")
            check(c("GET", "k") == b"v", "the server lives")


def test_kills():
    """SIGKILL at random moments of load and of BGSAVE: the last snapshot that was finished is there."""
    r = random.Random(7)
    with scratch() as directory:
        s = server(directory, "--threads", 2, "--window", 0.1)
        kept = 0
        for round_ in range(60 if LONG else 6):
            with s:
                c = s.client()
                check(c("GET", "generation") == (str(kept).encode() if kept else None),
                      f"generation {c('GET', 'generation')}, {kept} was saved")
                c("SET", "generation", kept + 1)
                for i in range(2000):
                    c.send(("SET", f"k{i}", f"{kept + 1}-" + "x" * 200))
                for i in range(2000):
                    c.read()
                check(c("SAVE") == "OK", "SAVE")
                kept += 1
                c("SET", "generation", "unsaved")
                c("DEL", "generation")
                c("SET", "generation", kept)
                c("BGSAVE")
                time.sleep(r.random() * 0.03)
                s.process.send_signal(signal.SIGKILL)
                s.process.wait()
                s.process = None
        with s:
            c = s.client()
            check(c("GET", "generation") == str(kept).encode(), "the last one")
            check(c("GET", "k1999") == f"{kept}-".encode() + b"x" * 200, "with its data")
        left = [p.name for p in pathlib.Path(directory).iterdir() if "unfinished" in p.name]
        check(not left, f"left over: {left}")


def test_where_cold_data_goes():
    with scratch() as directory:
        for hints, mode, says in (("pageout", "move", "needs --mode hint"), ("pageout", "hint", "leaves memory (--hints pageout)"),
                                  ("none", "move", "the kernel takes its memory"), ("pageout", "off", "nothing moves")):
            options = "--hints", hints, "--mode", mode
            with server(directory, "--cold", f"file:{directory}", *options) as s:
                check(says in s.log.read_text(), f"{options}: {s.log.read_text()}")
            s.log.unlink()
        if os.path.ismount("/dev/shm"):
            with server(directory, "--cold", "file:/dev/shm", "--hints", "pageout") as s:
                check("memory itself (tmpfs)" in s.log.read_text(), s.log.read_text())


def test_cold_data():
    with scratch() as directory, server(directory, "--threads", 1, "--window", 0.2, "--cold", f"file:{directory}",
                                        "--hints", "pageout", "--mode", "hint") as s:
        check("COLD is an unnamed file" in s.log.read_text(), "the first lines say where COLD goes")
        c = s.client()
        def file_pages():
            return int(re.search(r"RssFile:\s*(\d+)", pathlib.Path(f"/proc/{s.process.pid}/status").read_text())[1]) // 4
        at_first = file_pages()
        values = {f"key-{i}": (f"{i}-" * 200)[:800] for i in range(20000)}
        items = list(values.items())
        for at in range(0, len(items), 500):
            check(all(x == "OK" for x in c.many([("SET", *kv) for kv in items[at:at + 500]])), "SET")
        c("HSET", "h", *(x for i in range(2000) for x in (f"f{i}", f"v{i}" * 20)))
        hot = [f"key-{i}" for i in range(0, 400)]
        def left():
            c.many([("GET", k) for k in hot])
            text = c("INFO", "obase")
            cold = int((re.search(rb"obase_cold_live_bytes:(\d+)", text) or [0, 0])[1])
            return cold >= 8 << 20 and int(re.search(rb"obase_paged_out_bytes:(\d+)", text)[1]) > 0
        eventually(left, "what is not asked for leaves memory")
        for key, value in items[::7]:
            check(c("GET", key) == value.encode(), f"{key} came back wrong")
        check(c("HGET", "h", "f1999") == b"v1999" * 20, "a field")
        fields = c("HGETALL", "h")
        check(dict(zip(fields[::2], fields[1::2])) == {b"f%d" % i: b"v%d" % i * 20 for i in range(2000)}, "all of them")
        some = items[3::701]
        c.send(("MULTI",), *(("GET", key) for key, _ in some), ("EXEC",))
        for _ in range(len(some) + 1):
            c.read()
        check(c.read() == [value.encode() for _, value in some], "EXEC")
        check(c("HLEN", "h") == 2000, "all fields")
        # The child of a background save reads what is in the file, and writes nothing there.
        check(c("BGSAVE") == "Background saving started", "BGSAVE")
        eventually(lambda: info(c, "rdb_bgsave_in_progress") == "0", "the child ends")
        check(info(c, "rdb_last_bgsave_status") == "ok", s.log.read_text())
        for key, value in items[::97]:
            check(c("GET", key) == value.encode(), f"{key} is wrong after a background save")
        with server(directory, name="t") as again:
            d = again.client()
            check(d("DBSIZE") == c("DBSIZE") and d("HGET", "h", "f7") == b"v7" * 20, "the snapshot")
            for key, value in items[::97]:
                check(d("GET", key) == value.encode(), f"{key} is wrong in the snapshot")
        check(int(info(c, "cold_reads")) > 0, "cold data was read beside the event loop")
        # At the end nothing is read in order to be freed.
        eventually(lambda: file_pages() < at_first + 1000, "it leaves again")
        process, s.process = s.process, None
        before = int(pathlib.Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()[9])
        process.terminate()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        check(process.returncode == 0, f"status {status}")
        check(usage.ru_majflt - before < 1000, f"{usage.ru_majflt - before} pages were read at the end")


def test_cold_data_is_removed_unread():
    """Expiry, eviction and FLUSHALL of what is cold: to read it first would bring all of it back into memory."""
    with scratch() as directory, server(directory, "--threads", 1, "--window", 0.2, "--cold", f"file:{directory}",
                                        "--hints", "pageout") as s:
        c = s.client()

        def was_read():
            return int(re.search(r"^read_bytes: (\d+)", pathlib.Path(f"/proc/{s.process.pid}/io").read_text(), re.M)[1]) >> 20

        def cold():
            return int((re.search(rb"obase_cold_live_bytes:(\d+)", c("INFO", "obase")) or [0, 0])[1]) >> 20

        def resident():
            return int(re.search(r"RssFile:\s*(\d+)", pathlib.Path(f"/proc/{s.process.pid}/status").read_text())[1]) >> 10

        c("DEBUG", "SET-ACTIVE-EXPIRE", "0")
        value = "v" * 3000
        for at in range(0, 15000, 500):
            c.many([("SET", f"key-{i}", value, "PX", 1) if i % 3 == 0 else ("SET", f"key-{i}", value) for i in range(at, at + 500)])
        for at in range(0, 5000, 500):
            c("HSET", "h", *(x for i in range(at, at + 500) for x in (f"f{i}", value)))
        at_first = resident()
        eventually(lambda: cold() >= 54 and resident() < at_first + 8, "all of it leaves")
        before = was_read()
        c("DEBUG", "SET-ACTIVE-EXPIRE", "1")
        eventually(lambda: c("DBSIZE") == 10001, "keys end")
        check(was_read() - before < 6, f"{was_read() - before} MiB were read for 14 that ended")
        before = was_read()
        c("CONFIG", "SET", "maxmemory", int(info(c, "used_memory")) - (10 << 20), "maxmemory-policy", "allkeys-random")
        # The hash is more than 10 MiB itself: chosen early, it leaves most of the others.
        check(c("SET", "new", "v") == "OK" and (c("DBSIZE") < 8000 or c("EXISTS", "h") == 0), "keys are evicted")
        check(was_read() - before < 4, f"{was_read() - before} MiB were read for 10 that were evicted")
        before = was_read()
        c("FLUSHALL")
        eventually(lambda: cold() < 2, "all of it goes")
        check(was_read() - before < 6, f"{was_read() - before} MiB were read for more than 30 that were dropped")


def test_cold_threads():
    def threads(count):
        with scratch() as directory, server(directory, "--threads", 1, "--cold", f"file:{directory}", "--hints", "pageout",
                                            "--cold-threads", count) as s:
            c = s.client()
            check(c("CONFIG", "GET", "cold-threads") == [b"cold-threads", str(count).encode()], "the setting")
            names = [(task / "comm").read_text().strip() for task in pathlib.Path(f"/proc/{s.process.pid}/task").iterdir()]
            return names.count("crestdb/cold")
    check((threads(9), threads(2)) == (9, 2), "so many threads read cold data")


def stopped_writer(s, c):
    """Sends SAVE until its child is seen, which is stopped then; the child's number."""
    for _ in range(50):
        c.send(("SAVE",))
        end = time.monotonic() + 5
        while time.monotonic() < end and not select.select([c.socket], [], [], 0)[0]:
            for children in pathlib.Path(f"/proc/{s.process.pid}/task").glob("*/children"):
                try:
                    for child in children.read_text().split():
                        os.kill(int(child), signal.SIGSTOP)
                        # One that has ended can be stopped, too.
                        if pathlib.Path(f"/proc/{child}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z":
                            return int(child)
                except OSError:
                    continue
        check(c.read() == "OK", "SAVE")
    check(False, "no child was seen")


def test_stop_ends_save():
    """SIGTERM does not wait for the child of SAVE, in whichever thread that was asked for; what it wrote is removed."""
    for options in (("--hints", "pageout", "--mode", "hint"), ("--hints", "none")):
        with scratch() as directory, server(directory, "--threads", 1, "--window", 0.2, *options) as s:
            c = s.client()
            check(c("SAVE") == "OK", "SAVE")
            snapshot = {p.name: p.read_bytes() for p in pathlib.Path(directory).glob("*.crestdb")}
            for i in range(40):
                c.many([("SET", f"k{i}-{j}", b"x" * 1000) for j in range(500)])
            child = stopped_writer(s, c)
            s.process.send_signal(signal.SIGTERM)
            check(s.process.wait() == 0, f"the server ends: {s.log.read_text()}")
            check(not pathlib.Path(f"/proc/{child}").exists(), "its child is gone")
            check("given up, for the server stops" in s.log.read_text(), "the log says so")
            check(not [p for p in pathlib.Path(directory).iterdir() if "unfinished" in p.name], "nothing is left of it")
            check({p.name: p.read_bytes() for p in pathlib.Path(directory).glob("*.crestdb")} == snapshot,
                  "the snapshot before is there")


def test_save_stands_in_nobodys_way():
    """SAVE is written by a child: another client of the one I/O thread is served, and a child that dies is an error."""
    with scratch() as directory, server(directory, "--threads", 1, "--window", 0.2, "--cold", f"file:{directory}",
                                        "--hints", "pageout", "--mode", "hint") as s:
        c, other = s.client(), s.client()
        for i in range(40):
            c.many([("SET", f"k{i}-{j}", b"x" * 1000) for j in range(500)])
        check(c("KEYS", "k7-1?") and len(c("KEYS", "*")) == 20000, "KEYS, by a thread that may wait for the disk")
        check(c("RANDOMKEY").startswith(b"k"), "RANDOMKEY")
        caught = stopped_writer(s, c)
        check(other("GET", "k1-1") == b"x" * 1000 and other("SET", "k1-1", "y") == "OK", "others are served meanwhile")
        check(isinstance(other("SAVE"), Error) and isinstance(other("BGSAVE"), Error), "one at a time")
        os.kill(int(caught), signal.SIGKILL)
        reply = c.read()
        check(isinstance(reply, Error) and "ended with signal 9" in reply, f"a child that dies: {reply}")
        check(not [p for p in pathlib.Path(directory).iterdir() if "unfinished" in p.name], "nothing is left of it")
        check(c("SAVE") == "OK" and c("DBSIZE") == 20000, "and the next one")


def test_storm():
    """Everything at once: eviction, expiry, moves, background saves, clients that die in the middle of a frame."""
    with scratch() as directory, server(directory, "--threads", 2, "--window", 0.1, "--cold", f"file:{directory}", "--hints",
                                        "pageout", "--maxmemory", "3mb", "--maxmemory-policy", "allkeys-lru") as s:
        wrong = []

        def value(key, seed):
            return f"{key}/{seed}/".encode() + bytes([97 + seed % 26]) * (seed * 37 % 3000 if seed % 50 else 60_000)

        def load(number):
            r, c = random.Random(number), s.client()
            for _ in range(60_000 if LONG else 1500):
                if wrong:
                    break
                key, seed = f"{number}:{r.randrange(4000)}", r.randrange(1000)
                kind = r.randrange(20)
                if kind == 0:
                    # Half a request, or many without reading, and gone.
                    whole = packed(("SET", key, value(key, seed)))
                    if r.random() < .5:
                        c.socket.sendall(whole[:r.randrange(1, len(whole))])
                    else:
                        c.send(*[("GET", f"{number}:{i}") for i in range(300)])
                    c.close()
                    c = s.client()
                elif kind < 9:
                    how = ["PX", r.randrange(1, 400)] if r.random() < .3 else []
                    if c("SET", key, value(key, seed), *how) != "OK":
                        wrong.append(f"SET {key}")
                elif kind < 12:
                    got = c("HSET", f"h{number}:{r.randrange(50)}", f"f{seed}", value("h", seed)[:2000])
                    if isinstance(got, Error):
                        wrong.append(f"HSET: {got}")
                elif kind < 14:
                    got = c("HGETALL", f"h{number}:{r.randrange(50)}")
                    for f, v in zip(got[::2], got[1::2]):
                        if v != value("h", int(f[1:]))[:2000]:
                            wrong.append(f"field {f}")
                else:
                    got = c("GET", key)
                    if got is not None:
                        name, n, _ = got.split(b"/", 2)
                        if got != value(key, int(n)):
                            wrong.append(f"{key} holds {got[:40]}")

        threads = [threading.Thread(target=load, args=(i,)) for i in range(5)]
        for t in threads:
            t.start()
        c = s.client()
        saves = 0
        while any(t.is_alive() for t in threads) or saves == 0:
            saves += c("BGSAVE") == "Background saving started"
            time.sleep(.1)
        for t in threads:
            t.join()
        check(not wrong, f"{wrong[:3]}")
        check(int(info(c, "evicted_keys")) > 0, "nothing was evicted")
        check(int(info(c, "used_memory")) < 4 << 20, info(c, "used_memory"))
        eventually(lambda: info(c, "rdb_bgsave_in_progress") == "0", "the child ends")
        check(info(c, "rdb_last_bgsave_status") == "ok", s.log.read_text())
        check(s.stop() == 0, "SIGTERM")
        with s:
            check(s.client()("DBSIZE") > 0, "the snapshot is read")


def test_history_is_not_kept():
    with scratch() as directory, server(directory, "--window", 0.01) as s:
        c = s.client()
        eventually(lambda: int(info(c, "obase_windows")) > 20, "windows pass")
        check(info(c, "obase_history_windows") == "1", "one window of history, that grows to 4 MiB otherwise")


def test_memory_of_clients_that_left_goes_back():
    with scratch() as directory, server(directory) as s:
        c = s.client()
        before = int(info(c, "used_memory_rss"))
        clients = [s.client() for _ in range(100)]
        for one in clients:
            one.many([("MULTI",)] + [("SET", "k", "v" * 1000)] * 500)
        check(int(info(c, "used_memory_rss")) > before + (50 << 20), "queues take memory")
        for one in clients:
            one.close()
        # Nobody asks for anything meanwhile.
        status = f"/proc/{s.process.pid}/statm"
        eventually(lambda: int(open(status).read().split()[1]) * 4096 < before + (16 << 20), "it goes back")


def test_metrics():
    with scratch() as directory, reserved_port() as port, server(directory, "--metrics-port", port) as s:
        s.client()("SET", "k", "v")
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as page:
            text = page.read().decode()
        for name in ("crestdb_keys 1", "crestdb_connected_clients", "crestdb_used_bytes", "obase_windows"):
            check(name in text, f"{name} is missing")


def test_redis_cli():
    import shutil
    if shutil.which("redis-cli") is None:
        print("  left out: there is no redis-cli here")
        return
    with scratch() as directory, server(directory) as s:
        def cli(*words, given=None):
            return subprocess.run(["redis-cli", "-s", s.socket, *words], input=given, capture_output=True, text=True,
                                  timeout=60).stdout
        for protocol in ("-2", "-3"):
            check(cli(protocol, "SET", "k", "v").strip() == "OK", "set")
            check(cli(protocol, "HSET", "h" + protocol, "f", "v").strip() == "1", "hset")
            check(cli(protocol, "--no-raw", "HGETALL", "h" + protocol).strip() in ('1# "f" => "v"', '1) "f"\n2) "v"'), "map")
        check("errors: 0, replies: 1000" in
              cli("--pipe", given="".join(f"SET p{i} {i}\r\n" for i in range(1000))), "--pipe")
        check("Biggest string found" in cli("--bigkeys"), "--bigkeys")
        check("Biggest string found" in cli("--memkeys"), "--memkeys")
        benchmark = subprocess.run(["redis-benchmark", "-s", s.socket, "-q", "-n", "2000", "-t",
                                    "ping,set,get,incr,hset,zadd,mset", "-P", "4"], capture_output=True, text=True,
                                   timeout=60)
        check(benchmark.returncode == 0 and benchmark.stdout.count("requests per second") >= 7, benchmark.stdout)


def test_redis_py():
    try:
        import redis
    except ImportError:
        print("  left out: there is no redis-py here")
        return
    with scratch() as directory, server(directory) as s:
        r = redis.Redis(unix_socket_path=str(s.socket), decode_responses=True)
        check(r.set("k", "v", ex=100, nx=True) and r.get("k") == "v" and 90 < r.ttl("k") <= 100, "strings")
        r.hset("h", mapping={"a": 1, "b": 2})
        check(r.hgetall("h") == {"a": "1", "b": "2"} and r.hincrbyfloat("h", "a", .5) == 1.5, "hashes")
        r.zadd("z", {"a": 1, "b": 2})
        check(r.zrange("z", 0, -1, withscores=True) == [("a", 1.0), ("b", 2.0)], "sorted sets")
        with r.pipeline() as p:
            p.watch("k")
            p.multi()
            p.set("k", "w").get("k")
            check(p.execute() == [True, "w"], "pipeline")
        check(sorted(r.scan_iter("*")) == ["h", "k", "z"], "scan_iter")
        check(dict(r.hscan_iter("h")) == {"a": "1.5", "b": "2"}, "hscan_iter")
        check(r.info()["redis_mode"] == "standalone" and r.config_get("maxmemory") == {"maxmemory": "0"}, "info")
        check(r.client_list()[0]["db"] == "0" and "get" in r.command(), "client_list, command")


def main():
    global PROGRAM
    PROGRAM = sys.argv[1]
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # inherited: a file too large is an error, not an end
    failed = []
    for name, test in sorted(globals().items()):
        if not name.startswith("test_") or (sys.argv[2:] and name[5:] not in sys.argv[2:]):
            continue
        begin = time.monotonic()
        try:
            test()
        except Exception as error:  # noqa: BLE001 each is reported, and the others run
            failed.append(name)
            print(f"FAILED {name}: {type(error).__name__}: {error}", flush=True)
        else:
            print(f"ok {name} ({time.monotonic() - begin:.1f} s)", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
