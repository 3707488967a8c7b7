# SPDX-License-Identifier: MIT
"""watched.py SECONDS COMMAND...: runs a command for so long, and says on stdout what compiler/programs/workload.h says:
after each second, how many lines the command has written so far, and how much memory it has. For programs that are driven
by what they read. The first line is when the first line came.
"""

import os
import subprocess
import sys
import time

import program


def main():
    seconds, command = float(sys.argv[1]), sys.argv[2:]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    said = process.stdout
    if not said.readline():
        sys.exit(f"{command[0]} said nothing and ended with status {process.wait()}")
    os.set_blocking(said.fileno(), False)
    begin, lines = time.monotonic(), 0
    while (second := time.monotonic() - begin) < seconds + 0.5:
        anonymous, files = program.resident_kib(process.pid)
        print(f"{second:.1f} {lines} {anonymous} {files}", flush=True)
        time.sleep(1)
        while text := said.read():
            lines += text.count(b"\n")
        if process.poll() is not None:
            sys.exit(f"{command[0]} ended with status {process.returncode}")
    process.terminate()
    process.communicate()


if __name__ == "__main__":
    main()
