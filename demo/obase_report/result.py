# SPDX-License-Identifier: MIT
"""Results of `obase bench ycsb`, `packages` and `compare`: read, checked, put side by side.

A number that was not measured is null in the file, and None here; a key that is missing counts as
null. Only what says which run this is must be there (REQUIRED). A value of the wrong kind is an
error in the file, not something to draw.
"""

import json
import math

NUMBER, TEXT, FLAG = "a number", "text", "true or false"

# Dotted path: what it must be if it is neither missing nor null.
SCHEMA = {
    "index": TEXT, "workload": TEXT, "protocol": TEXT, "mode": TEXT, "distribution": TEXT,
    "hints": TEXT, "cold": TEXT, "reclaim": TEXT, "skipped": TEXT, "swap": TEXT, "used_method": TEXT, "source": TEXT,
    "partial": FLAG,
    "records": NUMBER, "packages": NUMBER, "threads": NUMBER, "duration_s": NUMBER,
    "window_s": NUMBER, "real_window_s": NUMBER, "time_scale": NUMBER, "live_share": NUMBER,
    "period": NUMBER, "key_size": NUMBER, "value_size": NUMBER,
    "throughput_ops": NUMBER,
    "latency_us.p50": NUMBER, "latency_us.p90": NUMBER, "latency_us.p99": NUMBER,
    "latency_us.p999": NUMBER,
    "page_utilization.baseline": NUMBER, "page_utilization.start": NUMBER,
    "page_utilization.end": NUMBER, "page_utilization.end_2m": NUMBER,
    "rss_bytes.start": NUMBER, "rss_bytes.end": NUMBER,
    "used_bytes.start": NUMBER, "used_bytes.peak": NUMBER, "used_bytes.end": NUMBER,
    "compressed_bytes.start": NUMBER, "compressed_bytes.end": NUMBER, "paged_out_bytes": NUMBER,
    "live_bytes": NUMBER, "index_bytes": NUMBER,
    "used_over_ideal": NUMBER, "fault_share": NUMBER,
    "promotion_rate": NUMBER, "cold_threshold": NUMBER, "moved": NUMBER, "vetoed": NUMBER,
    "guides_per_op": NUMBER, "collector_cpu_share": NUMBER,
    "witness.page_utilization": NUMBER, "witness.used_bytes": NUMBER,
    "witness.lost_writes": NUMBER, "witness.stale_reads": NUMBER,
    "witness.corrupt_values": NUMBER, "witness.used_method": TEXT, "witness.agrees": FLAG,
}
WINDOW_SCHEMA = {
    "t_s": NUMBER, "throughput_ops": NUMBER, "page_utilization": NUMBER, "rss_bytes": NUMBER,
    "used_bytes": NUMBER, "compressed_bytes": NUMBER, "promotion_rate": NUMBER, "cold_threshold": NUMBER, "moved": NUMBER,
    "vetoed": NUMBER,
}
HEAPS = ["new", "hot", "cold", "large"]
for heap in HEAPS:
    for number in ("live_bytes", "extent_bytes", "touched_pages", "touched_bytes"):
        WINDOW_SCHEMA[f"heaps.{heap}.{number}"] = NUMBER
REGION_SCHEMA = {"name": TEXT, "begin": TEXT, "bytes": NUMBER, "bytes_per_cell": NUMBER}

CELL_SCHEMA = {"index": TEXT, "workload": TEXT, "protocol": TEXT, "phase": TEXT,
               "distribution": TEXT, "hints": TEXT, "cold": TEXT, "command": TEXT,
               "throughput_ratio": NUMBER, "p90_ratio": NUMBER, "instructions_ratio": NUMBER}

REQUIRED = ["index", "protocol", "windows"]
PROTOCOLS = ["none", "arming", "atc"]
# Kinds of run in the order in which they are shown. "kernel": without obase, but with the kernel's
# reclaim.
KINDS_OF_RUN = ["none", "kernel", "arming", "atc"]
WITH_OBASE = ("arming", "atc")
# Results that differ in any of these are not the same experiment, so no ratio of them is formed.
SAME_EXPERIMENT = ["source", "workload", "distribution", "index", "records", "packages", "threads",
                   "key_size", "value_size", "live_share", "time_scale"]


class BadInput(Exception):
    """A file that is no result; the text names the file and the key."""


def _is_number(value):
    try:
        return (isinstance(value, (int, float)) and not isinstance(value, bool)
                and math.isfinite(value))
    except OverflowError:  # an integer beyond all floats
        return False


KINDS = {
    NUMBER: _is_number,
    TEXT: lambda value: isinstance(value, str),
    FLAG: lambda value: isinstance(value, bool),
}


def _look_up(tree, path):
    """The value at a dotted path; None if it or anything above it is missing or null."""
    for key in path.split("."):
        if tree is None:
            return None
        if not isinstance(tree, dict):
            raise TypeError
        tree = tree.get(key)
    return tree


def _check(tree, schema, where):
    for path, kind in schema.items():
        try:
            value = _look_up(tree, path)
            good = value is None or KINDS[kind](value)
        except TypeError:
            path, kind, good = path.rsplit(".", 1)[0], "an object", False
        if not good:
            raise BadInput(f"{where}{path} should be {kind}")


class Result:
    """One run. Numbers by dotted path: result["used_bytes.end"], None if not measured."""

    def __init__(self, tree, path):
        self.tree = tree
        self.path = path
        self.windows = tree["windows"] or []

    def __getitem__(self, path):
        return _look_up(self.tree, path)

    @property
    def protocol(self):
        """The kind of run: one of KINDS_OF_RUN."""
        reclaims = self["reclaim"] not in (None, "off")
        return "kernel" if reclaims and self.tree["protocol"] == "none" else self.tree["protocol"]

    def settled_rates(self):
        """Operations per second of the windows in the second half of the traffic."""
        times, rates = self.series("throughput_ops")
        half = (self["duration_s"] or (times[-1] if times else 0)) / 2
        return [rate for t, rate in zip(times, rates) if t > half and rate > 0]

    def series(self, path):
        """([seconds], [value]) of the windows that measured it."""
        points = [(_look_up(w, "t_s"), _look_up(w, path)) for w in self.windows]
        points = [p for p in points if None not in p]
        return [t for t, _ in points], [v for _, v in points]

    def heat_map(self, moment):
        """The regions of "before" or "after"; [] if not measured."""
        return self[f"heat_map.{moment}"] or []

    def command(self):
        """How to repeat it: as recorded, otherwise from the parameters."""
        recorded = self.tree.get("command")
        if isinstance(recorded, list):
            return " ".join(str(word) for word in recorded)
        if recorded:
            return str(recorded)
        words = ["obase", "bench", "packages" if self["source"] else "ycsb"]
        for key, option in [("index", "index"), ("workload", "workload"), ("records", "records"),
                            ("threads", "threads"), ("duration_s", "duration"),
                            ("key_size", "key-size"), ("value_size", "value-size"),
                            ("distribution", "distribution"), ("live_share", "live-share"),
                            ("protocol", "protocol"), ("mode", "mode"), ("window_s", "window"),
                            ("time_scale", "time-scale"), ("hints", "hints"), ("cold", "cold"),
                            ("reclaim", "reclaim")]:
            of_generator = key in ("workload", "records", "key_size", "value_size", "distribution",
                                   "live_share")
            if self[key] is None or (self["source"] and of_generator):
                continue
            value = self[key]
            if key == "reclaim" and value == "off":
                continue
            if key == "live_share" and self["distribution"] != "loop":
                continue
            words += [f"--{option}", f"{value:g}" if isinstance(value, float) else str(value)]
        return " ".join(words)


def _object_in(path):
    """The JSON object in a file; BadInput if there is none."""
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"{path}: cannot be read: {error}") from None
    if not text.strip():
        raise BadInput(f"{path}: is empty")
    try:
        tree = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{path}: is not JSON: {error}") from None
    if not isinstance(tree, dict):
        raise BadInput(f"{path}: should be one JSON object")
    return tree


def load_comparison(path):
    """The cells of an `obase bench compare`; BadInput if there are none."""
    tree = _object_in(path)
    cells = tree.get("cells")
    if cells is None:
        raise BadInput(f"{path}: key 'cells' is missing")
    if not isinstance(cells, list):
        raise BadInput(f"{path}: cells should be a list")
    for number, cell in enumerate(cells):
        where = f"{path}: cells[{number}]"
        if not isinstance(cell, dict):
            raise BadInput(f"{where} should be an object")
        for key in ("index", "workload", "protocol", "phase"):
            if cell.get(key) is None:
                raise BadInput(f"{where}: key '{key}' is missing")
        _check(cell, CELL_SCHEMA, f"{where}.")
        interval = cell.get("ci95")
        if interval is not None and not (isinstance(interval, list) and len(interval) == 2
                                         and all(map(_is_number, interval))):
            raise BadInput(f"{where}.ci95 should be two numbers")
    return cells


def load(path):
    """The result in a file; BadInput if there is none."""
    tree = _object_in(path)
    for key in REQUIRED:
        if key not in tree:
            raise BadInput(f"{path}: key '{key}' is missing")
    if tree.get("workload") is None and tree.get("source") is None:
        raise BadInput(f"{path}: key 'workload' is missing")
    _check(tree, SCHEMA, f"{path}: ")
    for key in ("index", "protocol"):
        if tree[key] is None:
            raise BadInput(f"{path}: {key} should be text")
    if tree["protocol"] not in PROTOCOLS:
        raise BadInput(f"{path}: protocol '{tree['protocol']}' is none of {', '.join(PROTOCOLS)}")
    if not isinstance(tree["windows"], (list, type(None))):
        raise BadInput(f"{path}: windows should be a list")
    for number, window in enumerate(tree["windows"] or []):
        if not isinstance(window, dict):
            raise BadInput(f"{path}: windows[{number}] should be an object")
        _check(window, WINDOW_SCHEMA, f"{path}: windows[{number}].")
    _check_heat_map(tree, path)
    return Result(tree, path)


def _check_heat_map(tree, path):
    maps = tree.get("heat_map")
    if maps is None:
        return
    if not isinstance(maps, dict):
        raise BadInput(f"{path}: heat_map should be an object")
    for moment in ("before", "after"):
        regions = maps.get(moment)
        if regions is None:
            continue
        where = f"{path}: heat_map.{moment}"
        if not isinstance(regions, list):
            raise BadInput(f"{where} should be a list")
        for number, region in enumerate(regions):
            if not isinstance(region, dict):
                raise BadInput(f"{where}[{number}] should be an object")
            for key in [*REGION_SCHEMA, "cells"]:
                if region.get(key) is None:
                    raise BadInput(f"{where}[{number}]: key '{key}' is missing")
            _check(region, REGION_SCHEMA, f"{where}[{number}].")
            if region["bytes"] < 0 or region["bytes_per_cell"] <= 0:
                raise BadInput(f"{where}[{number}]: bytes and bytes_per_cell should be above 0")
            if not isinstance(region["cells"], list) or not all(
                    _is_number(cell) and 0 <= cell <= 1 for cell in region["cells"]):
                raise BadInput(f"{where}[{number}].cells should be a list of numbers 0..1")


class Section:
    """Runs of one experiment that differ in protocol only.

    Runs follow each other, so the machine may have been faster for one than for the other. Where a
    comparison in turns covers the experiment, its ratio stands beside that between the runs: both
    are shown, and neither replaces the other.
    """

    def __init__(self, results, comparison=()):
        self.skipped = [r for r in results if r["skipped"]]
        self.results = sorted((r for r in results if not r["skipped"]) or results,
                              key=lambda r: KINDS_OF_RUN.index(r.protocol))
        self._in_turns = {} if self.is_packages else {
            (cell["protocol"], cell["phase"]): cell for cell in comparison
            if self._same_configuration(cell)}

    def _same_configuration(self, cell):
        """True if a cell of a comparison in turns is of this experiment's run with obase: same
        requests, same hints to the kernel, COLD in the same place."""
        run = self.of(cell["protocol"])
        return run is not None and all(
            cell.get(key) == run[key] for key in ("index", "workload", "distribution", "hints", "cold"))

    @property
    def first(self):
        return self.results[0]

    @property
    def is_packages(self):
        return self.first["source"] is not None

    @property
    def title(self):
        if self.is_packages:
            return "Debian's package index"
        words = [f"YCSB-{self.first['workload']}"]
        if self.first["distribution"]:
            words.append(self.first["distribution"])
        return " ".join(words)

    def of(self, protocol):
        for result in self.results:
            if result.protocol == protocol:
                return result
        return None

    def in_turns(self, protocol, phase="converged"):
        """The cell of the comparison in turns; None if there is none."""
        return self._in_turns.get((protocol, phase))

    def cells(self):
        """All cells of the comparison in turns that are of this experiment."""
        return list(self._in_turns.values())

    def between_runs(self, result):
        """(ratio, low, high): throughput of a run over that of the run without obase: geometric
        means over the windows of the second halves, and Welch's 95 % interval of their logarithms.
        None if not measured; low and high are None for fewer than three windows."""
        if self.plain is None or result is self.plain:
            return None
        ours, theirs = result.settled_rates(), self.plain.settled_rates()
        if min(len(ours), len(theirs)) < 3:
            value = ratio(result["throughput_ops"], self.plain["throughput_ops"])
            return None if value is None else (value, None, None)
        return welch_ratio(ours, theirs)

    def speed(self, result):
        """(ratio, low, high, "in turns" or "between the runs") of the throughput of a run to that
        without obase; None if not measured. In turns where both were measured in one process at
        the same time."""
        cell = self.in_turns(result.protocol)
        if cell and cell.get("throughput_ratio") is not None:
            return (cell["throughput_ratio"], *(cell.get("ci95") or (None, None)), "in turns")
        between = self.between_runs(result)
        return None if between is None else (*between, "between the runs")

    @property
    def plain(self):
        """What the others are compared with; None if it was not run."""
        return self.of("none")

    @property
    def moving(self):
        """The run with obase that the words are about: arming, otherwise atc."""
        return self.of("arming") or self.of("atc")


def sections(results, comparison=()):
    """Results by experiment, in the order given. A second run of the same kind opens a section."""
    groups = []
    for result in results:
        key = tuple(result[name] for name in SAME_EXPERIMENT)
        for known, members in groups:
            if known == key and all(m.protocol != result.protocol for m in members):
                members.append(result)
                break
        else:
            groups.append((key, [result]))
    return [Section(members, comparison) for _, members in groups]


def ratio(above, below):
    """above / below; None if either was not measured or below is 0."""
    if above is None or not below:
        return None
    return above / below


def first_measured(section, path):
    """The number of the first run that has it: for what is the same in all of them."""
    return next((r[path] for r in section.results if r[path] is not None), None)


def used_before(section):
    """(bytes, where they come from): memory used without obase, otherwise when the run began."""
    if section.plain and section.plain["used_bytes.end"] is not None:
        return section.plain["used_bytes.end"], "none"
    if section.moving and section.moving["used_bytes.start"] is not None:
        return section.moving["used_bytes.start"], "start"
    return None, None


def saved(section):
    """Share of the used memory that is no longer used at the end; None if not measured."""
    if not section.moving:
        return None
    left = ratio(section.moving["used_bytes.end"], used_before(section)[0])
    return None if left is None else 1 - left


def speed(section):
    """Throughput with obase over throughput without; None if not measured."""
    known = section.speed(section.moving) if section.moving else None
    return None if known is None else known[0]


# Two-sided 95 % quantiles of Student's t for 1..30 degrees of freedom.
STUDENT_T95 = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179,
               2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064,
               2.060, 2.056, 2.052, 2.048, 2.045, 2.042]


def welch_ratio(above, below):
    """(ratio of the geometric means, low, high) of two independent samples of positive numbers."""
    means, errors, degrees = [], [], []
    for sample in (above, below):
        logs = [math.log(value) for value in sample]
        mean = sum(logs) / len(logs)
        variance = sum((value - mean) ** 2 for value in logs) / (len(logs) - 1)
        means.append(mean)
        errors.append(variance / len(logs))
        degrees.append(len(logs) - 1)
    total = sum(errors)
    difference = means[0] - means[1]
    if total == 0:
        return (math.exp(difference),) * 3
    freedom = int(total ** 2 / sum(e ** 2 / d for e, d in zip(errors, degrees)))
    reach = STUDENT_T95[min(max(freedom, 1), len(STUDENT_T95)) - 1] * math.sqrt(total)
    return tuple(math.exp(difference + sign * reach) for sign in (0, -1, 1))
