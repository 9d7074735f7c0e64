#!/usr/bin/env python3
"""What kolo-bench says above its tables: of what kolo they are, and of what run.

  headings_test.py KOLO_BENCH [test...]
"""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

BENCH = ""
PATIENCE_S = 300
FEW = ["--iterations", "4", "--passes", "2", "--warmup", "1"]


def run(*words):
    """What it printed to standard output."""
    done = subprocess.run([BENCH, *words], capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    if done.returncode != 0:
        raise AssertionError(f"{words} ended with {done.returncode}: {done.stderr}")
    return done.stdout


class Headings(unittest.TestCase):
    def test_every_table_says_of_which_kolo_it_is(self):
        version = run("--version").strip()
        self.assertRegex(version, r"^kolo \S+, commit \S+$")
        with tempfile.TemporaryDirectory() as folder:
            table = Path(folder) / "table"
            tune = ["tune", "--collectives", "broadcast", "--ranks", "2", "--transport", "inproc", "--max-bytes", "8", "--out", str(table)]
            for words in (["allreduce", "--max-bytes", "8", *FEW], ["allreduce", "--overlap", "--max-bytes", "8", *FEW],
                          ["p2p", "latency", "--max-bytes", "8", *FEW], ["explain", "allreduce", "--bytes", "8", *FEW],
                          [*tune, *FEW], ["limits", "--quick"], ["interpreter", "--quick"]):
                with self.subTest(words=words):
                    self.assertEqual(run(*words).splitlines().count(f"# {version}"), 1)
            self.assertTrue(table.read_text().splitlines()[2].endswith(f" UTC, {version}"), table.read_text())


if __name__ == "__main__":
    BENCH = sys.argv.pop(1)
    unittest.main(verbosity=2)
