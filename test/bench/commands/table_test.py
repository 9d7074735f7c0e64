#!/usr/bin/env python3
"""kolo-bench table: the table, its files, going on after an interrupt, and refused flags.

  table_test.py KOLO_BENCH [test...]
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "cli"))
from processes import ranks_of, wait_until  # noqa: E402  # pylint: disable=wrong-import-position

BENCH = ""
PATIENCE_S = 240
FILES = {"points.jsonl", "rows.jsonl", "table.md"}
CHARTS = {f"allreduce_table_{what}.{suffix}" for what in ("time", "bandwidth") for suffix in ("png", "svg")}
# Two ranks and small sizes. Without PATH there is no python3, and so no charts, which take a second.
SMALL = ["--ranks", "2", "--sizes", "64K,128K", "--transport", "shm", "--against", "none", "--iterations", "4"]
NO_CHARTS = {"PATH": "/nowhere"}
# Not every flipped bit is a wrong result: in a sum it may be rounded away, and the first segments measure costs.
FAULTS = "+".join(f"corrupt@rank=1,segment={number}" for number in range(1, 400))


class Table(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = Path(holder.name) / "results"

    def words(self, *more):
        return [BENCH, "table", "--out", str(self.folder), *SMALL, *more]

    def run_table(self, *more, code=0, **environment):
        """Returns standard output and standard error."""
        done = subprocess.run(self.words(*more), capture_output=True, text=True, timeout=PATIENCE_S, check=False,
                              env={**os.environ, **NO_CHARTS, **environment})
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout, done.stderr

    def files(self):
        return set(os.listdir(self.folder))

    def points(self):
        """(transport, ranks, bytes) and rows of each finished point. The file must be whole."""
        first, *lines = map(json.loads, (self.folder / "points.jsonl").read_text().splitlines())
        self.assertIn("flags", first)
        return {(line["transport"], line["ranks"], line["bytes"]): line["rows"] for line in lines}

    def cells(self, text):
        """The cells of the table's lines, by processes and size."""
        lines = [[cell.strip() for cell in line.strip("|\n").split("|")] for line in text.splitlines() if line.startswith("| ")]
        return {(line[0], line[1], line[3]): line for line in lines if line[0] != "processes"}

    def test_the_table_has_averages_medians_and_both_bandwidths(self):
        output, errors = self.run_table("--transport", "inproc,shm", "--ranks", "2,3", "--sizes", "64K")
        self.assertEqual(self.files(), FILES)
        self.assertTrue(output.startswith((self.folder / "table.md").read_text()))
        points = self.points()
        self.assertEqual(list(points), [(transport, ranks, 64000) for transport in ("inproc", "shm") for ranks in (2, 3)])
        cells = self.cells(output)
        for (transport, ranks, _), [row] in points.items():
            line = cells[str(ranks), "64 KB", transport]
            for cell, name in zip(line[4:6], ("average_us", "median_us")):  # three digits or more
                self.assertAlmostEqual(float(cell), row[name] / 1e3, delta=max(5e-4, row[name] / 1e3 / 200))
            self.assertEqual(line[6:8], [f"{row['algbw_GBps']:.2f}", f"{row['busbw_GBps']:.2f}"])
            self.assertAlmostEqual(row["busbw_GBps"], 64000 / row["median_us"] / 1e3 * 2 * (ranks - 1) / ranks)
            self.assertGreater(row["average_us"], 0)
            if transport == "shm":  # ranks of inproc are threads of table
                self.assertIn(f"kolo-bench allreduce --ranks {ranks} --transport shm --bytes 64000", row["run"]["command"])
            is_oversubscribed = ranks > row["run"]["cores"]
            self.assertEqual(f"{ranks} processes on" in line[10], is_oversubscribed, line)
            self.assertEqual(f"{ranks} ranks over {transport}, 64 KB" in output.split("They are: ")[-1], is_oversubscribed)
        self.assertEqual(len((self.folder / "rows.jsonl").read_text().splitlines()), 4)
        self.assertIn("[4/4] 3 ranks over shm, 64 KB: kolo", errors)
        self.assertIn("left", errors)
        self.assertIn("cannot start python3", errors)

    def test_charts_are_drawn_beside_the_table(self):
        _, errors = self.run_table(PATH=os.environ["PATH"])
        if "matplotlib is missing" in errors:
            self.skipTest("matplotlib is not installed")
        self.assertEqual(self.files(), FILES | CHARTS, errors)
        self.assertIn("](allreduce_table_time.png)", (self.folder / "table.md").read_text())

    def test_finished_points_are_not_measured_again(self):
        self.run_table()
        before = self.points()
        _, errors = self.run_table("--sizes", "64K,128K,256K", "--timeout", "50")
        after = self.points()
        self.assertEqual({key: after[key] for key in before}, before)
        self.assertEqual(set(after) - set(before), {("shm", 2, 256000)})
        self.assertIn("keeps the finished points there and measures the others", errors)
        self.assertIn("[1/1] 2 ranks over shm, 256 KB", errors)

    def test_other_flags_are_refused_and_change_nothing(self):
        self.run_table("--sizes", "64K")
        before = (self.folder / "points.jsonl").read_bytes()
        for more, variables, about in ((["--iterations", "8"], {}, "--iterations was '4' and is '8'"),
                                       ([], {"KOLO_SHAPE": "1Gbit"}, "environment was ")):
            output, errors = self.run_table(*more, code=2, **variables)
            self.assertEqual((output, len(errors.splitlines())), ("", 1), errors)
            self.assertIn(about, errors)
        self.assertEqual((self.folder / "points.jsonl").read_bytes(), before)
        (self.folder / "points.jsonl").write_text("something else\n")
        self.assertIn("line 1 was not written by kolo-bench table", self.run_table(code=2)[1])

    def test_an_interrupt_keeps_the_finished_points(self):
        slow = ["--sizes", "64K,20M", "--iterations", "2000"]
        with subprocess.Popen(self.words(*slow), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              env={**os.environ, **NO_CHARTS}) as table:
            first = table.stderr.readline()
            wait_until(lambda: len(ranks_of(table)) == 2, "the ranks of the second point")
            table.send_signal(signal.SIGINT)
            output, errors = table.communicate(timeout=PATIENCE_S)
        self.assertEqual(table.returncode, 128 + signal.SIGINT, first + errors)
        self.assertEqual((list(self.points()), self.files()), ([("shm", 2, 64000)], FILES))
        self.assertIn("INCOMPLETE: 2 ranks over shm, 20 MB did not succeed", output)
        self.assertIn("keeps the finished points", self.run_table("--iterations", "2000", "--sizes", "64K")[1])

    def test_a_point_without_memory_is_skipped_with_the_reason(self):
        output, errors = self.run_table("--sizes", "64K,1000000G")
        for text in (output, errors):
            self.assertIn("skipped: memory is too small: 2 buffers of 1000000 GB for each of 2 ranks need 4000000.0 GB, and ", text)
        self.assertEqual(list(self.points()), [("shm", 2, 64000)])

    def test_wrong_results_are_marked_and_measured_again(self):
        for _ in range(2):
            output, errors = self.run_table("--sizes", "128K", "--transport", "inproc", "--iterations", "100", code=3, KOLO_FAULT=FAULTS)
            self.assertIn("WRONG: ", output)
            self.assertIn("[1/1] 2 ranks over inproc, 128 KB: kolo", errors)
            self.assertIn(", with WRONG results", errors)

    def test_wrong_flags_are_refused_before_any_measurement(self):
        for more, about in ((["--sizes", "64KiB"], "'64KiB' is not a size in powers of 1000"), (["--sizes", "0"], "more than 0 bytes"),
                            (["--sizes", "8,9"], "named twice"), (["--ranks", "1"], "--ranks 1: expected numbers from 2"),
                            (["--transport", "all"], "table takes a list"), (["--transport", "pigeon"], "--transport pigeon"),
                            (["--against", "pigeon"], "--against pigeon"), (["--against", "nccl"], "table measures host memory"),
                            (["--iterations", "-1"], "--iterations -1"), (["--timeout", "0"], "--timeout"),
                            (["--out", os.devnull], os.devnull)):
            with self.subTest(more=more):
                output, errors = self.run_table(*more, code=2)
                self.assertEqual((output, len(errors.splitlines())), ("", 1), errors)
                self.assertIn(about, errors)
        self.assertFalse(self.folder.exists())
        self.assertEqual(subprocess.run([BENCH, "table"], capture_output=True, text=True, check=False).stderr,
                         "kolo-bench: table: --out FOLDER is missing, the folder for the results\n")
        self.assertIn("without a launcher", self.run_table(code=2, RANK="0", WORLD_SIZE="2", LOCAL_RANK="0", LOCAL_WORLD_SIZE="2")[1])


if __name__ == "__main__":
    BENCH = sys.argv.pop(1)
    unittest.main(verbosity=2)
