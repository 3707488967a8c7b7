# SPDX-License-Identifier: MIT
"""The page: one HTML file without scripts and without anything from elsewhere."""

from html import escape

from . import drawing, figures, heat_map
from .colours import FAINT, INK, RULE
from .result import HEAPS, first_measured, ratio, saved, speed, used_before
from .table import COLUMNS, NAMES, commands, heading, rows, speeds
from .units import (NOT_MEASURED, as_number, as_ratio, in_bytes, in_count,
                    in_microseconds, in_percent, in_rate, in_whole_percent)

STYLE = f"""
:root {{ color-scheme: light; }}
body {{ font: 17px/1.55 system-ui, "DejaVu Sans", sans-serif; color: {INK}; background: #fff;
       margin: 0 auto; padding: 1rem; max-width: 68rem; }}
h1 {{ font-size: 1.9rem; line-height: 1.2; margin: .6rem 0 .4rem; }}
h2 {{ font-size: 1.4rem; margin: 2.6rem 0 .6rem; border-top: 3px solid {INK}; padding-top: .6rem; }}
h3 {{ font-size: 1.1rem; margin: 1.6rem 0 .3rem; }}
p, ul, ol {{ max-width: 44rem; margin: .5rem 0; }}
.cards, .pair, .plots {{ display: grid; gap: 1.2rem; margin: 1rem 0; }}
.cards {{ grid-template-columns: repeat(auto-fit, minmax(17rem, 1fr)); }}
.pair {{ grid-template-columns: repeat(auto-fit, minmax(min(19rem, 100%), 1fr)); }}
.plots {{ grid-template-columns: repeat(auto-fit, minmax(min(25rem, 100%), 1fr)); }}
.drawings {{ max-width: 52rem; }}
.card {{ border: 1px solid {RULE}; border-radius: 8px; padding: .9rem 1rem; }}
.card h3 {{ margin: 0 0 .3rem; }}
.card .big {{ font-size: 1.7rem; font-weight: 700; line-height: 1.2; margin: .2rem 0 .6rem; }}
figure {{ margin: 0; min-width: 0; }}
figure svg, .bars {{ width: 100%; height: auto; display: block; }}
.bars {{ max-width: 25rem; }}
figcaption {{ font-size: .92rem; }}
.plots {{ gap: 2rem 2.5rem; }}
h4 {{ font-size: 1.02rem; margin: 0 0 .2rem; }}
.heat {{ width: 100%; height: auto; display: block; }}
.region {{ font-size: .92rem; margin: .6rem 0 .15rem; }}
.legend {{ list-style: none; padding: 0; display: flex; flex-wrap: wrap; gap: .2rem 1.1rem;
          font-size: .92rem; max-width: none; }}
.legend svg {{ vertical-align: -2px; }}
.scroll {{ overflow-x: auto; }}
table {{ border-collapse: collapse; font-size: .95rem; font-variant-numeric: tabular-nums; }}
th, td {{ padding: .3rem .7rem; text-align: right; white-space: nowrap; }}
th {{ font-weight: 600; }}
th:first-child, td:first-child {{ text-align: left; padding-left: 0; }}
thead th {{ border-bottom: 2px solid {INK}; vertical-align: bottom; }}
thead th[scope=colgroup] {{ text-align: center; white-space: normal;
                           border-bottom: 1px solid {RULE}; }}
tbody tr.group th {{ padding-top: 1rem; border-bottom: 1px solid {RULE}; white-space: normal; }}
tbody tr.ratio td, tbody tr.ratio th {{ font-weight: 700; }}
.wide td:not(:first-child) {{ white-space: normal; min-width: 5.5rem; }}
.warning {{ border-left: 6px solid #b00020; padding: .5rem .9rem; background: #fdf1f2; }}
pre {{ background: #f4f6f8; padding: .7rem; white-space: pre-wrap; overflow-wrap: anywhere;
      font-size: .88rem; border-radius: 6px; }}
.faint {{ color: {FAINT}; }}
dt {{ font-weight: 700; margin-top: .6rem; }} dd {{ margin: 0; max-width: 44rem; }}
@media print {{
  body {{ font-size: 9.5pt; max-width: none; padding: 0; }}
  .cards {{ grid-template-columns: repeat(3, 1fr); }}
  .plots, .drawings {{ grid-template-columns: 1fr 1fr; gap: 1rem 2rem; }}
  .maps {{ grid-template-columns: repeat(3, 1fr); }}
  .scroll {{ overflow: visible; }}
  table {{ font-size: 8pt; }}
  th, td {{ padding: .15rem .4rem; }}
  figure, .card, tr {{ break-inside: avoid; }}
  h2, h3, h4, h2 + p {{ break-after: avoid; }}
  * {{ print-color-adjust: exact; -webkit-print-color-adjust: exact; }}
}}
"""

EXPLANATION = f"""
<h2>What is going on here</h2>
<p>An operating system hands out memory in <b>pages</b> of 4096 bytes, and takes it back in pages
too: a page that has not been used for a while can be written to disk or compressed, and its memory
given to someone else. It cannot take back half a page.</p>
<p>A program thinks in <b>objects</b>: a record, a name, a picture. Several of them share a page, in
the order in which they happened to be created. Usually a few objects are asked for all the time
(<b>hot</b>) and most are hardly ever asked for (<b>cold</b>). <b>One hot object is enough to keep
its whole page in memory, with all the cold objects on it.</b> That is called hotness fragmentation,
and it is why servers hold on to memory full of data that is not read.</p>
<div class="pair drawings">
<figure><h4>Without obase</h4>{drawing.mixed_pages()}<figcaption>A row of four is a page. Boxes
with H are hot objects, the others are cold. Every page has a hot object on it, so every page
stays.</figcaption></figure>
<figure><h4>With obase</h4>{drawing.sorted_pages()}<figcaption>The same objects, sorted. Hot objects
fill pages of their own; pages with nothing but cold objects can go.</figcaption></figure>
</div>
<p>obase does this to a C++ program while it runs and without stopping it:</p>
<ol>
<li>The program reaches its objects through <i>guides</i>, pointers that also leave a mark the first
time they are followed.</li>
<li>Time is cut into <i>windows</i>. After each, obase looks at the marks. Used objects move next to
each other into the heap HOT; objects unused for more than C<sub>t</sub> windows move to COLD. New
ones begin in NEW. If a thread uses an object at that very moment, its move is given up
(<i>vetoed</i>).</li>
<li>When COLD is hardly ever used any more, the operating system may take its pages. Should one be
asked for after all, it is read back, and obase moves the object to HOT.</li>
</ol>
"""

WORDS = """
<h2>The words used here</h2>
<dl>
<dt>utilization, useful share of touched pages</dt><dd>Bytes of the objects that were used in a
window, divided by the bytes of all pages that were touched because of them. 100 % means that no
page stays in memory for the sake of a part of it.</dd>
<dt>RSS</dt><dd>Memory mapped into the process, what <code>ps</code> shows. It can look small while
the system still keeps the data in a cache, hence the next one.</dd>
<dt>really used memory</dt><dd>Memory of the process, plus pages of its files that are still cached,
plus what it takes in a compressed pool.</dd>
<dt>live data</dt><dd>Bytes of the objects that are asked for at all: about the least a program
could live with, besides its index.</dd>
<dt>promotion rate</dt><dd>Pages of COLD that were used after all, as a share of all pages used, per
minute. obase steers it towards 1 % by changing C<sub>t</sub>.</dd>
<dt>C<sub>t</sub>, the cold threshold</dt><dd>For how many windows an object must have been left
alone before it counts as cold.</dd>
<dt>p90 latency</dt><dd>Nine of ten operations take less time than this.</dd>
<dt>none, kernel, arming, atc</dt><dd>The same program without obase (on the allocator jemalloc);
the same, with the kernel's own reclaim: halfway through, everything is paged out once
(<code>MADV_PAGEOUT</code>) into swap, and what is used from then on comes back, so that what stays is
what the kernel could keep if it knew exactly which pages are idle; with obase; with obase moving objects by the protocol of the papers it builds on.</dd>
</dl>
"""


# What is too wide for a phone scrolls by itself, with the keyboard too.
SCROLL = '<div class="scroll" tabindex="0" role="region" aria-label="table">'


def _range(values):
    """Percentages from the lowest to the highest."""
    low, high = round(100 * min(values)), round(100 * max(values))
    return f"{low} %" if low == high else f"{low} to {high} %"


def headline(sections):
    """One line that the numbers bear out: the range over all experiments, the worst included."""
    savings = [s for s in map(saved, sections) if s is not None]
    if any(_doubtful(result) for section in sections for result in section.results):
        return "Results that should not be relied on"
    known = [s for s in map(speed, sections) if s is not None]
    if not savings:
        return "Memory and speed, with obase and without"
    at = f", at {_range(known)} of the speed" if known else ""
    if min(savings) < 0.05:
        return f"obase changed memory use by {_signed(savings)}{at}"
    return f"{_range(savings)} less memory for the same work{at}"


def _signed(savings):
    low, high = sorted(round(-100 * s) for s in (min(savings), max(savings)))
    return f"{low:+d} %" if low == high else f"{low:+d} to {high:+d} %"


def what_was_run(section):
    """The workload of a section in plain words."""
    first = section.first
    if section.is_packages:
        count = first["packages"]
        said = f"{count:,.0f} entries" if count is not None else "the entries"
        return (f"The package index of this Debian system: {said} of real text. Each request "
                "looks up an installed package and everything it depends on. A few libraries are "
                "read again and again, most packages never.")
    records = f"{first['records']:,.0f} records" if first["records"] is not None else "Records"
    size = (f" of {first['value_size']:,.0f} bytes" if first["value_size"] is not None else "")
    what = {"A": "half of the requests read, half write", "B": "95 of 100 requests read, 5 write",
            "C": "all requests read", "D": "95 of 100 requests read, mostly the newest, 5 insert",
            "E": "95 of 100 requests scan, 5 insert",
            "F": "half of the requests read, half read and then write"}
    text = f"{records}{size} in a key-value store"
    if first["workload"] in what:
        text += f"; {what[first['workload']]}"
    if first["distribution"] == "loop" and first["live_share"] is not None:
        share = in_percent(first["live_share"])
        text += (f". The requests go round in a loop that touches {share} of the records, "
                 "scattered over all of them; the others are never asked for")
    return text + "."


def _change(less):
    return f"{in_whole_percent(abs(less))} {'less' if less >= 0 else 'more'}"


def _lead(section):
    """What happened, as a sentence."""
    moving, (before, origin) = section.moving, used_before(section)
    if moving is None:
        return "No run with obase among the results."
    after, less = moving["used_bytes.end"], saved(section)
    if less is None:
        words = "Used memory was not measured."
    else:
        where = "Without obase the program uses" if origin == "none" else "At the start it used"
        words = (f"{where} {in_bytes(before)} of memory, with obase {in_bytes(after)} at the end: "
                 f"{_change(less)}.")
    peak = ratio(moving["used_bytes.peak"], before)
    if peak is not None:
        words += f" At its peak it was {as_ratio(peak)} of that without."
    kernel = section.of("kernel")
    if kernel and kernel["used_bytes.end"] is not None:
        words += (f" The kernel alone, asked to page everything out, ends at "
                  f"{in_bytes(kernel['used_bytes.end'])}")
        if kernel["compressed_bytes.end"]:
            words += f", {in_bytes(kernel['compressed_bytes.end'])} of it compressed"
        words += "."
    for skipped in section.skipped:
        words += f" {NAMES[skipped.protocol]}: skipped: {skipped['skipped']}."
    fast = section.speed(moving)
    if fast is not None:
        value, low, high, how = fast
        words += f" Throughput is {in_percent(value)} of that without obase"
        if low is not None:
            words += f" (95 % interval {in_percent(low)} to {in_percent(high)})"
        words += f", measured {how}."
    plain = section.plain["page_utilization.end"] if section.plain else None
    start = plain if plain is not None else moving["page_utilization.start"]
    end = moving["page_utilization.end"]
    if start is not None and end is not None:
        words += (f" Of every page that is used at all, {in_whole_percent(start)} was really "
                  f"needed before, {in_whole_percent(end)} after.")
    return words


def _short(section, sections):
    """The section's title, with more of what it was if others have the same."""
    same = [s for s in sections if s.title == section.title]
    return section.title if len(same) == 1 else heading(section)


def _card(section, sections):
    less = saved(section)
    if less is None:
        big = "Memory: not measured"
    else:
        big = f"{_change(less)} memory"
    bars = [(f"used at the end, {name}", section.of(protocol)["used_bytes.end"], protocol)
            for protocol, name in (("none", "without obase"),
                                   ("kernel", "without obase, kernel reclaims"),
                                   ("arming", "with obase"), ("atc", "with obase (atc)"))
            if section.of(protocol)]
    live, index = first_measured(section, "live_bytes"), first_measured(section, "index_bytes")
    if live is not None:
        what = "live data and index" if index else "live data"
        bars.append((f"{what}, the least possible", live + (index or 0), "live"))
    return (f'<div class="card"><h3>{escape(_short(section, sections))}</h3>'
            f'<p class="big">{big}</p>'
            f"{drawing.memory_bars(bars)}<p>{escape(_lead(section))}</p></div>")


def _doubtful(result):
    """Data was lost or the witness measured something else: then no figure of the run counts."""
    return bool(result["witness.agrees"] is False or result["witness.lost_writes"]
                or result["witness.stale_reads"] or result["witness.corrupt_values"])


def warnings(sections):
    """What a reader must know before believing a number: [text]."""
    said = []
    for section in sections:
        for result in section.results:
            name = f"{heading(section)}, {result.protocol}"
            if result["partial"]:
                said.append(f"{name}: the run was stopped early; its numbers are of the part that "
                            "was run.")
            if result["witness.agrees"] is False:
                said.append(f"{name}: the independent measurement disagrees with these numbers.")
            for key, what in (("witness.lost_writes", "lost writes"),
                              ("witness.stale_reads", "stale reads"),
                              ("witness.corrupt_values", "corrupt values")):
                if result[key]:
                    said.append(f"{name}: {as_number(result[key])} {what}.")
        said += [f"{heading(section)}, {NAMES[r.protocol]}: skipped: {r['skipped']}"
                 for r in section.skipped]
        if section.plain is None:
            said.append(f"{heading(section)}: no run without obase to compare with.")
        elif section.moving is None:
            said.append(f"{heading(section)}: no run with obase to compare with.")
    return said


def _warnings(sections):
    said = warnings(sections)
    if not said:
        return ""
    return ('<div class="warning"><b>Read this first</b><ul>'
            + "".join(f"<li>{escape(text)}</li>" for text in said) + "</ul></div>")


def _table(sections):
    head = "".join(f'<th scope="col" title="{escape(title)}">{escape(name)}</th>'
                   for name, _, _, title in COLUMNS)
    body = []
    for section in sections:
        body.append(f'<tr class="group"><th scope="colgroup" colspan="{len(COLUMNS) + 1}">'
                    f"{escape(heading(section))}</th></tr>")
        for label, cells in rows(section):
            kind = ' class="ratio"' if "/" in label else ""
            body.append(f'<tr{kind}><th scope="row">{escape(label)}</th>'
                        + "".join(f"<td>{_cell(cell)}</td>" for cell in cells) + "</tr>")
    return (f'{SCROLL}<table><thead><tr><td></td>{head}</tr></thead>'
            f"<tbody>{''.join(body)}</tbody></table></div>"
            "<p>Utilization, compressed, throughput and latency: at the end of each run, or in its "
            "second half. Utilization and throughput: more is better. Memory and latency: less is "
            "better. Ratios: 1× is the same as without obase. All figures of a line are of one "
            "configuration.</p>"
            f"{_speeds(sections)}")


def _speeds(sections):
    measured = speeds(sections)
    if not measured:
        return ""
    heads = ["throughput", "95 % interval", "p90 latency", "instructions"]
    head = "".join(f'<th scope="col">{name}</th>' for name in heads)
    body = "".join(f'<tr><th scope="row">{escape(what)}</th>'
                   + "".join(f"<td>{_cell(cell)}</td>" for cell in cells) + "</tr>"
                   for what, *cells in measured)
    return ("<h3>Speed, measured twice</h3><p><b>Between the runs</b>: the runs above follow each "
            "other, and a machine is not equally fast at all times; the interval is that of the "
            "windows in their second halves, and knows nothing of that. <b>In turns</b>: both "
            "stores in one process, taking turns of half a second, with the same hints to the "
            "kernel and COLD in the same place. A ratio below 1× is a slowdown.</p>"
            f"{SCROLL}<table><thead><tr><td></td>{head}</tr></thead><tbody>{body}</tbody></table>"
            "</div>")


def _cell(text):
    return f'<span class="faint">{text}</span>' if text == NOT_MEASURED else escape(text)


PLOTS = [
    (figures.memory, "Memory",
     "Thick: memory really used. Thin: RSS, of those whose memory leaves. The level lines are the least that would do: "
     "the data in use, and the index that finds it."),
    (figures.utilization, "How much of a touched page was needed",
     "Higher is better. It rises as hot objects are collected on pages of their own."),
    (figures.heaps, "The heaps",
     "Objects begin in NEW and are sorted into HOT and COLD. Above: memory committed to each heap, "
     "paged out or not; below: the objects in it. The difference is holes."),
    (figures.promotion, "Is COLD really cold?",
     "Above: pages of COLD that were used after all. Over the target, obase waits longer before it "
     "calls an object cold (below)."),
    (figures.moves, "Moves",
     "Objects moved in each window, and moves given up because a thread was using the object."),
    (figures.throughput, "Throughput", "More is better. What moving costs shows while it goes on."),
]


def _plots(section, number):
    parts = []
    for index, (draw, title, caption) in enumerate(PLOTS):
        svg = draw(section, f"s{number}f{index}")
        inside = svg or f'<p class="faint">{NOT_MEASURED}</p>'
        said = f' role="img" aria-label="{escape(_summary(section, draw))}"' if svg else ""
        parts.append(f"<figure><h4>{escape(title)}</h4><div{said}>{inside}</div>"
                     f"<figcaption>{escape(caption)}</figcaption></figure>")
    return '<div class="plots">' + "".join(parts) + "</div>"


def _summary(section, draw):
    """First and last value of what a plot shows, for those who do not see it."""
    shown = {figures.memory: [("used_bytes", in_bytes), ("rss_bytes", in_bytes)],
             figures.utilization: [("page_utilization", in_percent)],
             figures.heaps: [(f"heaps.{heap}.extent_bytes", in_bytes) for heap in HEAPS],
             figures.promotion: [("promotion_rate", in_percent), ("cold_threshold", as_number)],
             figures.moves: [("moved", as_number), ("vetoed", as_number)],
             figures.throughput: [("throughput_ops", in_rate)]}[draw]
    said = []
    for result in section.results:
        for path, say in shown:
            _, values = result.series(path)
            if values:
                said.append(f"{result.protocol}, {path}: from {say(values[0])} "
                            f"to {say(values[-1])}")
    return "; ".join(said)


def _heat_maps(section):
    chosen = []
    if section.plain and section.plain.heat_map("after"):
        chosen.append(("Without obase", section.plain.heat_map("after")))
    elif section.plain and section.plain.heat_map("before"):
        chosen.append(("Without obase", section.plain.heat_map("before")))
    if section.moving:
        chosen += [(title, section.moving.heat_map(moment)) for title, moment in
                   (("With obase, at the start", "before"),
                    ("With obase, at the end", "after")) if section.moving.heat_map(moment)]
    if not chosen:
        return ('<h3>The address space, before and after</h3>'
                f'<p class="faint">{NOT_MEASURED}</p>')
    scale = heat_map.scale_of(regions for _, regions in chosen)
    maps = "".join(f'<figure><h4>{escape(title)}</h4>'
                   f"{heat_map.draw(regions, scale)}</figure>" for title, regions in chosen)
    return ("<h3>The address space, before and after</h3>"
            "<p>All memory that holds objects, in the order of addresses, row by row. Colour says "
            "how much of it was touched in one window. Pale and middling colours are memory held "
            "for the sake of a few objects; dark is memory that is worth its place; grey can leave "
            "without anyone noticing. The more the even mixture becomes dark here and grey there, "
            "the better.</p>"
            f"{heat_map.legend(scale)}"
            f'<div class="pair maps">{maps}</div>')


def _section(section, number):
    return (f"<h2>{escape(heading(section))}</h2><p>{escape(what_was_run(section))}</p>"
            f"{_plots(section, number)}{_heat_maps(section)}")


PARAMETERS = [
    ("duration", "duration_s", lambda v: f"{v:g} s"), ("window", "window_s", lambda v: f"{v:g} s"),
    ("time scale", "time_scale", lambda v: f"{v:g}"),
    ("window, after scaling", "real_window_s", lambda v: f"{v:g} s"), ("mode", "mode", str),
    ("hints to the kernel", "hints", str), ("COLD lies in", "cold", str),
    ("period of the loop", "period", lambda v: f"{v:,.0f} operations"),
    ("key size", "key_size", in_bytes), ("value size", "value_size", in_bytes),
    ("used memory measured by", "used_method", str),
    ("the kernel's reclaim", "reclaim", str), ("swap", "swap", str),
    ("asked to page out", "paged_out_bytes", in_bytes),
    ("used memory, start", "used_bytes.start", in_bytes),
    ("used memory, peak", "used_bytes.peak", in_bytes),
    ("of it compressed, end", "compressed_bytes.end", in_bytes),
    ("RSS, start", "rss_bytes.start", in_bytes),
    ("index (nodes, buckets; do not move)", "index_bytes", in_bytes),
    ("utilization, jemalloc's layout", "page_utilization.baseline", in_percent),
    ("utilization, start", "page_utilization.start", in_percent),
    ("utilization in pages of 2 MiB, end", "page_utilization.end_2m", in_percent),
    ("latency p50", "latency_us.p50", in_microseconds),
    ("latency p99", "latency_us.p99", in_microseconds),
    ("latency p99.9", "latency_us.p999", in_microseconds),
    ("objects moved", "moved", in_count), ("moves given up", "vetoed", in_count),
    ("promotion rate per minute, end", "promotion_rate", in_percent),
    ("C_t, end", "cold_threshold", as_number),
    ("guides followed per operation", "guides_per_op", lambda v: f"{v:.2f}"),
    ("collector's processor time", "collector_cpu_share", lambda v: f"{v:.2%} of a core"),
    ("witness: utilization", "witness.page_utilization", in_percent),
    ("witness: used memory", "witness.used_bytes", in_bytes),
    ("witness: used memory measured by", "witness.used_method", str),
    ("witness: lost writes", "witness.lost_writes", as_number),
    ("witness: stale reads", "witness.stale_reads", as_number),
    ("witness: corrupt values", "witness.corrupt_values", as_number),
    ("witness agrees", "witness.agrees", lambda v: "yes" if v else "NO"),
]


def _machine(result):
    machine = result["machine"]
    if not isinstance(machine, dict) or not machine:
        return NOT_MEASURED
    names = {"memory_gib": "memory, GiB", "load": "load at the start"}
    return "; ".join(f"{names.get(key, key)}: {_plain(value)}" for key, value in machine.items())


def _plain(value):
    if isinstance(value, list):
        return " ".join(_plain(v) for v in value)
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _method(sections):
    parts = ["<h2>How it was measured</h2>",
             "<p>Used memory, utilization, lost writes and stale reads are measured a second time "
             "by a witness that shares no code with obase (its own log of keys, the kernel's page "
             "tables, a checksum and a version in every value).</p>"]
    scales = sorted({r["time_scale"] for s in sections for r in s.results
                     if r["time_scale"] not in (None, 1)})
    if scales:
        said = ", ".join(f"{scale:g}" for scale in scales)
        parts.append(f"<p><b>Time is scaled by {said}</b>: obase is meant to look at memory every "
                     "two minutes; to be over within minutes, the demo divides its times by this. "
                     "Rates per minute are scaled alike.</p>")
    machines = []
    for section in sections:
        for result in section.results:
            if (said := _machine(result)) not in machines:
                machines.append(said)
    parts += [f"<p>Machine: {escape(said)}.</p>" for said in machines]
    groups = "".join(f'<th scope="colgroup" colspan="{len(s.results)}">'
                     f"{escape(_short(s, sections))}</th>" for s in sections)
    results = [r for s in sections for r in s.results]
    head = "".join(f'<th scope="col">{escape(r.protocol)}</th>' for r in results)
    body = "".join(
        f'<tr><th scope="row">{escape(name)}</th>' + "".join(
            f"<td>{_cell(NOT_MEASURED if r[key] is None else say(r[key]))}</td>" for r in results)
        + "</tr>" for name, key, say in PARAMETERS)
    parts.append(f'{SCROLL}<table class="wide"><thead><tr><td></td>{groups}</tr>'
                 f"<tr><td></td>{head}</tr></thead><tbody>{body}</tbody></table></div>")
    parts.append("<h2>To repeat it</h2><p><code>make demo</code> does all of it. Single runs:</p>")
    parts.append("<pre>" + escape("\n".join(commands(sections))) + "</pre>")
    return "".join(parts)


def render(sections):
    """The whole page as text."""
    return (f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            f"<title>obase: {escape(headline(sections))}</title><style>{STYLE}</style></head><body>"
            f"<h1>{escape(headline(sections))}</h1>"
            "<p>obase moves the objects of a running program so that those in use share pages and "
            "the others can leave memory. Below is the same program with it and without, on the "
            "same data and requests.</p>"
            f'{_warnings(sections)}<div class="cards">'
            + "".join(_card(s, sections) for s in sections) + "</div>"
            f"<h2>The numbers</h2>{_table(sections)}{EXPLANATION}"
            + "".join(_section(s, n) for n, s in enumerate(sections))
            + WORDS + _method(sections) + "</body></html>\n")
