#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The program crestdb-store from outside: what it says, whom it serves, how it ends.

usage: program_test.py CRESTDB_STORE
"""

import os
import re
import signal
import socket
import subprocess
import sys
import unittest

PROGRAM = sys.argv.pop(1) if len(sys.argv) > 1 else "build/bin/crestdb-store"


class Program(unittest.TestCase):
    def begin(self, *words, **environment):
        program = subprocess.Popen([PROGRAM, "--port", "0", *words], stdout=subprocess.PIPE, text=True,
                                   env=os.environ | environment)
        self.addCleanup(program.stdout.close)
        self.addCleanup(program.wait)
        self.addCleanup(program.kill)
        said = program.stdout.readline()
        found = re.search(r" port (\d+)$", said)
        self.assertTrue(found, said)
        return program, said, int(found[1])

    def ask(self, port, line):
        with socket.create_connection(("127.0.0.1", port)) as client:
            client.sendall(line.encode() + b"\r\n")
            client.shutdown(socket.SHUT_WR)
            return b"".join(iter(lambda: client.recv(4096), b"")).decode()

    def test_serves_until_it_is_told_to_end(self):
        for index, protocol, end in (("chained-hash-table", "arming", signal.SIGTERM),
                                     ("masstree", "atc", signal.SIGINT),
                                     ("pugh-hash-table", "none", signal.SIGTERM)):
            program, said, port = self.begin("--index", index, "--protocol", protocol,
                                             "--expected-keys", "1000", "--threads", "2")
            self.assertEqual(said, f"{index} of about 1000 keys under {protocol}, 127.0.0.1 port {port}\n")
            self.assertEqual(self.ask(port, "SET k value"), "+OK\r\n")
            self.assertEqual(self.ask(port, "GET k"), "$5\r\nvalue\r\n")
            self.assertIn(f"index:{index}\r\nthreads:2\r\ntcp_port:{port}\r\n", self.ask(port, "INFO"))
            program.send_signal(end)
            self.assertEqual(program.wait(), 0)

    def test_objects_move_while_it_serves(self):
        program, _, port = self.begin(OBASE_WINDOW_SECONDS="0.05", OBASE_MODE="move", OBASE_SHOW_STATS="1")
        with socket.create_connection(("127.0.0.1", port)) as client:
            values = {f"key{i}": f"value{i}" * 20 for i in range(2000)}
            for key, value in values.items():
                client.sendall(f"SET {key} {value}\r\n".encode())
            replies = client.makefile("rb")
            for _ in values:
                self.assertEqual(replies.readline(), b"+OK\r\n")
            for _ in range(20):
                for key, value in values.items():
                    client.sendall(f"GET {key}\r\n".encode())
                for value in values.values():
                    self.assertEqual(replies.readline(), b"$%d\r\n" % len(value))
                    self.assertEqual(replies.readline(), value.encode() + b"\r\n")
        program.send_signal(signal.SIGTERM)
        self.assertEqual(program.wait(), 0)

    def test_what_it_cannot_do_is_said(self):
        def fails(status, text, *words):
            done = subprocess.run([PROGRAM, *words], capture_output=True, text=True)
            self.assertEqual(done.returncode, status, done)
            self.assertIn(text, done.stderr)
        fails(2, "--index", "--index", "magic")
        fails(2, "--threads", "--threads", "0")
        fails(2, "--port", "--port", "65536")
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = str(taken.getsockname()[1])
            fails(1, f"cannot listen on 127.0.0.1 port {port}: Address already in use", "--port", port)


if __name__ == "__main__":
    unittest.main()
