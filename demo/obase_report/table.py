# SPDX-License-Identifier: MIT
"""The table, for the terminal and for the page: a row per run, then what obase changed."""

from .result import ratio
from .units import (as_ratio, in_bytes, in_microseconds, in_percent, in_rate, NOT_MEASURED)

# Head; key of the number; how it is said; how the page says what it is.
COLUMNS = [
    ("utilization", "page_utilization.end", in_percent,
     "share of the bytes of touched pages that were themselves touched; higher is better"),
    ("start", "used_bytes.start", in_bytes,
     "process memory plus what the system still holds for it in caches and compressed, after loading"),
    ("peak", "used_bytes.peak", in_bytes, "the most that was used, sampled ten times a second"),
    ("end", "used_bytes.end", in_bytes, "used at the end of the traffic; lower is better"),
    ("compressed", "compressed_bytes.end", in_bytes,
     "what of that is compressed swap; a swap disk would hold it instead"),
    ("of ideal", "used_over_ideal", as_ratio,
     "end, over the least memory with which as many requests would have faulted, the index included; 1 is ideal"),
    ("faulting", "fault_share", in_percent, "share of the requests that waited for a page"),
    ("throughput", "throughput_ops", in_rate, "operations per second; higher is better"),
    ("p90", "latency_us.p90", in_microseconds,
     "latency: nine of ten operations are faster than this; lower is better"),
]


# Of these a ratio to the run without obase says nothing.
NO_RATIO = ("compressed_bytes.end", "used_over_ideal", "fault_share")

NAMES = {"none": "none", "kernel": "none + kernel", "arming": "arming", "atc": "atc"}


def rows(section):
    """[(label, [cell])]: runs, then for each other run the ratio to the run without obase."""
    table = [(NAMES[r.protocol] + (" (stopped)" if r["partial"] else ""),
              [say(r[key]) for _, key, say, _ in COLUMNS]) for r in section.results]
    for result in section.results:
        if result.protocol == "none" or not section.plain:
            continue
        table.append((f"{result.protocol} / none",
                      [_ratio(section, result, key) for _, key, _, _ in COLUMNS]))
    return table


def _ratio(section, result, key):
    if key in NO_RATIO:
        return ""
    return as_ratio(ratio(result[key], section.plain[key]))


def _interval(low, high):
    return NOT_MEASURED if low is None else f"{as_ratio(low)} to {as_ratio(high)}"


def speeds(sections):
    """[(what, ratio, interval, p90, instructions)] of throughput against the run without obase, as
    text: between the runs and in turns, each with its configuration."""
    table = []
    for section in sections:
        for result in section.results:
            between = section.between_runs(result)
            if between:
                p90 = ratio(result["latency_us.p90"], section.plain["latency_us.p90"])
                table.append((f"{section.title}, {result.protocol}, between the runs",
                              as_ratio(between[0]), _interval(*between[1:]), as_ratio(p90),
                              NOT_MEASURED))
            for phase, said in (("converged", "in turns, settled"),
                                ("moving", "in turns, first load moving")):
                cell = section.in_turns(result.protocol, phase)
                if not cell:
                    continue
                table.append((f"{section.title}, {result.protocol}, {said}",
                              as_ratio(cell.get("throughput_ratio")),
                              _interval(*(cell.get("ci95") or (None, None))),
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


def _markdown_table(heads, lines):
    return [f"| {' | '.join(heads)} |", "|" + "---|" * len(heads),
            *(f"| {' | '.join('-' if cell == NOT_MEASURED else cell for cell in line)} |"
              for line in lines)]


def as_markdown(sections, date):
    """For docs: what the table has, and the command of every line."""
    lines = []
    for section in sections:
        lines += [f"**{heading(section)}**", "",
                  *_markdown_table(["", *(head for head, *_ in COLUMNS)],
                                   [[label, *cells] for label, cells in rows(section)]), ""]
        lines += [f"{NAMES[r.protocol]}: skipped: {r['skipped']}\n" for r in section.skipped]
    measured = speeds(sections)
    if measured:
        lines += _markdown_table(["over none", "throughput", "95 % interval", "p90 latency"],
                                 [line[:4] for line in measured])
        lines.append("")
    machine = next((r["machine"] for s in sections for r in s.results
                    if isinstance(r["machine"], dict)), {})
    said = ", ".join(str(machine[key]) for key in ("cpu", "processor", "kernel") if key in machine)
    lines += [f"Taken {date}" + (f" on {said}" if said else "") + ". Each line by its command:", ""]
    lines += [f"    {command}" for command in commands(sections)]
    return "\n".join(lines) + "\n"


def commands(sections):
    """How to repeat every run and every comparison in turns."""
    return ([r.command() for s in sections for r in s.results + s.skipped]
            + sorted({c["command"] for s in sections for c in s.cells() if c.get("command")}))


def as_text(sections):
    """For a terminal, 100 columns as a rule; what is compressed is on the page."""
    shown = [i for i, (_, key, *_) in enumerate(COLUMNS) if key != "compressed_bytes.end"]
    heads = [COLUMNS[i][0] for i in shown]
    lines = []
    for section in sections:
        cells = [(label, ["-" if row[i] == NOT_MEASURED else row[i] for i in shown])
                 for label, row in rows(section)]
        lines.append(heading(section))
        widths = [max(len(line[i]) for line in [heads, *(row for _, row in cells)]) + (2 if i == 0 else 1)
                  for i in range(len(heads))]
        labels = max((len(label) for label, _ in cells), default=0)
        lines.append(" " * (labels + 2) + "".join(f"{head:>{width}}" for head, width in zip(heads, widths)))
        lines += [f"  {label:<{labels}}" + "".join(f"{cell:>{width}}" for cell, width in zip(row, widths))
                  for label, row in cells]
        lines.append("")
    measured = speeds(sections)
    if measured:
        lines.append("throughput and latency over those of none")
        lines.append(f"{'':<48}{'throughput':>12}{'95 % interval':>18}{'p90 latency':>14}")
        lines += [f"  {what:<48}{ratio_of.replace(NOT_MEASURED, '-'):>10}{interval.replace(NOT_MEASURED, '-'):>18}"
                  f"{p90.replace(NOT_MEASURED, '-'):>14}"
                  for what, ratio_of, interval, p90, _ in measured]
        lines.append("")
    for section in sections:
        lines += [f"{heading(section)}:\n  {NAMES[r.protocol]}: skipped: {r['skipped']}"
                  for r in section.skipped]
    lines.append("-: not measured. utilization: share of touched pages' bytes that were touched.")
    lines.append("start, peak, end: memory used, with what the system caches or compresses for it.")
    lines.append("of ideal: end, over the least memory with which as many requests would have faulted")
    lines.append("(faulting), the index included.")
    lines.append("none + kernel: everything was paged out once (MADV_PAGEOUT), before the half of the")
    lines.append("traffic that counts; what was used since came back.")
    return "\n".join(lines) + "\n"
