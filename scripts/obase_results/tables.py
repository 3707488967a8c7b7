# SPDX-License-Identifier: MIT
"""Tables of a page: which rows the JSON of its commands has, and the columns of each.

A reader gets the list of the JSON texts of a step, in the order of its commands and runs, and returns a list of rows.
A column is a head and a function from a row to its cell.
"""

import dataclasses
import statistics
import typing

from .numbers import interval, mib, number, ratio, spread, verdict


@dataclasses.dataclass(frozen=True)
class Table:
    title: str
    read: typing.Callable
    columns: tuple
    text: str = ""

    def lines(self, results):
        """Markdown; nothing when there are no rows."""
        rows = self.read(results)
        if not rows:
            return []
        lines = [f"## {self.title}", ""] + ([self.text, ""] if self.text else [])
        lines += ["| " + " | ".join(head for head, _ in self.columns) + " |",
                  "|" + "---|" * len(self.columns)]
        for row in rows:
            cells = [str(cell(row)).replace("|", "\\|") for _, cell in self.columns]
            lines.append("| " + " | ".join(cells) + " |")
        return lines + [""]


# The figures that every benchmark of `obase` has in its JSON.

def _figures(results):
    return [figure for result in results for figure in result.get("figures") or []]


def _has_target(figure):
    return "at_least" in figure or "at_most" in figure


def with_targets(results):
    return [figure for figure in _figures(results) if _has_target(figure)]


def beside_targets(results):
    return [figure for figure in _figures(results) if not _has_target(figure)]


def means_beside_targets(results):
    return [figure for figure in beside_targets(results) if "geometric mean" in figure["name"]]


def _target(figure):
    if "at_least" in figure:
        return ">= " + number(figure["at_least"], figure["unit"])
    return "<= " + number(figure["at_most"], figure["unit"]) if "at_most" in figure else ""


def _figure_interval(figure):
    return "" if figure["samples"] == 1 else interval((figure["low"], figure["high"]), number)


FIGURE = (
    ("what", lambda figure: figure["name"]),
    ("median", lambda figure: number(figure["median"], figure["unit"])),
    ("95 % interval", _figure_interval),
    ("n", lambda figure: figure["samples"]),
    ("target", _target),
    ("verdict", lambda figure: figure.get("verdict", "")),
)
# For pages whose rows can be measured one by one.
FIGURE_ALONE = FIGURE + (("alone", lambda figure: f"`{figure['command']}`"),)


def figures(columns=FIGURE):
    return (Table("Targets", with_targets, columns), Table("Beside the targets", beside_targets, columns))


# `obase mrc`: the best that could be kept, of all kinds of objects.

def layouts(results):
    return [cell for result in results for cell in result["cells"]
            if cell["order"] == "static" and cell["objects"] == "all"]


def _inflation(hit_ratio):
    return f"at {hit_ratio}", lambda cell: ratio(cell["inflation"][hit_ratio])


LAYOUTS = (
    ("load", lambda cell: cell["workload"]),
    ("layout", lambda cell: cell["layout"]),
    ("reads per record", lambda cell: f"{cell['accesses_per_object']:g}"),
    ("page", lambda cell: f"{cell['page_bytes'] // 1024} KiB"),
    *(_inflation(hit_ratio) for hit_ratio in ("0.8", "0.9", "0.95", "0.99")),
)


# `obase bench ycsb`: a run per workload, each counted once.

def ycsb_runs(results):
    return [run for result in results for run in result["runs"]]


def _of(*path):
    """The member at the path in a row; None where there is none."""
    def find(row):
        for key in path:
            row = row.get(key) if isinstance(row, dict) else None
        return row
    return find


def _column(head, form, *path):
    find = _of(*path)
    return head, lambda row: form(find(row))


YCSB = (
    ("workload", _of("workload")),
    _column("utilization, plain", ratio, "page_utilization", "baseline"),
    _column("utilization", ratio, "page_utilization", "end"),
    _column("by the kernel", ratio, "page_utilization", "kernel"),
    _column("of 2 MiB pages", ratio, "page_utilization", "end_2m"),
    _column("used, start", mib, "used_bytes", "start"),
    _column("peak", mib, "used_bytes", "peak"),
    _column("end", mib, "used_bytes", "end"),
    _column("live", mib, "live_bytes"),
    _column("index", mib, "index_bytes"),
    _column("throughput", lambda rate: number(rate, "op/s"), "throughput_ops"),
    ("p90", lambda run: number(run["latency_us"]["p90"], "us")),
    _column("collector, cores", ratio, "collector_cpu_share"),
    ("witness", lambda run: "agrees" if run["witness"]["agrees"] else "differs"),
)

# `obase bench memory`: a row per cell.

def memory_cells(results):
    return [cell for result in results for cell in result["cells"]]


def _share(value):
    return "" if value is None else f"{100 * value:.2f} %"


MEMORY = (
    ("load", lambda cell: cell["load"] + (f", {cell['update_share']:g} updates" if cell["update_share"] else "")),
    ("policy", _of("policy")),
    ("limit", lambda cell: cell["limit"] or ""),
    _column("start", mib, "start_bytes"),
    _column("peak", mib, "peak_bytes"),
    _column("end", mib, "end_bytes"),
    _column("ideal", mib, "ideal_bytes"),
    _column("used / ideal", ratio, "used_over_ideal"),
    _column("used / live", ratio, "used_over_live"),
    _column("peak / allowed", ratio, "peak_over_allowed"),
    _column("faulting", _share, "fault_share"),
    _column("faults", lambda rate: number(rate, "/s"), "faults_per_s"),
    _column("stall", _share, "stall_share"),
    _column("stall / scale", _share, "stall_share_over_scale"),
    _column("throughput", ratio, "throughput_ratio"),
    ("ended", lambda cell: "killed" if cell["killed"] else "settled" if cell["settled"] else f"{len(cell['windows'])} windows"),
)

# `obase bench compare`: a cell per index, workload and protocol; its phases side by side.


def compared(results):
    cells = {}
    for result in results:
        for cell in result["cells"]:
            key = cell["index"], cell["workload"], cell["protocol"]
            cells.setdefault(key, {})[cell["phase"]] = cell
    return [{"index": key[0], "workload": key[1], "protocol": key[2], **phases} for key, phases in cells.items()]


COMPARED = (
    ("index", lambda row: f"`{row['index']}`"),
    ("workload", _of("workload")),
    ("protocol", _of("protocol")),
    _column("plain", lambda rate: number(rate, "op/s"), "converged", "plain_ops"),
    _column("converged", ratio, "converged", "throughput_ratio"),
    _column("95 % interval", interval, "converged", "ci95"),
    _column("n", lambda count: "" if count is None else count, "converged", "samples"),
    _column("p90", ratio, "converged", "p90_ratio"),
    _column("instructions", ratio, "converged", "instructions_ratio"),
    _column("moving", ratio, "moving", "throughput_ratio"),
    _column("95 % interval", interval, "moving", "ci95"),
    _column("n", lambda count: "" if count is None else count, "moving", "samples"),
)

# `obase bench index`.


def sets(results):
    """A row per index, kind of key, threads and updates; the protocols beside each other."""
    rows = {}
    for result in results:
        for cell in result["cells"]:
            key = cell["index"], cell["key_kind"], cell["threads"], cell["updates"]
            row = rows.setdefault(key, {**dict(zip(("index", "key_kind", "threads", "updates"), key)),
                                        "keys": result["keys"], "pairs": result["pairs"]})
            row[cell["protocol"]] = cell
    return list(rows.values())


def _bytes_per_key(row):
    held = next((row[p]["index_bytes"] for p in ("arming", "none", "atc") if p in row), None)
    return "" if held is None else f"{held / row['keys']:.0f}"


def _mops(value):
    return "" if value is None else f"{value:.2f}"


SETS = (
    ("index", lambda row: f"`{row['index']}`"),
    ("keys", _of("key_kind")),
    ("threads", _of("threads")),
    ("updates", lambda row: f"{row['updates']} %"),
    _column("plain, Mop/s", _mops, "none", "mops"),
    _column("95 % interval", lambda pair: interval(pair, _mops), "none", "mops_ci95"),
    _column("arming / plain", ratio, "arming", "ratio"),
    _column("95 % interval", interval, "arming", "ratio_ci95"),
    _column("atc / plain", ratio, "atc", "ratio"),
    _column("95 % interval", interval, "atc", "ratio_ci95"),
    ("n", _of("pairs")),
    ("index bytes per key", _bytes_per_key),
)


def published(results):
    return [cell for result in results for cell in result["cells"] if cell["published_mops"] is not None]


PUBLISHED = (
    ("index", lambda cell: f"`{cell['index']}`"),
    ("updates", lambda cell: f"{cell['updates']} %"),
    ("protocol", _of("protocol")),
    _column("Mop/s", _mops, "mops"),
    _column("95 % interval", lambda pair: interval(pair, _mops), "mops_ci95"),
    _column("published", lambda mops: f">= {_mops(mops)}", "published_mops"),
    ("verdict", _of("verdict")),
)


def scaling(results):
    """Geometric means over the cells, and those over that of the fewest threads."""
    return [figure for figure in _figures(results) if " / none, " in figure["name"]]

# compiler_crestdb_INDEX.ratio: several runs of each index, each with a median per mix.

AS_FAST = 0.98  # of the throughput by hand


def marked(results):
    medians = {}
    for result in results:
        for mix in result["mixes"]:
            medians.setdefault((f"`{result['index']}`", mix["writes"]), []).append(mix["ratio"])
    for writes in dict.fromkeys(writes for _, writes in medians):
        # Run by run; of an interrupted measurement as many as every index has.
        of_runs = zip(*(ratios for (_, other), ratios in medians.items() if other == writes))
        medians["geometric mean", writes] = [statistics.geometric_mean(run) for run in of_runs]
    rows = []
    for (index, writes), ratios in medians.items():
        median, low, high, trusted = spread(ratios)
        rows.append({"index": index, "writes": writes, "median": median, "n": len(ratios), "ci95": (low, high),
                     "verdict": verdict(low, high, trusted, at_least=AS_FAST)})
    return rows


MARKED = (
    ("index", _of("index")),
    ("writes", lambda row: f"{row['writes']} %"),
    _column("marked / by hand", ratio, "median"),
    ("95 % interval", lambda row: interval(row["ci95"]) if row["n"] > 1 else ""),
    ("n", _of("n")),
    ("target", lambda row: f">= {AS_FAST:.3f}"),
    ("verdict", _of("verdict")),
)


def marked_once(results):
    return [{"index": result["index"], **mix} for result in results for mix in result["mixes"]]


MARKED_ONCE = (
    ("index", lambda row: f"`{row['index']}`"),
    ("writes", lambda row: f"{row['writes']} %"),
    _column("marked / by hand", ratio, "ratio"),
    _column("middle half of the rounds", interval, "quartiles"),
    _column("marked", lambda ns: number(ns, "ns"), "ns_marked"),
    _column("by hand", lambda ns: number(ns, "ns"), "ns_by_hand"),
)

# compiler/crestdb/costs.py.


def costs(results):
    return [row for result in results for row in result["indexes"]]


def _cost(way, what, form):
    def cell(row):
        value = row[way][what]
        return form(value) if way == "plain" else f"{form(value)} ({value / row['plain'][what]:.2f})"
    return cell


COSTS = (("index", lambda row: f"`{row['index']}`"),) + tuple(
    (f"{way}, {unit}", _cost(way, what, form))
    for what, unit, form in (("seconds", "s", "{:.2f}".format), ("bytes", "bytes", "{:.0f}".format))
    for way in ("plain", "marked", "by hand"))

# compiler/programs/*/run.py --measure.


def program_runs(results):
    return [run for result in results for run in result["runs"]]


PROGRAM = (
    ("", _of("name")),
    _column("resident at first", mib, "first_bytes"),
    _column("at the end", mib, "end_bytes"),
    _column("of that in files", mib, "end_file_bytes"),
    _column("page utilization, last whole window", ratio, "utilization"),
    _column("operations a second", number, "operations_per_second"),
)


# `wiscsort bench`.


def sort_claims(results):
    return [claim for result in results for claim in result["claims"]]


SORT_CLAIMS = (
    ("claim", _of("claim")),
    ("paper", _of("paper")),
    ("ours", _of("ours")),
    ("target", _of("target")),
    ("verdict", _of("verdict")),
)


def sort_regrets(results):
    """Where a device or state has another plan that is faster than what the planner took: all cells, the worst first."""
    rows = [row for result in results for row in result["planner"]]
    return sorted(rows, key=lambda row: -row["regret"])[:10]


SORT_REGRETS = (
    ("cell", _of("cell")),
    ("chosen", _of("chosen")),
    ("best", _of("best")),
    _column("regret", ratio, "regret"),
)


def sort_cells(results):
    return [cell for result in results for cell in result["cells"]]


def _strategy(cell):
    return cell["strategy"] + (f": {cell['chosen']}" if cell["strategy"].startswith("auto") and cell.get("chosen") else "")


SORT_CELLS = (
    ("system", _of("system")),
    ("strategy", _strategy),
    ("device", _of("device")),
    ("state", _of("state")),
    ("records", lambda cell: number(cell["records"])),
    ("key:value", lambda cell: f"{cell['key_bytes']}:{cell['value_bytes']}" + (", skewed" if cell.get("skewed") else "")),
    _column("memory", lambda size: "" if not size else mib(size), "memory_bytes"),
    ("threads", _of("threads")),
    ("seconds", lambda cell: (">= " if cell.get("ended") else "") + number(cell["seconds"])),
    _column("95 % interval", lambda pair: interval(pair, number), "ci95"),
    _column("processor, s", number, "cpu_seconds"),
    _column("sync, s", number, "sync_seconds"),
    _column("read from the device", mib, "device_read_bytes"),
    _column("written", mib, "device_write_bytes"),
)


def skipped(results):
    return [{"what": line} for result in results for line in result.get("skipped") or []]


SKIPPED = (("what, and why", _of("what")),)
