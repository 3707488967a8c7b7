#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""scripts/check_indexes.py on a document and a command made up here."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parent / "check_indexes.py"
DOCUMENT = """# Title

| index | algorithm |
|---|---|
| `pugh-hash-table` | lists \\| locks |
| `other` | unknown |
"""


class CheckIndexes(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "document.md").write_text(DOCUMENT)

    def check(self, said):
        command = self.folder / "obase"
        command.write_text(f"#!/bin/sh\necho '{said}'\n")
        command.chmod(0o755)
        return subprocess.run([sys.executable, SCRIPT, command, self.folder / "document.md"], capture_output=True,
                              text=True, check=False)

    def test_indexes_without_a_row_are_named(self):
        self.assertEqual(self.check("  --index TEXT:{pugh-hash-table,other} ...").returncode, 0)
        done = self.check("  --index TEXT:{pugh-hash-table,new-one} ...")
        self.assertEqual(done.returncode, 1)
        self.assertIn("new-one", done.stderr)

    def test_a_help_without_indexes_is_no_success(self):
        self.assertEqual(self.check("  --threads UINT").returncode, 1)


if __name__ == "__main__":
    unittest.main()
