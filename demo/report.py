#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Makes a page of results: what obase did to memory and speed, for someone who never heard of it.

  demo/report.py --out out/report.html RESULT.json...    the page
  demo/report.py --table RESULT.json...                  the table, on the terminal
  demo/report.py --markdown README.md RESULT.json...     the table, into a page of the documentation

The results are those of `obase bench ycsb --json` and `obase bench packages --json`; runs of the
same experiment that differ in protocol are put side by side. --compare adds the result of
`obase bench compare --json`, measured in turns; its ratios stand beside those between the runs if it
has the same requests, hints and place of COLD. Exit: 0 done; 1 the page could not be
written; 2 bad input, with the file and the key.

Debian's own interpreter, because that is the one that finds Debian's python3-matplotlib.
"""

import argparse
import datetime
import os
import pathlib
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
# pylint: disable=wrong-import-position
from obase_report import result, table


BEGIN, END = "<!-- by demo/report.py -->", "<!-- end -->"


def fail(message, status):
    print(f"report: {message}", file=sys.stderr)
    sys.exit(status)


def write(path, text):
    """All of the file or, on an error, nothing of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=path.parent, prefix=".report",
                                     delete=False) as file:
        try:
            file.write(text)
            file.flush()
            os.chmod(file.name, 0o644)
            os.replace(file.name, path)
        except BaseException:
            os.unlink(file.name)
            raise


def main():
    parser = argparse.ArgumentParser(
        description="Makes a page (or a table) of results of obase bench ycsb and packages.")
    parser.add_argument("--out", type=pathlib.Path, metavar="FILE", help="write the page here")
    parser.add_argument("--table", action="store_true", help="print the table")
    parser.add_argument("--markdown", type=pathlib.Path, metavar="FILE",
                        help=f"write the table into FILE, between the lines {BEGIN} and {END}")
    parser.add_argument("--compare", metavar="COMPARE.json", action="append", default=[],
                        help="a result of obase bench compare; repeatable")
    parser.add_argument("results", nargs="+", metavar="RESULT.json")
    arguments = parser.parse_args()
    if not arguments.out and not arguments.table and not arguments.markdown:
        parser.error("give --out FILE, --markdown FILE or --table")

    try:
        comparison = [cell for path in arguments.compare for cell in result.load_comparison(path)]
        sections = result.sections([result.load(path) for path in arguments.results], comparison)
    except result.BadInput as error:
        fail(error, 2)
    if arguments.table:
        try:
            sys.stdout.write(table.as_text(sections))
            sys.stdout.flush()
        except OSError as error:
            sys.stdout = None  # nothing is left to be flushed at exit
            fail(f"the table cannot be written: {error.strerror}", 1)
    if arguments.markdown:
        try:
            text = arguments.markdown.read_text(encoding="utf-8")
            before, begun, rest = text.partition(BEGIN + "\n")
            _, ended, after = rest.partition(END + "\n")
            if not begun or not ended:
                fail(f"{arguments.markdown}: has no lines {BEGIN} and {END}", 2)
            today = datetime.date.today().isoformat()
            write(arguments.markdown, before + begun + "\n" + table.as_markdown(sections, today) + "\n"
                  + ended + after)
        except OSError as error:
            fail(f"{arguments.markdown}: cannot be written: {error}", 1)
    if arguments.out:
        try:
            from obase_report import page  # matplotlib takes a second, and the table needs none
        except ImportError as error:
            fail(f"{error}: scripts/install-deps installs python3-matplotlib", 1)
        try:
            write(arguments.out, page.render(sections))
        except OSError as error:
            fail(f"{arguments.out}: cannot be written: {error}", 1)


if __name__ == "__main__":
    main()
