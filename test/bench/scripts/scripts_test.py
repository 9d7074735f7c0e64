#!/usr/bin/env python3
"""bench/scripts/unwanted_connections.py: one short round makes its table.

  scripts_test.py KOLO_BENCH [test...]
"""

import subprocess
import sys
import unittest
from pathlib import Path

BENCH = None
PATIENCE_S = 600
FOLDER = Path(__file__).resolve().parents[3] / "bench/scripts"


def table_of(*words):
    """The cells of each row that the script prints below its heading."""
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    if done.returncode != 0:
        raise AssertionError(f"{words} failed ({done.returncode}):\n{done.stdout}{done.stderr}")
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in done.stdout.splitlines()[2:]]


class Beside(unittest.TestCase):
    def test_a_job_goes_on_while_unwanted_connections_of_every_kind_arrive(self):
        rows = table_of(FOLDER / "unwanted_connections.py", "--bin", BENCH.parent, "--rounds", "1", "--seconds", "0.1", "--kinds", "garbage,crowd")
        self.assertEqual([row[:2] for row in rows], [[kind, size] for kind in ("garbage", "crowd")
                                                     for size in ("4096", "1048576")])
        for row in rows:
            self.assertEqual(len(row), 8)
            self.assertGreater(int(row[-1]), 0, row)
        self.assertGreaterEqual(min(int(row[-1]) for row in rows if row[0] == "crowd"), 1000)


if __name__ == "__main__":
    BENCH = Path(sys.argv.pop(1)).resolve()
    unittest.main()
