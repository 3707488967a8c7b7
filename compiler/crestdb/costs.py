#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What the passes cost at compile time, and in code: CrestDB's indexes, each compiled by clang in three ways.

Of plain pointers, of the same with marks through both plugins, and of guides by hand, at the options of
the release. Prints a row per index: user seconds of clang, the least of the runs, and bytes of machine
code (.text and its kin), each also as a ratio to plain.

usage: compiler/crestdb/costs.py --build DIRECTORY [--clang COMMAND] [--runs N] [--json FILE] [INDEX...]
"""

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
OPTIONS = ["-std=c++20", "-O3", "-DNDEBUG", "-fPIC", "-ftls-model=initial-exec", f"-I{ROOT}",
           f"-I{ROOT}/include"]


def indexes():
    text = (HERE / "CMakeLists.txt").read_text()
    return re.findall(r"^crestdb_add_marked_index\((\w+)\)", text, re.MULTILINE)


def subject(index):
    headers = list((ROOT / "crestdb").glob(f"*/{index}.hpp"))
    if len(headers) != 1:
        sys.exit(f"costs.py: no index '{index}': expected one of {', '.join(indexes())}")
    text = (HERE / "subject.cpp.in").read_text()
    return text.replace("@class@", index).replace("@folder@", headers[0].parent.name)


def user_seconds(command):
    before = os.times().children_user
    made = subprocess.run(command, capture_output=True, text=True)
    if made.returncode != 0:
        sys.exit(f"costs.py: {' '.join(command)}\n{made.stderr}")
    return os.times().children_user - before


def code_bytes(object_file):
    # "size -A" names each section; templates have one for each function.
    listed = subprocess.run(["size", "-A", str(object_file)], capture_output=True, text=True, check=True)
    return sum(int(size) for size in re.findall(r"^\.text\S*\s+(\d+)", listed.stdout, re.MULTILINE))


def main():
    parser = argparse.ArgumentParser(description="Compile time and code size of marked pointers.")
    parser.add_argument("--build", type=pathlib.Path, required=True, help="where the plugins were built")
    parser.add_argument("--clang", default="clang++-19")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="write the rows here, too")
    parser.add_argument("index", nargs="*", default=indexes())
    options = parser.parse_args()
    plugins = options.build / "lib" / "obase"
    for name in ["obase_visibility.so", "obase_passes.so"]:
        if not (plugins / name).exists():
            sys.exit(f"costs.py: {plugins / name} is missing; build the target {name[:-3]} first")
    ways = {
        "plain": ["-DCRESTDB_UNMARKED"],
        "marked": [f"-fplugin={plugins}/obase_visibility.so", f"-fpass-plugin={plugins}/obase_passes.so",
                   f"-fplugin-arg-obase_visibility-marks={HERE}/crestdb.marks"],
        "by hand": ["-DCRESTDB_BY_HAND"],
    }
    print("| index | plain, s | marked, s | by hand, s | plain, bytes | marked | by hand |")
    print("|---|---|---|---|---|---|---|")
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for index in options.index:
            source = pathlib.Path(folder) / f"{index}.cpp"
            source.write_text(subject(index))
            seconds, size = {}, {}
            for way, more in ways.items():
                made = pathlib.Path(folder) / "made.o"
                command = [options.clang, *OPTIONS, *more, "-c", str(source), "-o", str(made)]
                seconds[way] = min(user_seconds(command) for _ in range(options.runs))
                size[way] = code_bytes(made)
            rows.append({"index": index, **{way: {"seconds": seconds[way], "bytes": size[way]} for way in ways}})
            print(f"| `{index}` | {seconds['plain']:.2f} | {seconds['marked']:.2f}"
                  f" ({seconds['marked'] / seconds['plain']:.2f}) | {seconds['by hand']:.2f}"
                  f" ({seconds['by hand'] / seconds['plain']:.2f}) | {size['plain']}"
                  f" | {size['marked']} ({size['marked'] / size['plain']:.2f})"
                  f" | {size['by hand']} ({size['by hand'] / size['plain']:.2f}) |", flush=True)
    if options.json:
        options.json.write_text(json.dumps({"indexes": rows}, indent=2) + "\n")


if __name__ == "__main__":
    main()
