# SPDX-License-Identifier: MIT
"""The pages of docs/results/: what is run for each, and the tables made of it.

A command's words may have {build} and {json}: the folder of the build, and the file that it writes its JSON to.
"""

import dataclasses

from . import tables


@dataclasses.dataclass(frozen=True)
class Step:
    """Commands whose results go into the same tables."""
    commands: tuple
    tables: tuple
    targets: tuple = ()      # what is built for them
    runs: int = 1            # of each command
    quick: tuple | None = ("--quick",)  # added for the smoke size; None: there is none
    environment: tuple = ()  # (name, value)


@dataclasses.dataclass(frozen=True)
class Page:
    about: str               # what is measured, and which document has the meaning of the rows
    steps: tuple = ()
    program: str = "obase"   # of build/bin, whose version is told
    marked: bool = False     # clang 19 and the plugins are part of what is measured
    # Instead of steps: commands that write the page themselves.
    script: tuple = ()


def bench(*words, read=tables.figures()):
    return Step(commands=(("{build}/bin/obase", "bench", *words, "--json", "{json}"),), tables=read,
                targets=("obase_command",))


def memory(*rows):
    return Step(commands=tuple(("{build}/bin/obase", "bench", "memory", "--row", row, "--json", "{json}") for row in rows),
                tables=(tables.Table("Targets", tables.with_targets, tables.FIGURE),
                        tables.Table("Cells", tables.memory_cells, tables.MEMORY,
                                     "Memory is what the process is charged for; the ideal is the hottest objects with which "
                                     "the same share of operations faults, and the index.")),
                targets=("obase_command",))


def layouts(title, *words):
    return Step(commands=(("{build}/bin/obase", "mrc", "--records", "300000", "--lru-requests", "0", *words, "--json",
                           "{json}"),),
                tables=(tables.Table(title, tables.layouts, tables.LAYOUTS, "Inflation, by share of the accesses."),),
                targets=("obase_command",))


COMPARED = (tables.Table("Targets", tables.with_targets, tables.FIGURE),
            tables.Table("Beside the targets", tables.means_beside_targets, tables.FIGURE),
            tables.Table("Cells", tables.compared, tables.COMPARED,
                         "Ratios are to plain pointers over jemalloc in the same process: more is better for throughput "
                         "(converged, moving), less for p90 and instructions."))

# Some indexes have measurements while the first load moves; for all it would take hours.
WHILE_MOVING = ("pugh-hash-table", "fraser-skip-list", "occ-btree")
CONVERGED_ONLY = ("harris-hash-table", "segmented-hash-table", "coarse-skip-list", "herlihy-skip-list", "coarse-btree", "masstree", "adaptive-radix-tree")

# The programs of compiler/crestdb, by the class of the index.
MARKED_INDEXES = ("pugh_hash_table", "fraser_skip_list", "harris_hash_table", "segmented_hash_table",
                  "herlihy_skip_list", "adaptive_radix_tree", "coarse_skip_list", "coarse_btree", "occ_btree",
                  "masstree")


def marked_indexes(sizes, runs, table):
    programs = [f"compiler_crestdb_{index}.ratio" for index in MARKED_INDEXES]
    return Step(commands=tuple(("{build}/test/" + program, *sizes, "--json", "{json}") for program in programs),
                tables=(table,), targets=tuple(programs), runs=runs, quick=("--smoke",),
                environment=(("OBASE_WINDOW_SECONDS", "1000000"),))


def debian_program(name):
    return Step(commands=(("compiler/programs/" + name + "/run.py", "--clang", "clang-19", "--bin", "{build}/bin",
                           "--source", ".", "--out", "{build}/compiler/programs/" + name, "--measure", "--json",
                           "{json}"),),
                tables=(tables.Table(name, tables.program_runs, tables.PROGRAM),),
                targets=("obase", "obase_shared", "obase_visibility", "obase_passes"), quick=None)


def sorts(title, *words, quick=("--records", "20000", "--repeats", "1")):
    return Step(commands=(("{build}/bin/wiscsort", "bench", *words, "--dir", "{build}", "--json", "{json}"),),
                tables=(tables.Table(title, tables.sort_claims, tables.SORT_CLAIMS),
                        tables.Table(f"{title}: the planner's choices", tables.sort_regrets, tables.SORT_REGRETS,
                                     "Time of the plan that was chosen over that of the best one; the ten worst."),
                        tables.Table(f"{title}: cells", tables.sort_cells, tables.SORT_CELLS),
                        tables.Table(f"{title}: not run", tables.skipped, tables.SKIPPED)),
                targets=("wiscsort_command",), quick=quick)


def sorts_here(title, *words):
    return sorts(title, "--real", *words)


PAGES = {
    "guide": Page("Dereference, scope, first touch and TAG ([benchmarks.md](../benchmarks.md)).", (bench("guide"),)),
    "alloc": Page("Allocation beside jemalloc and mimalloc, and memory overhead ([benchmarks.md](../benchmarks.md)).",
                  (bench("alloc", read=tables.figures(tables.FIGURE_ALONE)),)),
    "move": Page("Moving objects and scanning slots ([benchmarks.md](../benchmarks.md)).",
                 (bench("move", read=tables.figures(tables.FIGURE_ALONE)),)),
    "collector": Page("Windows over 20 million guides, nothing left to move ([benchmarks.md](../benchmarks.md)).",
                      (bench("collector"),)),
    "latency": Page("The longest operations ([benchmarks.md](../benchmarks.md)).", (bench("latency"),)),
    "mrc": Page("Layouts: the bytes of the pages over those of the objects that serve the same share of the accesses "
                "([temperature.md](../temperature.md)).",
                (layouts("Keys as large as values, nodes that do not move", "--index", "pugh-hash-table", "--key-size",
                         "128"),
                 layouts("Keys of 24 bytes, values of 128, nodes that move"))),
    "memory": Page("Paced loads without a limit: memory over the least with the same share of faults "
                   "([temperature.md](../temperature.md)).",
                   (memory("hot-20-999", "hot-20-99", "loop-C", "loop-B", "loop-A", "large"),)),
    "memory-swap": Page("Loads without an edge, over zram ([temperature.md](../temperature.md)).",
                        (memory("zipf", "hotspot-80-20"),)),
    "memory-peak": Page("The most memory that a load takes ([temperature.md](../temperature.md)).", (memory("peak"),)),
    "memory-limits": Page("Under a limit on memory ([temperature.md](../temperature.md)).",
                          (memory("pass-90", "pass-50", "limit-35", "limit-35-small", "limit-40-loop"),)),
    "memory-day": Page("A hot set that shifts ([temperature.md](../temperature.md)).", (memory("day"),)),
    "huge-pages": Page("HOT in huge pages against none and against all heaps ([benchmarks.md](../benchmarks.md)).",
                       (bench("huge-pages"),)),
    "ycsb": Page("The key-value store under `loop`, of whose records 31 % are asked for: utilization and memory "
                 "([workloads.md](../workloads.md)).",
                 (bench("ycsb", read=(tables.Table("Targets", tables.with_targets, tables.FIGURE),
                                      tables.Table("Runs", tables.ycsb_runs, tables.YCSB))),)),
    "compare": Page("What guides cost in the key-value store, also while the first load moves "
                    "([workloads.md](../workloads.md)).",
                    (bench("compare", "--index", ",".join(WHILE_MOVING), read=COMPARED),)),
    "compare-others": Page("What guides cost under the other indexes of OBASE Table 2, converged "
                           "([workloads.md](../workloads.md)).",
                           (bench("compare", "--no-moving", "--index", ",".join(CONVERGED_ONLY), read=COMPARED),)),
    "indexes": Page("CrestDB's indexes as sets ([indexes.md](../indexes.md)).",
                    (bench("index", read=(
                        tables.Table("Published implementations", tables.published, tables.PUBLISHED,
                                     "ASCYLIB; an adaptive radix tree; a B-link tree with optimistic concurrency "
                                     "control: run on an AMD Zen 4 with two cores, a million integer keys, two threads."),
                        tables.Table("Threads", tables.scaling, tables.FIGURE,
                                     "Over all cells; where a number of threads over another is below 1, the overhead "
                                     "grows."),
                        tables.Table("Cells", tables.sets, tables.SETS))),)),
    "compiler": Page("Marked pointers beside guides by hand, and what the plugins add to compile time and code "
                     "([compiler.md](../compiler.md)).",
                     (marked_indexes(("--rounds", "60", "--keys", "2000", "--operations", "10000"), 6,
                                     tables.Table("2,000 keys", tables.marked, tables.MARKED,
                                                  "Throughput; the median of the medians of the runs.")),
                      Step(commands=(("compiler/crestdb/costs.py", "--build", "{build}", "--runs", "2", "--json", "{json}"),),
                           tables=(tables.Table("Compile time and code", tables.costs, tables.COSTS,
                                                "User seconds of clang, the lesser of two runs, and bytes of machine "
                                                "code; in parentheses over plain pointers."),),
                           targets=("obase_visibility", "obase_passes"), quick=("--runs", "1", "harris_hash_table"))),
                     marked=True),
    "compiler-large": Page("Marked pointers beside guides by hand with more keys than the cores' caches hold "
                           "([compiler.md](../compiler.md)).",
                           (marked_indexes(("--rounds", "12"), 1,
                                           tables.Table("200,000 keys", tables.marked_once, tables.MARKED_ONCE,
                                                        "Throughput; one run.")),), marked=True),
    "programs": Page("Two programs of Debian 12 with marked pointers ([compiler.md](../compiler.md)): a dictionary and a "
                     "broker of which one entry in ten gets nearly all requests.",
                     (debian_program("libdatrie"), debian_program("mosquitto")), marked=True),
    "wiscsort": Page("External sorting, on emulated devices and here ([wiscsort.md](../wiscsort.md)). Peers are what "
                     "is there: GNU sort, STXXL (`ninja wiscsort_stxxl`), and DuckDB and Polars of the interpreter that "
                     "WISCSORT_PYTHON names.",
                     (sorts("Emulated devices", "--emulated", quick=("--emulated-bytes", "2000000", "--shape", "pmem 10:90")),
                      sorts_here("10 million records in the page cache", "--records", "10000000", "--state", "cached"),
                      sorts_here("2 million records, not cached", "--records", "2000000", "--state", "uncached"),
                      sorts_here("2 million records in a control group of 110 MiB", "--records", "2000000", "--repeats",
                                 "3", "--state", "cgroup"),
                      *(sorts_here(f"Values of {value} bytes", "--records", records, "--value-bytes", value.replace(",", ""),
                                   "--repeats", "3", "--state", "cached", "--state", "uncached")
                        for value, records in (("10", "10000000"), ("40", "10000000"), ("990", "1000000"),
                                               ("4,086", "250000"))),
                      sorts_here("Many equal keys", "--records", "5000000", "--skewed", "--repeats", "3", "--state",
                                 "cached")), program="wiscsort"),
    "store": Page("The key-value store with obase, without, and under the kernel's own reclaim.",
                  script=(("make", "demo"),
                          ("bash", "-c", "demo/report.py --markdown docs/results/store.md --compare out/compare-loop.json "
                                         "--compare out/compare-zipfian.json out/ycsb-loop-*.json "
                                         "out/ycsb-zipfian-*.json out/packages-*.json"))),
}
