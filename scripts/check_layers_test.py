#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""scripts/check_layers.py on small trees: each broken rule is reported, and what is allowed is not."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parent / "check_layers.py"


def run(files):
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for path, text in files.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text, encoding="utf-8")
        result = subprocess.run([sys.executable, SCRIPT, "--root", root],
                                capture_output=True, text=True, check=False)
        return result.returncode, result.stdout.splitlines(), result.stderr


class CheckLayers(unittest.TestCase):
    def reports(self, files, *expected):
        code, lines, errors = run(files)
        self.assertEqual(errors, "")
        self.assertEqual(lines, list(expected))
        self.assertEqual(code, 1 if expected else 0)

    def test_a_lower_layer_includes_a_higher_one(self):
        self.reports(
            {"src/heap/slab.cpp": '#include "heap/slab.hpp"\n#include "collector/loop.hpp"\n',
             "src/heap/slab.hpp": "", "src/collector/loop.hpp": ""},
            "src/heap/slab.cpp:2: layer heap includes src/collector/loop.hpp of the higher layer "
            "collector")

    def test_the_audit_is_below_the_runtime_and_above_the_movers(self):
        self.reports(
            {"src/audit/audit.cpp": '#include "mobility/mover.hpp"\n#include "runtime/engine.hpp"\n',
             "src/mobility/mover.hpp": "", "src/runtime/engine.hpp": ""},
            "src/audit/audit.cpp:2: layer audit includes src/runtime/engine.hpp of the higher layer "
            "runtime")

    def test_a_higher_layer_includes_lower_ones(self):
        self.reports({"src/collector/loop.cpp": '#include "heap/slab.hpp"\n#include <vector>\n'
                                                "#include <obase/word/atomic.hpp>\n",
                      "src/heap/slab.hpp": "", "include/obase/word/atomic.hpp": ""})

    def test_siblings(self):
        self.reports(
            {"src/backend/hints.cpp": '#include "telemetry/counters.hpp"\n'},
            "src/backend/hints.cpp:1: layer backend includes src/telemetry/counters.hpp of its "
            "sibling telemetry")

    def test_workload_knows_nobody(self):
        self.reports(
            {"tools/workload/trace.cpp": '#include "tools/workload/trace.hpp"\n#include <obase/guide.hpp>\n'
                                   '#include "crestdb/table.hpp"\n',
             "tools/workload/trace.hpp": "", "include/obase/guide.hpp": "", "crestdb/table.hpp": ""},
            "tools/workload/trace.cpp:2: workload includes include/obase/guide.hpp, which is not its own",
            "tools/workload/trace.cpp:3: workload includes crestdb/table.hpp, which is not its own")

    def test_the_compiler_includes_no_source_of_the_library(self):
        self.reports(
            {"compiler/frontend/plugin.cpp": "#include <obase/marked.h>\n#include <vector>\n"
                                             '#include "heap/slab.hpp"\n'
                                             '#include "crestdb/table.hpp"\n',
             "include/obase/marked.h": "", "src/heap/slab.hpp": "", "crestdb/table.hpp": ""},
            "compiler/frontend/plugin.cpp:3: the compiler includes src/heap/slab.hpp, which is "
            "neither its own nor public",
            "compiler/frontend/plugin.cpp:4: the compiler includes crestdb/table.hpp, which is "
            "neither its own nor public")

    def test_the_compilers_layers(self):
        headers = {"compiler/report_path.hpp": "", "compiler/frontend/checks.hpp": "",
                   "compiler/passes/marks.hpp": "", "compiler/rewrite/edits.hpp": ""}
        self.reports(
            headers | {
                "compiler/frontend/plugin.cpp": '#include "checks.hpp"\n'
                                                '#include "compiler/report_path.hpp"\n'
                                                '#include "compiler/rewrite/edits.hpp"\n',
                "compiler/passes/plugin.cpp": '#include "compiler/frontend/checks.hpp"\n',
                "compiler/rewrite/main.cpp": '#include "compiler/frontend/checks.hpp"\n'},
            "compiler/frontend/plugin.cpp:3: the compiler's frontend includes "
            "compiler/rewrite/edits.hpp of the higher rewrite",
            "compiler/passes/plugin.cpp:1: the compiler's passes includes "
            "compiler/frontend/checks.hpp of its sibling frontend")

    def test_programs_that_test_the_compiler_are_free(self):
        self.reports({"compiler/test/accepted/list.c": '#include "heap/slab.hpp"\n',
                      "src/heap/slab.hpp": ""})

    def test_wiscsorts_layers(self):
        self.reports(
            {"wiscsort/error.hpp": "", "wiscsort/format/entry.hpp": '#include "wiscsort/error.hpp"\n',
             "wiscsort/order/sort.cpp": '#include "wiscsort/format/entry.hpp"\n'
                                        '#include "wiscsort/strategy/job.hpp"\n',
             "wiscsort/strategy/job.hpp": '#include "wiscsort/wiscsort.hpp"\n',
             "wiscsort/wiscsort.hpp": ""},
            "wiscsort/order/sort.cpp:2: wiscsort's order includes wiscsort/strategy/job.hpp of the "
            "higher strategy")

    def test_wiscsort_uses_nothing_of_the_library(self):
        self.reports(
            {"wiscsort/order/sort.cpp": '#include "heap/slab.hpp"\n#include <obase/guide.hpp>\n',
             "src/heap/slab.hpp": "", "include/obase/guide.hpp": ""},
            "wiscsort/order/sort.cpp:1: wiscsort includes src/heap/slab.hpp, which is not its own",
            "wiscsort/order/sort.cpp:2: wiscsort includes include/obase/guide.hpp, which is not its "
            "own")

    def test_wiscsorts_door_to_the_system(self):
        self.reports(
            {"wiscsort/device/calls.cpp": "#include <sys/mman.h>\nvoid* p = ::mmap(a, n);\n",
             "wiscsort/strategy/runs.cpp": "#include <sys/mman.h>\nvoid* p = ::mmap(a, n);\n",
             "wiscsort/stray/runs.cpp": ""},
            "wiscsort/strategy/runs.cpp:1: <sys/mman.h> belongs to wiscsort/device",
            "wiscsort/strategy/runs.cpp:2: system call mmap outside wiscsort/device",
            "wiscsort/stray/runs.cpp: is in no layer (see PLACES in scripts/check_layers.py)")

    def test_a_path_upwards_would_hide_the_layer(self):
        self.reports(
            {"src/os/memory.cpp": '#include "../heap/slab.hpp"\n', "src/heap/slab.hpp": ""},
            "src/os/memory.cpp:1: ../heap/slab.hpp leaves its folder; name it from the root")

    def test_the_public_face_is_above_the_layers(self):
        self.reports(
            {"src/soda/bitmap.cpp": "#include <obase/runtime.hpp>\n"},
            "src/soda/bitmap.cpp:1: layer soda includes include/obase/runtime.hpp of the higher "
            "layer runtime")

    def test_an_installed_header_includes_an_internal_one(self):
        self.reports(
            {"include/obase/guide.hpp": '#include "heap/slab.hpp"\n', "src/heap/slab.hpp": ""},
            "include/obase/guide.hpp:1: src/heap/slab.hpp is not installed")

    def test_a_user_includes_an_internal_header(self):
        self.reports(
            {"crestdb/hash.cpp": '#include "crestdb/hash.hpp"\n#include "heap/slab.hpp"\n',
             "crestdb/hash.hpp": "", "src/heap/slab.hpp": ""},
            "crestdb/hash.cpp:2: src/heap/slab.hpp is not installed")

    def test_a_header_includes_itself(self):
        self.reports(
            {"src/heap/a.hpp": '#include "heap/b.hpp"\n', "src/heap/b.hpp": '\n#include "heap/a.hpp"\n',
             "src/heap/c.hpp": '#include "heap/a.hpp"\n#include "heap/b.hpp"\n'},
            "src/heap/b.hpp:2: includes itself: src/heap/a.hpp > src/heap/b.hpp > src/heap/a.hpp")

    def test_production_code_includes_test_support(self):
        files = {"testing/deterministic.hpp": ""}
        for name in ("soda.cpp", "soda_test.cpp", "soda_fuzz.cpp"):
            files["src/soda/" + name] = '#include "testing/deterministic.hpp"\n'
        self.reports(
            files, "src/soda/soda.cpp:1: only tests include testing/deterministic.hpp")

    def test_memory_orders(self):
        use = "auto v = word.load(std::memory_order_relaxed);\n"
        self.reports(
            {"include/obase/word/atomic.hpp": use, "src/heap/slab.cpp": "\n" + use,
             "crestdb/hash.cpp": "int v = __atomic_load_n(&w, 0);\n"},
            "src/heap/slab.cpp:2: memory_order_relaxed is written in "
            "include/obase/word/atomic.hpp only",
            "crestdb/hash.cpp:1: __atomic_load_n is written in include/obase/word/atomic.hpp only")

    def test_system_calls(self):
        self.reports(
            {"src/heap/slab.cpp": "if (::madvise(p, n, 4)) return;\n"
                                  "return munmap(p, n);\n"
                                  "os::madvise(p, n);\n"
                                  "P::membarrier();\n"
                                  "static bool membarrier() noexcept;\n"
                                  "file.ftruncate(n);\n"
                                  "#include <sys/mman.h>\n",
             "src/heap/slab_test.cpp": "munmap(p, n);\n",
             "src/os/memory.cpp": "#include <sys/mman.h>\nvoid* p = ::mmap(a, n);\n"},
            "src/heap/slab.cpp:7: <sys/mman.h> belongs to src/os",
            "src/heap/slab.cpp:1: system call madvise outside src/os",
            "src/heap/slab.cpp:2: system call munmap outside src/os")

    def test_prose_does_not_count(self):
        self.reports({"src/heap/slab.cpp": "// a memory_order_relaxed load; mmap(2)\n"
                                           'auto s = "mmap() failed // not a comment";\n'
                                           'auto r = R"(mmap(")";\n'
                                           "/* madvise(\n mprotect( */ int x = 1'000;\n"
                                           "char quote = '\"';\n"})

    def test_code_after_prose_still_counts(self):
        self.reports(
            {"src/heap/slab.cpp": "char quote = '\"'; mmap(); // \"\n"},
            "src/heap/slab.cpp:1: system call mmap outside src/os")

    def test_a_folder_that_no_table_knows(self):
        self.reports(
            {"src/stray/a.cpp": ""},
            "src/stray/a.cpp: is in no layer (see PLACES in scripts/check_layers.py)")


if __name__ == "__main__":
    unittest.main(verbosity=2)
