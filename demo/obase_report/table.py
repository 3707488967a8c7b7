# SPDX-License-Identifier: MIT
"""The table, for the terminal and for the page: a row per run, then what obase changed."""

from .result import ratio
from .units import (as_ratio, in_bytes, in_microseconds, in_percent, in_rate, NOT_MEASURED)

# Head; key of the number; how it is said; how the page says what it is.
COLUMNS = [
    ("utilization", "page_utilization.end", in_percent,
     "share of the bytes of touched pages that were themselves touched; higher is better"),
    ("RSS", "rss_bytes.end", in_bytes, "memory mapped by the process, as `ps` shows it"),
    ("really used", "used_bytes.end", in_bytes,
     "process memory plus what the system still holds for it in caches; lower is better"),
    ("live data", "live_bytes", in_bytes, "bytes of the objects that are in use at all"),
    ("throughput", "throughput_ops", in_rate, "operations per second; higher is better"),
    ("p90 latency", "latency_us.p90", in_microseconds,
     "nine of ten operations are faster than this; lower is better"),
]


def rows(section):
    """[(label, [cell])]: runs, then for each run with obase the ratio to the run without."""
    table = [(r.protocol + (" (stopped early)" if r["partial"] else ""),
              [say(r[key]) for _, key, say, _ in COLUMNS]) for r in section.results]
    for result in section.results:
        if result.protocol == "none" or not section.plain:
            continue
        table.append((f"{result.protocol} / none",
                      [_ratio(section, result, key) for _, key, _, _ in COLUMNS]))
    return table


def _ratio(section, result, key):
    if key == "live_bytes":
        return ""
    if key in ("throughput_ops", "latency_us.p90"):
        value, of_turns = section.speed_ratio(result, key)
        return as_ratio(value) + (" *" if of_turns else "")
    return as_ratio(ratio(result[key], section.plain[key]))


def in_turns(sections):
    """[(what, ratio, interval, p90, instructions)] of the comparisons in turns, as text."""
    table = []
    for section in sections:
        for result in section.results:
            for phase, said in (("converged", "settled"), ("moving", "sorting the first load")):
                cell = section.in_turns(result.protocol, phase)
                if not cell:
                    continue
                interval = cell.get("ci95")
                table.append((f"{section.title}, {cell['index']}, {result.protocol}, {said}",
                              as_ratio(cell.get("throughput_ratio")),
                              NOT_MEASURED if interval is None else
                              f"{as_ratio(interval[0])} to {as_ratio(interval[1])}",
                              as_ratio(cell.get("p90_ratio")),
                              as_ratio(cell.get("instructions_ratio"))))
    return table


def heading(section):
    """Title and size of the experiment in one line."""
    words = [section.title, f"index {section.first['index']}"]
    count = section.first["packages"] if section.is_packages else section.first["records"]
    if count is not None:
        words.append(f"{count:,.0f} {'packages' if section.is_packages else 'records'}")
    if section.first["threads"] is not None:
        words.append(f"{section.first['threads']:.0f} threads")
    return ", ".join(words)


def as_text(sections):
    """For a terminal, 100 columns at most."""
    heads = [head for head, *_ in COLUMNS]
    lines = []
    for section in sections:
        cells = [(label, ["-" if c == NOT_MEASURED else c for c in row])
                 for label, row in rows(section)]
        lines.append(heading(section))
        lines.append(" " * 24 + "".join(f"{head:>12}" for head in heads))
        lines += [f"  {label:<22}" + "".join(f"{cell:>12}" for cell in row) for label, row in cells]
        lines.append("")
    turns = in_turns(sections)
    if turns:
        lines.append("with obase / without, measured in turns (* above, not from the runs there)")
        lines.append(f"{'':<52}{'throughput':>12}{'95 % interval':>18}{'p90 latency':>14}")
        lines += [f"  {what:<50}{ratio_of:>12}{interval:>18}{p90.replace(NOT_MEASURED, '-'):>14}"
                  for what, ratio_of, interval, p90, _ in turns]
        lines.append("")
    lines.append("-: not measured. utilization: share of touched pages' bytes that were touched.")
    lines.append("really used: process memory plus what the system caches for it.")
    return "\n".join(lines) + "\n"
