#!/usr/bin/env python3
"""Rows of kolo-bench plot: which are drawn, which are left out with a message, where they come from, and tables.

  plot_rows_test.py KOLO_BENCH [test...]
"""

import json
import os
import subprocess
import sys
import tempfile
import unittest

import plot_test
from plot_test import row


class PlotRows(plot_test.Drawing):
    def test_wrong_results_are_left_out_with_a_message(self):
        rows = [row("kolo", "shm", 8, 5), row("kolo", "shm", 64, 6, wrong=3), row("gloo", "tcp", 8, 7, wrong=1)]
        picture = self.time_of(rows)
        self.assertEqual(self.errors, "kolo-bench plot: left out: 2 rows with wrong results, whose times say nothing\n")
        self.assertIn("<!-- 8 B -->", picture)
        self.assertNotIn("<!-- 64 B -->", picture)
        self.assertNotIn("gloo", picture)

    def test_a_size_of_zero_beside_others_is_left_out(self):
        rows = [row("kolo", "shm", size, 5, busbw_GBps=None if size == 0 else 1) for size in (0, 8, 64)]
        self.assertTrue(self.files(rows, "--overview", only=["time"]))
        self.assertTrue(self.files(rows[:1], "--overview", only=["time"]))

    def test_rows_may_come_through_a_pipe_with_any_backend_of_the_user(self):
        line = json.dumps(row("kolo", "shm", 8, 5)) + "\n"
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([plot_test.BENCH, "plot", "/dev/stdin", "--out", folder + "/plots"], input=line, capture_output=True, text=True,
                                  timeout=plot_test.PATIENCE_S, check=False, env={**os.environ, "MPLBACKEND": "nonsense"})
            if "matplotlib is missing" in done.stderr:
                self.skipTest("matplotlib is not installed")
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertEqual(len(os.listdir(folder + "/plots")), 6)

    def test_disturbed_floors_are_left_out_with_a_message(self):
        floors = [row("floor", "shm", 8 << i, 5, algorithm="in one line", regime=regime) for i, regime in enumerate(("near", "disturbed"))]
        self.plot(floors, "time")
        self.assertEqual(self.errors.count("left out: 1 floor that another program disturbed"), 1)
        self.plot([*floors, {**floors[1], "regime": "near"}], "time")
        self.assertEqual(self.errors, "")

    def test_charts_of_a_table_show_averages_and_name_what_must_not_be_compared(self):
        run = {"cores": 2}
        rows = [row(library, transport, size, size / 1000, ranks=ranks, average_us=size / 500, run=run, regime=regime)
                for library, transport in (("gloo", "tcp"), ("kolo", "shm")) for size in (10**6, 10**9) for ranks, regime in ((2, "moved"), (4, "near"))]
        charts = {name: text.decode() for name, text in self.files(rows, "--table", "--format", "svg").items()}
        self.assertEqual(set(charts), {"allreduce_table_time.svg", "allreduce_table_bandwidth.svg"})
        for chart in charts.values():
            for text in ("1 MB", "1 GB", "2 processes", "4 processes", "more processes than cores, which share them", plot_test.HOLLOW):
                self.assertIn(f"<!-- {text} -->", chart)
            self.assertLess(chart.index("kolo over shm"), chart.index("gloo over tcp"))
        self.assertIn("<!-- 2.00 -->", charts["allreduce_table_time.svg"])  # ms, the average
        self.assertIn("<!-- 1.00 -->", charts["allreduce_table_bandwidth.svg"])  # GB/s, of the median
        alone = self.files([{**rows[0], "regime": "near"}], "--table", "--format", "svg")["allreduce_table_time.svg"].decode()
        self.assertNotIn("more processes", alone + self.errors)


if __name__ == "__main__":
    plot_test.use_matplotlib()
    plot_test.BENCH = sys.argv.pop(1)
    unittest.main(verbosity=2)
