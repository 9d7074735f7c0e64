#!/usr/bin/env python3
"""Rows of kolo-bench plot: which are drawn, left out with a message, or refused, where they come from, and tables.

  plot_rows_test.py KOLO_BENCH [test...]
"""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import plot_test  # adds bench/output to the path
from plot_test import draw_here, row
from rows import BANDWIDTHS, CAN_BE_NULL, NEEDED, NUMBER, OF_RUN, OPTIONAL, what_is_wrong


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

    def complaint(self, rows):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "rows"
            path.write_text("".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in rows))
            code, said = draw_here(str(path), "--out", folder + "/plots")
            self.assertEqual((code, len(said.splitlines())), (2, 1), said)
            self.assertTrue(said.startswith(f"kolo-bench plot: {path}:{len(rows)}: "), said)
            self.assertFalse((Path(folder) / "plots").exists())
            return said

    def test_an_error_names_a_field_of_a_wrong_type_with_its_file_and_line(self):
        right = row("kolo", "shm", 8, 5)
        for name, value, about in (("median_us", "fast", "'median_us' is \"fast\", where a time from 1e-6 to 1e15 belongs"),
                                   ("median_us", 1e-308, "'median_us' is 1e-308, where a time from 1e-6 to 1e15 belongs"),
                                   ("bytes", [8], "'bytes' is [8], where a whole number from 0 belongs"),
                                   ("ranks", None, "'ranks' is null, where a whole number from 0 belongs"),
                                   ("run", 7, "'run' is 7, where an object belongs"),
                                   ("type", {"a": 1}, "'type' is {\"a\": 1}, where a text of at most 200")):
            self.assertIn(about, self.complaint([right, {**right, name: value}]))
        self.assertIn("is not a JSON line", self.complaint([right, "[" * 100000]))
        self.assertIn("'median_us' is Infinity", self.complaint([json.dumps(right).replace('"median_us": 5', '"median_us": 1e999')]))

    def test_no_field_of_a_row_writes_outside_the_folder(self):
        right = row("kolo", "shm", 8, 5)
        for name in ("../../x", "..", "a/b", "/x", "", "x" * 65):
            self.assertIn("'collective' is ", self.complaint([right, {**right, "collective": name}]))
        for name in ("transport", "library", "peer", "network"):
            self.assertIn(f"'{name}' is ", self.complaint([right, {**right, name: "x" * 5000}]))
            self.assertIn(f"'{name}' is ", self.complaint([right, {**right, name: "a\0b"}]))
        names = self.files([row("kolo", transport, 8, 5) for transport in ("../../x", "..", "a/b", "a b", "x" * 200, "tcp,0.5ms")], "--overview",
                           only=["time"])
        self.assertEqual(len(names), 6)
        self.assertIn("tcp,0.5ms_2_ranks_time.png", names)

    def test_each_field_of_a_row_accepts_only_its_own_type(self):
        right = row("kolo", "shm", 8, 5, peer="", limit_us=1, type="float32", op="sum", form="blocking", memory="allocated",
                    reproducibility="fast", progress="none", network="", segment_bytes=0, servers=0, window=1, messages_per_s=1, in_place=True,
                    run={"machine": "M", "cores": 2, "kernel": "K", "commit": "c"})
        self.assertEqual(what_is_wrong(right), "")
        read = set(NEEDED) | set(BANDWIDTHS) | set(OPTIONAL)
        self.assertGreaterEqual(read | {"iterations"}, set(right))
        for name in read:
            for odd in ("odd", [], {}, None, True, -1, 1.5, float("nan"), 10**400):
                fits, _ = {**NEEDED, **OPTIONAL, **dict.fromkeys(BANDWIDTHS, NUMBER)}[name]
                if not fits(odd) and not (odd is None and name in CAN_BE_NULL):
                    self.assertIn(f"'{name}' is ", what_is_wrong({**right, name: odd}))
        for name in OF_RUN:
            self.assertIn(f"'run.{name}' is [1]", what_is_wrong({**right, "run": {name: [1]}}))
        for name in (*NEEDED, *BANDWIDTHS):
            self.assertIn(f"lacks '{name}'", what_is_wrong({key: value for key, value in right.items() if key != name}))


if __name__ == "__main__":
    plot_test.use_matplotlib()
    plot_test.BENCH = sys.argv.pop(1)
    unittest.main(verbosity=2)
