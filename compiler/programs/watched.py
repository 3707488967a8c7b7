# SPDX-License-Identifier: MIT
"""watched.py SECONDS COMMAND...: runs a command for so long, and says on stdout what compiler/programs/workload.h says:
after each second, how many lines the command has written so far, and how much memory it has. For programs that are driven
by what they read. The first line is when the first line came.
"""

import subprocess
import sys
import threading
import time

import program


class counted(threading.Thread):
    """Reads all that comes, lest the command wait, and counts its lines."""

    def __init__(self, said):
        super().__init__(daemon=True)
        self.said, self.lines = said, 0
        self.start()

    def run(self):
        while text := self.said.read1(1 << 20):
            self.lines += text.count(b"\n")


def main():
    seconds, command = float(sys.argv[1]), sys.argv[2:]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if not process.stdout.readline():
        sys.exit(f"{command[0]} said nothing and ended with status {process.wait()}")
    said = counted(process.stdout)
    begin = time.monotonic()
    while (second := time.monotonic() - begin) < seconds + 0.5:
        anonymous, files = program.resident_kib(process.pid)
        print(f"{second:.1f} {said.lines} {anonymous} {files}", flush=True)
        time.sleep(1)
        if process.poll() is not None:
            sys.exit(f"{command[0]} ended with status {process.returncode}")
    process.terminate()
    process.wait()


if __name__ == "__main__":
    main()
