#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The MQTT broker mosquitto of Debian 12 with the marks of the file beside: its own tests of the broker
while the collector is forced; or, with --measure, page utilization and memory of a broker that keeps
many retained messages, of which few are asked for.
"""

import concurrent.futures
import contextlib
import os
import pathlib
import random
import re
import signal
import socket
import struct
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import program  # noqa: E402

ARCHIVE = "pool/main/m/mosquitto/mosquitto_2.0.11.orig.tar.gz"
SHA256 = "7b36a7198bce85cf31b132f5c6ee36dcf5dadf86fb768501eb1e11ce95d4f78a"
# Without what needs other packages, or certificates that have expired since; and without those tests.
# (Hashed passwords need TLS, and three tests without it in their names do.)
FEATURES = ["WITH_TLS=no", "WITH_CJSON=no", "WITH_DOCS=no"]
LEFT_OUT = ("tls|ssl|dynsec|01-connect-uname-or-anon|01-connect-uname-password-denied-no-will|"
            "09-pwfile-parse-invalid")
FIRST_PORT, PORTS_EACH = 21000, 4
AT_ONCE, TRIES, LIMIT = 4, 3, 600
MESSAGES, PAYLOAD, SECONDS = 50_000, 1000, 30


def built(options, name, compiler, link):
    """The folder of the broker, built with the compiler; the tests' plugins by plain clang."""
    folder = options.out / name
    program.unpack(program.source_package(options, ARCHIVE, SHA256), folder)
    program.run(["make", "-C", "src", *FEATURES, f"CC={compiler}", "CFLAGS=-O2 -g",
                 f"LDFLAGS={' '.join(link)}", "mosquitto"], folder)
    plugins = [source.stem + ".so" for source in (folder / "test/broker/c").glob("*plugin*.c")]
    program.run(["make", "-C", "test/broker/c", f"CC={options.clang}", *plugins], folder)
    # A broker that root starts goes on as another user, and keeps its database there.
    (folder / "test/broker").chmod(0o777)
    return folder


def listed(folder):
    """The suite's tests: file name, number of ports. One of them is not in the archive."""
    suite = folder / "test/broker"
    found = re.findall(r"^\s*\((\d+), '\./([\w.-]+\.py)'\)", (suite / "test.py").read_text(), re.MULTILINE)
    return [(name, int(ports)) for ports, name in found
            if not re.search(LEFT_OUT, name) and (suite / name).exists()]


def passes(folder, name, ports, first_port, environment):
    """Whether the test passes. What it leaves, as a broker that runs and its database, ends with it."""
    passed = False
    with subprocess.Popen(
            [sys.executable, f"./{name}", *map(str, range(first_port, first_port + ports))],
            cwd=folder / "test/broker", env={**os.environ, **environment}, start_new_session=True,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as test:
        with contextlib.suppress(subprocess.TimeoutExpired):
            passed = test.wait(LIMIT) == 0
        with contextlib.suppress(ProcessLookupError):
            os.killpg(test.pid, signal.SIGKILL)
    if not passed:
        for pattern in (f"{pathlib.Path(name).stem}*.db*", *(f"mosquitto-{first_port + port}.db*"
                                                             for port in range(ports))):
            for database in (folder / "test/broker").glob(pattern):
                database.unlink()
    return passed


def tests(folder, environment):
    """The names of the tests that pass, and how many of them not at once. They give a broker two seconds
    to start, or end one right after a message, whose acknowledgement it must have taken by then: on a busy
    machine that may fail. So one that fails is tried again, alone, with processors to spare."""
    all_tests = listed(folder)
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        results = list(pool.map(
            lambda numbered: passes(folder, *numbered[1], FIRST_PORT + PORTS_EACH * numbered[0],
                                    environment), enumerate(all_tests)))
    passed = {name for (name, _), good in zip(all_tests, results) if good}
    again = {name for name, ports in all_tests
             if name not in passed and any(passes(folder, name, ports, FIRST_PORT,
                                                  {**environment, "OBASE_TEST_PAUSE": "1000"})
                                           for _ in range(TRIES))}
    return passed | again, len(again)


def check(options, plain, instrumented):
    expected, again = tests(plain, {})
    known = {name for name, _ in listed(plain)}
    print(f"{'mosquitto':28}{'tests passed':>14}{'tried again':>14}{'objects moved':>16}{'windows':>10}")
    print(f"{'plain clang':28}{len(expected):10}/{len(known)}{again:14}", flush=True)
    if len(expected) < len(known) * 0.9:
        sys.exit("the plain broker fails " + " ".join(sorted(known - expected)))
    for name, environment in (("forced", program.FORCED), ("forced, armed again",
                                                           program.REARMED)):
        statistics = options.out / "statistics.json"
        statistics.write_text("")
        statistics.chmod(0o666)  # the broker gives root's rights up
        passed, again = tests(instrumented, {**environment, "OBASE_TEST_STATISTICS": str(statistics)})
        moved, windows = program.moved_in(statistics)
        print(f"{name:28}{len(passed):10}/{len(known)}{again:14}{moved:16}{windows:10}", flush=True)
        if expected - passed or moved == 0:
            sys.exit("objects should move, and these tests pass with the plain broker: " +
                     " ".join(sorted(expected - passed)))
    if known - expected:
        print("fail with both: " + " ".join(sorted(known - expected)))


class client:
    """As much of MQTT 3.1.1 as the workload needs."""

    def __init__(self, port):
        self.socket = socket.create_connection(("localhost", port))
        # As the broker's set_tcp_nodelay. Otherwise each waits for the other's delayed acknowledgement,
        # 40 ms, several times for each hundred messages: so few that none of them is wanted often.
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.incoming = self.socket.makefile("rb", buffering=1 << 20)
        self.send(0x10, self.text("MQTT") + b"\x04\x02\x00\x00" + self.text("workload"))
        self.expect(0x20)

    @staticmethod
    def text(string):
        return struct.pack("!H", len(string)) + string.encode()

    @staticmethod
    def packet(kind, body):
        length, digits = len(body), b""
        while True:
            length, digit = divmod(length, 128)
            digits += bytes([digit | (0x80 if length else 0)])
            if not length:
                return bytes([kind]) + digits + body

    def send(self, kind, body):
        self.socket.sendall(self.packet(kind, body))

    def receive(self):
        kind = self.incoming.read(1)[0]
        length = shift = 0
        while True:
            digit = self.incoming.read(1)[0]
            length |= (digit & 127) << shift
            shift += 7
            if digit < 128:
                return kind, self.incoming.read(length)

    def expect(self, wanted):
        """Reads until a packet of the kind; returns the messages before it, by topic."""
        messages = {}
        while True:
            kind, body = self.receive()
            if kind == wanted:
                return messages
            if kind & 0xF0 == 0x30:
                (size,) = struct.unpack("!H", body[:2])
                messages[body[2:2 + size].decode()] = body[2 + size:]

    def retain(self, numbered):
        self.socket.sendall(b"".join(
            self.packet(0x31, self.text(f"device/{number}") + payload) for number, payload in numbered))

    def ping(self):
        self.send(0xC0, b"")
        self.expect(0xD0)

    def ask(self, numbers):
        """The retained messages of the topics."""
        topics = [self.text(f"device/{number}") for number in numbers]
        self.send(0x82, b"\x00\x01" + b"".join(topic + b"\x00" for topic in topics))
        self.send(0xA2, b"\x00\x02" + b"".join(topics))
        return self.expect(0xB0)


def payload_of(number):
    return (f"{number} " * (PAYLOAD // len(f"{number} ") + 1))[:PAYLOAD].encode()


def chosen(places, chance):
    """One message in ten is asked for, but once in ten thousand times any."""
    return places[chance.randrange(len(places) // (1 if chance.random() < 0.0001 else 10))]


def workload(options, folder, name, environment):
    """Memory at first and at the end, messages a second in the second half, the windows' history."""
    history = options.out / f"history.{name}.json"
    history.unlink(missing_ok=True)
    configuration = options.out / "workload.conf"
    configuration.write_text(f"listener {FIRST_PORT}\nallow_anonymous true\nuser root\nmax_queued_messages 0\n"
                             "set_tcp_nodelay true\n")
    broker = subprocess.Popen([folder / "src/mosquitto", "-c", configuration],
                              env={**program.os.environ, **environment,
                                   "OBASE_TEST_HISTORY": str(history)}, stderr=subprocess.DEVNULL)
    try:
        for _ in range(100):
            try:
                talks = client(FIRST_PORT)
                break
            except ConnectionRefusedError:
                time.sleep(0.1)
        else:
            sys.exit("the broker does not answer")
        for begin in range(0, MESSAGES, 1000):
            talks.retain((number, payload_of(number)) for number in range(begin, begin + 1000))
            talks.ping()
        first = program.resident_kib(broker.pid)
        chance = random.Random(1)
        places = list(range(MESSAGES))
        chance.shuffle(places)
        begin, half, asked, before = time.monotonic(), 0.0, 0, 0
        while (now := time.monotonic() - begin) < SECONDS:
            if not half and now > SECONDS / 2:
                half, before = now, asked
            numbers = {chosen(places, chance) for _ in range(100)}
            for topic, payload in talks.ask(numbers).items():
                if payload != payload_of(topic.split("/")[1]):
                    sys.exit(f"{topic} has another payload than was published")
                asked += 1
        last = program.resident_kib(broker.pid)
        return first, last, (asked - before) / (now - half), history
    finally:
        broker.terminate()
        broker.wait(60)


def measure(options, plain, instrumented):
    cold = options.out / "cold"
    cold.mkdir(exist_ok=True)
    quick = {"OBASE_WINDOW_SECONDS": "60", "OBASE_TIME_SCALE": "60"}
    runs = {
        "plain clang": (plain, {}),
        "obase, observing": (instrumented, {**quick, "OBASE_MODE": "observe"}),
        "obase, moving": (instrumented, {**quick, "OBASE_MODE": "hint",
                                         "OBASE_COLD_BACKING": f"file:{cold}"}),
    }
    print(f"{MESSAGES} retained messages of {PAYLOAD} bytes, {SECONDS} s of subscriptions, nearly all to "
          "one topic in ten")
    print(f"{'':20}{'MiB at first':>14}{'MiB at the end':>16}{'of it file':>12}{'utilization':>13}"
          f"{'messages/s':>12}")
    measured = []
    for name, (folder, environment) in runs.items():
        first, last, rate, history = workload(options, folder, name.split()[-1], environment)
        windows = program.lines_of(history)
        filled = program.utilization(windows[0][-2]) if windows else None
        measured.append(program.measured(name, (first, last), rate, filled))
        print(f"{name:20}{sum(first) / 1024:14.1f}{sum(last) / 1024:16.1f}{last[1] / 1024:12.1f}"
              f"{'' if filled is None else f'{filled:.3f}':>13}{rate:12.0f}", flush=True)
    program.write_measured(options, measured)


def main():
    options = program.arguments(__doc__)
    plain = built(options, "plain", options.clang, [])
    instrumented = built(options, "instrumented", program.instrumenting(options, HERE / "marks"),
                         program.forcing_object(options))
    if options.measure:
        measure(options, plain, instrumented)
    else:
        check(options, plain, instrumented)


if __name__ == "__main__":
    main()
