#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Plots what `obase mrc --json FILE` measured, as one HTML page without outside references.

    tools/mrc/plot.py FILE... --out PAGE

One plot for each load, size of values and size of pages: the miss ratio over memory, of the objects
(the best that any layout can reach) and of the pages of each layout, when the best are kept.

Exit status: 1 if a file cannot be read or is no result of `obase mrc`, 2 for usage.
"""
import argparse
import html
import io
import json
import os
import sys
import tempfile

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt  # noqa: E402  (the backend comes first)

matplotlib.rcParams["svg.hashsalt"] = "obase"


class BadInput(Exception):
    pass


def cells_of(path):
    try:
        with open(path, encoding="utf-8") as file:
            cells = json.load(file)["cells"]
        for cell in cells:
            cell["inflation"]["0.9"], cell["curve"]["objects"], cell["curve"]["pages"]
            cell["workload"], cell["layout"], cell["objects"], cell["order"]
            cell["value_bytes"], cell["page_bytes"], cell["accesses_per_object"]
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise BadInput(f"{path}: expected the JSON of `obase mrc`: {error!r}") from error
    return cells


def grouped(cells):
    """The cells of a plot, by its title; static curves of all objects."""
    plots = {}
    for cell in cells:
        if cell["objects"] != "all" or cell["order"] != "static":
            continue
        size = cell["value_bytes"]  # null where a trace has them
        values = "" if size is None else f", values of {size} B"
        title = f"{cell['workload']}{values}, pages of {cell['page_bytes'] // 1024} KiB"
        plots.setdefault(title, []).append(cell)
    return plots


def draw(title, cells):
    figure, axes = plt.subplots(figsize=(6.4, 3.6))
    ideal = cells[0]["curve"]["objects"]
    axes.plot([b / 2**20 for b, _ in ideal], [1 - h for _, h in ideal], color="black",
              label="objects")
    for cell in cells:
        pages = cell["curve"]["pages"]
        at = cell["inflation"]["0.9"]
        known = "no inflation" if at is None else f"inflation {at:.2f} at .9"
        axes.plot([b / 2**20 for b, _ in pages], [1 - h for _, h in pages],
                  label=f"{cell['layout']}, {cell['accesses_per_object']:g} accesses: {known}")
    axes.set(title=title, xlabel="memory, MiB", ylabel="miss ratio", ylim=(0, 1))
    axes.set_xlim(left=0)
    axes.legend(fontsize="small")
    axes.grid(alpha=.3)
    text = io.StringIO()
    figure.savefig(text, format="svg", bbox_inches="tight", metadata={"Date": None})
    plt.close(figure)
    return text.getvalue()[text.getvalue().index("<svg"):]


def page(cells):
    body = "\n".join(f"<figure>{draw(title, group)}</figure>"
                     for title, group in sorted(grouped(cells).items()))
    commands = "\n".join(sorted({html.escape(c.get("command", "")) for c in cells}))
    return ("<!doctype html><meta charset='utf-8'><title>Miss-ratio curves</title>"
            "<style>body{font:16px sans-serif;max-width:60em;margin:auto}figure{margin:1em 0}"
            "svg{max-width:100%;height:auto}</style><h1>Miss-ratio curves</h1>"
            f"{body}<pre>{commands}</pre>\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("files", nargs="+", metavar="FILE", help="of `obase mrc --json`")
    parser.add_argument("--out", required=True, metavar="PAGE", help="the HTML page to write")
    arguments = parser.parse_args()
    try:
        text = page([cell for path in arguments.files for cell in cells_of(path)])
        folder = os.path.dirname(os.path.abspath(arguments.out))
        with tempfile.NamedTemporaryFile("w", dir=folder, delete=False, encoding="utf-8") as file:
            file.write(text)
        os.chmod(file.name, 0o644)
        os.replace(file.name, arguments.out)
    except BadInput as error:
        sys.exit(f"plot.py: {error}")
    except OSError as error:
        sys.exit(f"plot.py: {arguments.out}: {error.strerror}")


if __name__ == "__main__":
    main()
