# SPDX-License-Identifier: MIT
"""Plots over the windows of a section, as SVG text to be put into a page.

Every plot is drawn for the width of a phone and scaled up elsewhere. A plot of numbers that no run
measured is None.
"""

import io
import re

import matplotlib

matplotlib.use("svg")
# pylint: disable=wrong-import-position
from matplotlib import pyplot
from matplotlib.ticker import FuncFormatter, MaxNLocator
from matplotlib.transforms import ScaledTranslation

from .colours import DASHES, FAINT, HATCHES, HEAPS, INK, RULE, RUNS
from .result import HEAPS as HEAP_NAMES, WITH_OBASE, first_measured
from .units import byte_unit, count_unit

WIDTH = 4.2
PROMOTION_TARGET = 0.01

pyplot.rcParams.update({
    "svg.fonttype": "none", "font.size": 9, "axes.titlesize": 9, "legend.fontsize": 8.5,
    "text.color": INK, "axes.labelcolor": INK, "xtick.color": INK, "ytick.color": INK,
    "axes.edgecolor": FAINT, "axes.spines.top": False, "axes.spines.right": False,
    "axes.grid": True, "axes.grid.axis": "y", "grid.color": RULE, "grid.linewidth": 0.6,
    "axes.axisbelow": True, "lines.linewidth": 1.8, "legend.frameon": False, "hatch.linewidth": 0.4,
    "figure.constrained_layout.use": True,
})


def _svg(figure, name):
    """The figure as an SVG element; its ids begin with `name`, so that many fit into one page."""
    text = io.StringIO()
    with matplotlib.rc_context({"svg.hashsalt": name}):
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    pyplot.close(figure)
    svg = text.getvalue()
    svg = svg[svg.index("<svg"):]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.S)
    svg = re.sub(r"<!--.*?-->", "", svg, flags=re.S)
    svg = re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", svg, count=1)
    svg = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", svg, count=1)
    svg = svg.replace("<svg", '<svg aria-hidden="true" focusable="false"', 1)
    svg = re.sub(r'\bid="', f'id="{name}-', svg)
    svg = svg.replace("url(#", f"url(#{name}-").replace('xlink:href="#', f'xlink:href="#{name}-')
    # The page's own fonts: what the SVG was measured with is seldom there.
    svg = re.sub(r"'DejaVu Sans'[^;\"]*?sans-serif", "system-ui, 'DejaVu Sans', sans-serif", svg)
    return svg


def _axes(section, panels=1, height=2.3, share_y=False):
    figure, axes = pyplot.subplots(panels, 1, figsize=(WIDTH, height), sharex=True, sharey=share_y,
                                   squeeze=False)
    axes = [row[0] for row in axes]
    axes[-1].set_xlabel("seconds since the start")
    # All plots of a section, whichever runs they show, have the same time.
    last = max((t for r in section.results for t in r.series("t_s")[0]), default=0)
    if last > 0:
        axes[-1].set_xlim(0, 1.02 * last)
    return figure, axes


def _line(axes, result, path, label, scale=1.0, **style):
    """Draws one series; False if it was not measured. A single window is a point."""
    times, values = result.series(path)
    if not times:
        return False
    style = {"color": RUNS[result.protocol], "linestyle": DASHES[result.protocol], **style}
    if len(times) == 1:
        style["marker"] = "o"
    axes.plot(times, [v / scale for v in values], label=label, **style)
    return True


def _name(axes, text):
    """What the axis counts, level and readable, where a rotated label would not be."""
    axes.set_title(text, loc="left", fontsize=8.5, color=INK, pad=5)


def _legend(axes, columns=3):
    if not axes.get_legend_handles_labels()[0]:
        return
    above_the_name = ScaledTranslation(0, 17 / 72, axes.figure.dpi_scale_trans)
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1), borderaxespad=0, borderpad=0,
                bbox_transform=axes.transAxes + above_the_name, ncols=columns, handlelength=2.2,
                columnspacing=1.2)


def _from_zero(axes):
    top = axes.get_ylim()[1]
    axes.set_ylim(0, 1.03 * top if top > 0 else 1)
    axes.yaxis.set_major_locator(MaxNLocator(5))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def _in_percent(axes):
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:g} %"))


def _largest(section, *paths):
    values = [v for r in section.results for path in paths for v in r.series(path)[1]]
    return max(values, default=0)


def utilization(section, name):
    figure, (axes,) = _axes(section)
    drawn = []
    for result in section.results:
        known = _line(axes, result, "page_utilization", result.protocol)
        if not known and result["page_utilization.end"] is not None:
            axes.axhline(result["page_utilization.end"], color=RUNS[result.protocol],
                         linestyle=DASHES[result.protocol], label=f"{result.protocol}, at the end")
            known = True
        drawn.append(known)
    if not any(drawn):
        pyplot.close(figure)
        return None
    axes.set_ylim(0, 1)
    _in_percent(axes)
    _name(axes, "utilization")
    _legend(axes)
    return _svg(figure, name)


def memory(section, name):
    figure, (axes,) = _axes(section, height=2.7)
    unit, scale = byte_unit(_largest(section, "rss_bytes", "used_bytes"))
    drawn = []
    for result in section.results:
        drawn.append(_line(axes, result, "used_bytes", f"{result.protocol}: used", scale))
        # RSS tells nothing of what is cached or compressed; where it says the same, it is left out.
        if result.protocol != "none":
            drawn.append(_line(axes, result, "rss_bytes", f"{result.protocol}: RSS", scale,
                               linewidth=0.9, linestyle=(0, (1, 1))))
    if not any(drawn):
        pyplot.close(figure)
        return None
    live, index = first_measured(section, "live_bytes"), first_measured(section, "index_bytes")
    if live is not None:
        axes.axhline(live / scale, color=HEAPS["hot"], linewidth=1.2, label="live data")
    if live is not None and index:
        axes.axhline((live + index) / scale, color=HEAPS["hot"], linewidth=1, linestyle=(0, (1, 2)),
                     label="live data + index")
    _from_zero(axes)
    _name(axes, unit)
    _legend(axes, columns=2)
    return _svg(figure, name)


def promotion(section, name):
    figure, (rate, threshold) = _axes(section, panels=2, height=3.1)
    moving = [r for r in section.results if r.protocol in WITH_OBASE]
    drawn = []
    for result in moving:
        drawn.append(_line(rate, result, "promotion_rate", result.protocol))
        drawn.append(_line(threshold, result, "cold_threshold", None, drawstyle="steps-post"))
    if not any(drawn):
        pyplot.close(figure)
        return None
    rate.axhline(PROMOTION_TARGET, color=HEAPS["hot"], linewidth=1.2, label="target")
    _from_zero(rate)
    _in_percent(rate)
    _from_zero(threshold)
    threshold.yaxis.set_major_locator(MaxNLocator(4, integer=True))
    _name(rate, "promotion rate, per minute")
    _name(threshold, "cold threshold C$_\\mathrm{t}$, windows")
    _legend(rate)
    return _svg(figure, name)


def heaps(section, name):
    result = section.moving
    series = {kind: [result.series(f"heaps.{heap}.{kind}") for heap in HEAP_NAMES]
              for kind in ("extent_bytes", "live_bytes")} if result else {}
    if not any(times for kind in series.values() for times, _ in kind):
        return None
    figure, panels = _axes(section, panels=2, height=3.4, share_y=True)
    times = sorted({t for kind in series.values() for known, _ in kind for t in known})
    edges = _edges(times)
    stacks = {kind: _stack([dict(zip(*s)) for s in of_kind], times)
              for kind, of_kind in series.items()}
    unit, scale = byte_unit(max(max(stack[-1]) for stack in stacks.values()))
    for axes, (kind, title) in zip(panels, [("extent_bytes", "held by the heaps"),
                                            ("live_bytes", "live objects in them")]):
        stack = [[v / scale for v in level] for level in stacks[kind]]
        for heap, lower, upper in zip(HEAP_NAMES, stack, stack[1:]):
            if lower != upper or heap != "large":
                axes.stairs(upper, edges, baseline=lower, fill=True, label=heap.upper(),
                            facecolor=HEAPS[heap], hatch=HATCHES[heap], edgecolor="white",
                            linewidth=0)
        _from_zero(axes)
        _name(axes, f"{title}, {unit}")
    _legend(panels[0], columns=4)
    return _svg(figure, name)


def _edges(times):
    """Where windows begin and end that ended at `times`."""
    lengths = [later - earlier for earlier, later in zip(times, times[1:])]
    return [max(times[0] - min(lengths, default=1.0), 0.0), *times]


def _stack(known_by_heap, times):
    """Running sums over the heaps, from zero: one list of heights more than there are heaps."""
    levels = [[0.0] * len(times)]
    for known in known_by_heap:
        levels.append([below + known.get(t, 0.0) for below, t in zip(levels[-1], times)])
    return levels


def moves(section, name):
    moving = [r for r in section.results if r.protocol in WITH_OBASE]
    figure, panels = _axes(section, panels=2, height=3.1)
    drawn = []
    for axes, path, title in zip(panels, ("moved", "vetoed"), ("objects moved", "moves given up")):
        word, scale = count_unit(_largest(section, path))
        for result in moving:
            times, values = result.series(path)
            drawn.append(bool(times))
            if times:
                axes.stairs([v / scale for v in values], _edges(times), baseline=0, linewidth=1.8,
                            label=result.protocol, color=RUNS[result.protocol],
                            linestyle=DASHES[result.protocol])
        _from_zero(axes)
        _name(axes, f"{title} per window" + (f", {word}" if word else ""))
    if not any(drawn):
        pyplot.close(figure)
        return None
    _legend(next(axes for axes in panels if axes.patches))
    return _svg(figure, name)


def throughput(section, name):
    figure, (axes,) = _axes(section)
    word, scale = count_unit(_largest(section, "throughput_ops"))
    drawn = [_line(axes, r, "throughput_ops", r.protocol, scale) for r in section.results]
    if not any(drawn):
        pyplot.close(figure)
        return None
    _from_zero(axes)
    _name(axes, f"{word} operations per second".strip())
    _legend(axes)
    return _svg(figure, name)
