# SPDX-License-Identifier: MIT
"""A client of its own for the tests of crestdb: RESP2 and RESP3 as they are on the wire, errors included.

A library for applications hides what is compared here: it turns replies into other types, and errors
into exceptions.
"""

import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import time

SKIPPED = 77


class Error(str):
    """An error reply."""


class Status(str):
    """A simple string."""


class Client:
    def __init__(self, address, timeout=30):
        if isinstance(address, tuple):
            self.socket = socket.create_connection(address, timeout=timeout)
        else:
            self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self.socket.settimeout(timeout)
            end = time.monotonic() + timeout
            while True:
                try:
                    self.socket.connect(str(address))
                    break
                except BlockingIOError:  # the queue of connections is full
                    if time.monotonic() > end:
                        raise
                    time.sleep(0.005)
        self.buffer = b""
        self.at = 0

    def close(self):
        self.socket.close()

    def _fill(self):
        got = self.socket.recv(1 << 18)
        if not got:
            raise ConnectionError("the server closed the connection")
        self.buffer = self.buffer[self.at:] + got
        self.at = 0

    def _line(self):
        while (end := self.buffer.find(b"\r\n", self.at)) < 0:
            self._fill()
        line = self.buffer[self.at:end]
        self.at = end + 2
        return line

    def _bytes(self, size):
        while len(self.buffer) - self.at < size:
            self._fill()
        data = self.buffer[self.at:self.at + size]
        self.at += size
        return data

    def read(self):
        line = self._line()
        kind, rest = line[:1], line[1:]
        if kind == b"+":
            return Status(rest.decode("latin1"))
        if kind == b"-":
            return Error(rest.decode("latin1"))
        if kind == b":":
            return int(rest)
        if kind in (b"$", b"="):
            if rest == b"-1":
                return None
            data = self._bytes(int(rest) + 2)[:-2]
            return data if kind == b"$" else ("verbatim", data)
        if kind in (b"*", b"~"):
            if rest == b"-1":
                return None
            values = [self.read() for _ in range(int(rest))]
            return values if kind == b"*" else ("set", values)
        if kind == b"%":
            return ("map", [(self.read(), self.read()) for _ in range(int(rest))])
        if kind == b"_":
            return None
        if kind == b",":
            return ("double", rest)
        if kind == b"#":
            return rest == b"t"
        raise ValueError(f"not a reply: {line!r}")

    def send(self, *commands):
        self.socket.sendall(b"".join(packed(c) for c in commands))

    def many(self, commands):
        self.send(*commands)
        return [self.read() for _ in commands]

    def __call__(self, *words):
        self.send(words)
        return self.read()


def packed(words):
    parts = [b"*%d\r\n" % len(words)]
    for word in words:
        if not isinstance(word, bytes):
            word = str(word).encode()
        parts.append(b"$%d\r\n%s\r\n" % (len(word), word))
    return b"".join(parts)


class Server:
    """A server process with a directory of its own, stopped at the end of a with block."""

    def __init__(self, command, directory, name="s"):
        self.directory = pathlib.Path(directory)
        self.socket = self.directory / name
        self.log = self.directory / (name + ".log")
        self.command = [str(word) for word in command]
        self.process = None

    def start(self, wait=20):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(self.command, stdout=log, stderr=log, cwd=self.directory)
        end = time.monotonic() + wait
        while True:
            try:
                client = Client(self.socket)
                if client("PING") == "PONG":
                    client.close()
                    return self
            except OSError:
                pass
            if self.process.poll() is not None or time.monotonic() > end:
                self.kill()
                raise RuntimeError(f"{self.command[0]} did not start:\n{self.log.read_text()}")
            time.sleep(0.02)

    def stop(self, wait=60):
        if self.process is None:
            return None
        self.process.terminate()
        status = self.process.wait(wait)
        self.process = None
        return status

    def kill(self):
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def client(self, **how):
        return Client(self.socket, **how)

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.kill()


def crestdb(program, directory, *options, name="s", tcp_port=0):
    return Server([pathlib.Path(program).resolve(), "--port", tcp_port, "--unixsocket", name, "--dir", ".", "--memory", "none",
                   *options], directory, name)


def redis(directory, *options, name="r"):
    return Server(["redis-server", "--port", 0, "--unixsocket", name, "--save", "", "--dir", ".",
                   "--daemonize", "no", *options], directory, name)


def skip_without(program):
    from shutil import which
    if which(program) is None:
        print(f"skipped: there is no {program} here")
        sys.exit(SKIPPED)


class reserved_port:
    """A TCP port on 127.0.0.1 that nobody else is given, for a server that sets SO_REUSEADDR.

    The socket is bound and does not listen: another one may be bound beside it, and the system chooses the port
    for nobody.
    """

    def __enter__(self):
        self.socket = socket.socket()
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(("127.0.0.1", 0))
        return self.socket.getsockname()[1]

    def __exit__(self, *_):
        self.socket.close()


def scratch():
    """A directory with a short name: the path of a Unix socket has at most 107 characters."""
    return tempfile.TemporaryDirectory(prefix="crestdb-", dir="/tmp" if os.path.isdir("/tmp") else None)
