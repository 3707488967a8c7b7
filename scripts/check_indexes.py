#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Exits with 1 unless the document has a row for each index that the command knows.

usage: scripts/check_indexes.py OBASE [DOCUMENT]
"""

import pathlib
import re
import subprocess
import sys

ROW = re.compile(r"^\| `([a-z0-9-]+)` \|.*\|$", re.M)


def main(arguments):
    if len(arguments) not in (1, 2) or arguments[0].startswith("-"):
        sys.exit(__doc__)
    document = pathlib.Path(arguments[1] if len(arguments) == 2 else
                            pathlib.Path(__file__).resolve().parent.parent / "docs" / "indexes.md")
    said = subprocess.run([arguments[0], "bench", "index", "--help"], capture_output=True, text=True, check=True).stdout
    listed = re.search(r"--index\s.*?\{([a-z0-9,-]+)\}", said, re.S)
    if not listed:
        sys.exit("check_indexes: `obase bench index --help` lists no indexes")
    rows = set(ROW.findall(document.read_text(encoding="utf-8")))
    missing = [index for index in listed[1].split(",") if index not in rows]
    if missing:
        sys.exit(f"check_indexes: {document} has no row for: " + ", ".join(missing))


if __name__ == "__main__":
    main(sys.argv[1:])
