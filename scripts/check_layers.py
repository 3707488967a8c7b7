#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks what the folders promise.

  1. A lower layer never includes a higher one; the tables below say what is where.
  2. Installed headers include only installed headers; crestdb, a user of the library, too.
  3. workload, which says what is asked and not who answers, includes only itself.
  4. The compiler includes public headers of the library, nothing of src/; its own folders are layers.
  5. testing/ is included by tests only.
  6. Memory orders and raw atomic builtins are written in one file.
  7. System calls are made in src/os only.
  8. No file includes itself by way of others.
  9. wiscsort, a product of its own, includes nothing but itself; its folders are layers, and its
     system calls are made in wiscsort/device only.

Prints one line per violation and exits with 1 if there is any. Comments and string literals do not
count, so prose may name what code may not. scripts/check_layers_test.py shows each check failing.

usage: scripts/check_layers.py [--root DIRECTORY]
"""

import argparse
import pathlib
import re
import sys

# Lowest first. Layers in one row are siblings and do not include each other.
ORDER = [
    ["word"],
    ["os"],
    ["options"],
    ["heap"],
    ["soda"],
    ["mobility"],
    ["audit"],
    ["policy"],
    ["backend", "telemetry"],
    ["collector", "handles"],
    ["runtime"],
    ["user"],
]

# Where a path belongs: the longest matching prefix decides. include/obase/<layer>/ and src/<layer>/
# need no row. Other headers of include/obase are the library's face, hence the runtime's.
PLACES = {
    "include/obase/": "runtime",
    "include/obase/export.hpp": "word",
    "include/obase/language.hpp": "word",
    "include/obase/handles.h": "handles",
    # Containers are made of CrestDB's indexes, so they are users of the library; installed with it.
    "include/obase/hash_map.hpp": "user",
    "include/obase/lru_cache.hpp": "user",
    "include/obase/version.h": "word",
    "include/obase/version.hpp": "word",
    # Plain data that every layer may read, so they include nothing of ours but the word layer.
    "include/obase/options.hpp": "options",
    "include/obase/statistics.hpp": "word",
    "src/version.cpp": "word",
    "src/version_test.cpp": "word",
    "crestdb/": "user",
    "tools/workload/": "user",
    "tools/": "user",
    "examples/": "user",
    "testing/": "user",
}
LAYERS = [layer for row in ORDER for layer in row]
RANK = {layer: rank for rank, row in enumerate(ORDER) for layer in row}
for layer in LAYERS[:-1]:
    PLACES[f"include/obase/{layer}/"] = layer
    PLACES[f"src/{layer}/"] = layer

# The compiler's layers, lowest first; its files outside of these folders (report_path.hpp) are below
# all of them. The passes run in a process that need not have the frontend's plugin, so they are
# siblings. What is compiled to test it is no part of it: compiler/test, compiler/passes/samples, ...
COMPILER_ORDER = [["common"], ["frontend", "passes"], ["rewrite"], ["driver"]]
COMPILER_LAYERS = [layer for row in COMPILER_ORDER for layer in row]
COMPILER_RANK = {layer: rank for rank, row in enumerate(COMPILER_ORDER) for layer in row}
COMPILER_SOURCE = re.compile(
    r"^compiler/((?P<layer>" + "|".join(COMPILER_LAYERS[1:]) + r")/)?[^/]+$")

# wiscsort's layers, lowest first: its folders, and what its own headers and sources belong to. The face
# (wiscsort.hpp) names what a user sees of the layers up to device.
WISCSORT_ORDER = ["common", "format", "model", "device", "order", "schedule", "face", "strategy",
                  "bench", "program"]
WISCSORT_RANK = {layer: rank for rank, layer in enumerate(WISCSORT_ORDER)}
WISCSORT_FILES = {"error.hpp": "common", "units.hpp": "common", "units.cpp": "common",
                  "wiscsort.hpp": "face", "report_json.hpp": "face", "report_json.cpp": "face",
                  "test_files_test.hpp": "strategy", "main.cpp": "program"}

FOLDERS = ["include", "src", "crestdb", "tools", "examples", "compiler", "wiscsort"]
SUFFIXES = {".hpp", ".cpp", ".h", ".c", ".inc"}
TEST_FILE = re.compile(r"_(test|fuzz|bench)\.(cpp|hpp|c)$")

ORDERS_FILE = "include/obase/word/atomic.hpp"
RAW_ATOMICS = re.compile(r"\b(memory_order\w*|atomic_thread_fence|__atomic_\w+|__sync_\w+)\b")

SYSTEM_CALLS = (
    "mmap munmap mremap mprotect madvise process_madvise mincore mlock munlock msync membarrier "
    "syscall fallocate posix_fallocate ftruncate memfd_create pread pwrite prctl sysinfo "
    "getrlimit setrlimit sched_setaffinity mbind set_mempolicy move_pages"
).split()
# The qualifier tells a call of ours (os::madvise, Platform::membarrier, file.ftruncate) from the
# kernel's (madvise, ::madvise); a word before an unqualified name is a return type, so a
# declaration, unless it is a keyword.
CALL = re.compile(
    r"(?P<before>[A-Za-z_]\w*[\s*&]+)?(?P<qualifier>[\w>]\s*::\s*|::\s*|\.\s*|->\s*)?"
    r"\b(?P<name>" + "|".join(SYSTEM_CALLS) + r")\s*\("
)
KEYWORDS = {"return", "else", "do", "throw", "case", "co_return", "co_yield", "co_await", "not",
            "and", "or"}
SYSTEM_HEADERS = re.compile(r"^(sys/(mman|syscall|resource|prctl|sysinfo)\.h|linux/.*)$")

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
# Longest first: a raw string may hold quotes, a string may hold //, a comment may hold anything.
SKIPPED = re.compile(
    r'R"(?P<mark>[^()\s\\"]{0,16})\(.*?\)(?P=mark)"'
    r'|"(?:\\.|[^"\\\n])*"'
    r"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'"
    r"|//[^\n]*|/\*.*?\*/",
    re.DOTALL,
)


def code_only(text):
    """The text with comments and literals blanked; lines keep their numbers."""
    return SKIPPED.sub(lambda found: re.sub(r"[^\n]", " ", found.group()), text)


def layer_of(path):
    matches = [prefix for prefix in PLACES if path.startswith(prefix)]
    return PLACES[max(matches, key=len)] if matches else None


def compiler_layer_of(path):
    """The layer of a source of the compiler; None for other files, also those compiled to test it."""
    found = COMPILER_SOURCE.match(path)
    return (found["layer"] or "common") if found else None


def wiscsort_layer_of(path):
    """The layer of a file of wiscsort; None for other files, and for one that no table knows."""
    if not path.startswith("wiscsort/"):
        return None
    first, _, rest = path.removeprefix("wiscsort/").partition("/")
    if not rest:
        return WISCSORT_FILES.get(first)
    return first if first in WISCSORT_RANK else None


def resolved(root, including, name, style):
    """The repository path that an #include means, or None if it is not ours."""
    if style == "<":
        bases = ["include", ""] if name.startswith("crestdb/") else ["include"]
    else:
        bases = [str(pathlib.PurePosixPath(including).parent), "src", "", "include"]
    for base in bases:
        path = pathlib.PurePosixPath(base, name)
        if (root / path).is_file():
            return str(path)
    # Not written yet, or misspelt: the first folder still says which layer is meant.
    if name.startswith("obase/"):
        return f"include/{name}"
    if style == '"' and name.split("/")[0] in LAYERS:
        return f"src/{name}"
    return None


def check_compiler_include(where, layer, target):
    if target.startswith("include/"):
        return
    wanted = compiler_layer_of(target)
    if wanted is None:
        yield f"{where}: the compiler includes {target}, which is neither its own nor public"
    elif COMPILER_RANK[wanted] > COMPILER_RANK[layer]:
        yield f"{where}: the compiler's {layer} includes {target} of the higher {wanted}"
    elif COMPILER_RANK[wanted] == COMPILER_RANK[layer] and wanted != layer:
        yield f"{where}: the compiler's {layer} includes {target} of its sibling {wanted}"


def check_wiscsort_include(where, layer, target):
    wanted = wiscsort_layer_of(target)
    if wanted is None:
        yield f"{where}: wiscsort includes {target}, which is not its own"
    elif WISCSORT_RANK[wanted] > WISCSORT_RANK[layer]:
        yield f"{where}: wiscsort's {layer} includes {target} of the higher {wanted}"


def check_includes(root, path, text):
    compiler_layer = compiler_layer_of(path)
    wiscsort_layer = wiscsort_layer_of(path)
    layer = layer_of(path)
    is_test = bool(TEST_FILE.search(path))
    for number, line in enumerate(text.splitlines(), 1):
        found = INCLUDE.match(line)
        if not found:
            continue
        style, name = found.groups()
        where = f"{path}:{number}"
        if ".." in name.split("/"):
            yield f"{where}: {name} leaves its folder; name it from the root"
            continue
        if wiscsort_layer is not None:
            if wiscsort_layer != "device" and not is_test and SYSTEM_HEADERS.match(name):
                yield f"{where}: <{name}> belongs to wiscsort/device"
        elif compiler_layer is None and layer not in ("os", "user") and not is_test and SYSTEM_HEADERS.match(name):
            yield f"{where}: <{name}> belongs to src/os"
        target = resolved(root, path, name, style)
        if target is None:
            continue
        if compiler_layer is not None:
            yield from check_compiler_include(where, compiler_layer, target)
            continue
        if wiscsort_layer is not None:
            yield from check_wiscsort_include(where, wiscsort_layer, target)
            continue
        if target.startswith("testing/"):
            if not is_test:
                yield f"{where}: only tests include {target}"
            continue
        if not target.startswith("include/") and path.startswith(("include/", "crestdb/")):
            if not (target.startswith("crestdb/") and layer == "user"):
                yield f"{where}: {target} is not installed"
        if path.startswith("tools/workload/") and not target.startswith("tools/workload/"):
            yield f"{where}: workload includes {target}, which is not its own"
            continue
        wanted = layer_of(target)
        if wanted is None:
            yield f"{where}: {target} is in no layer (see PLACES in scripts/check_layers.py)"
        elif RANK[wanted] > RANK[layer]:
            yield f"{where}: layer {layer} includes {target} of the higher layer {wanted}"
        elif RANK[wanted] == RANK[layer] and wanted != layer:
            yield f"{where}: layer {layer} includes {target} of its sibling {wanted}"


def check_cycles(root, files):
    """`files`: {path: text}. One line for each file that closes a cycle, at its #include."""
    edges = {path: [] for path in files}
    for path, text in files.items():
        for number, line in enumerate(text.splitlines(), 1):
            if found := INCLUDE.match(line):
                target = resolved(root, path, found[2], found[1])
                if target in edges:
                    edges[path].append((number, target))
    done, under_way = set(), []

    def visit(path):
        under_way.append(path)
        for number, target in edges[path]:
            if target in under_way:
                way = under_way[under_way.index(target):] + [target]
                yield f"{path}:{number}: includes itself: {' > '.join(way)}"
            elif target not in done:
                yield from visit(target)
        under_way.pop()
        done.add(path)

    for path in sorted(edges):
        if path not in done:
            yield from visit(path)


def check_words(path, code):
    is_test = bool(TEST_FILE.search(path))
    for number, line in enumerate(code.splitlines(), 1):
        where = f"{path}:{number}"
        if path != ORDERS_FILE:
            for found in RAW_ATOMICS.finditer(line):
                yield f"{where}: {found.group()} is written in {ORDERS_FILE} only"
        if not path.startswith(("include/", "src/", "wiscsort/")) or is_test or \
                path.startswith(("src/os/", "wiscsort/device/")):
            continue
        for found in CALL.finditer(line):
            before = (found["before"] or "").strip(" \t*&")
            qualifier = (found["qualifier"] or "").replace(" ", "")
            if qualifier not in ("", "::"):
                continue
            if not qualifier and before and before not in KEYWORDS:
                continue
            door = "wiscsort/device" if path.startswith("wiscsort/") else "src/os"
            yield f"{where}: system call {found['name']} outside {door}"


def check(root):
    files = {}
    for folder in FOLDERS:
        for file in sorted((root / folder).rglob("*")):
            if file.suffix not in SUFFIXES or not file.is_file():
                continue
            path = file.relative_to(root).as_posix()
            if path.startswith("compiler/"):
                if compiler_layer_of(path) is None:
                    continue
            elif layer_of(path) is None and wiscsort_layer_of(path) is None:
                yield f"{path}: is in no layer (see PLACES in scripts/check_layers.py)"
                continue
            text = file.read_text(encoding="utf-8")
            files[path] = text
            yield from check_includes(root, path, text)
            yield from check_words(path, code_only(text))
    yield from check_cycles(root, files)


def main():
    parser = argparse.ArgumentParser(description="Checks the include order of the layers.")
    parser.add_argument("--root", type=pathlib.Path,
                        default=pathlib.Path(__file__).resolve().parent.parent)
    root = parser.parse_args().root
    violations = list(check(root))
    for violation in violations:
        print(violation)
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
