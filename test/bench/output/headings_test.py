#!/usr/bin/env python3
"""Headings of kolo-bench's tables: the version of kolo and the parameters of the run. Also messages about output files that
exist already.

  headings_test.py KOLO_BENCH [test...]
"""

import json
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

BENCH = ""
PATIENCE_S = 300
FEW = ["--iterations", "4", "--passes", "2", "--warmup", "1"]


def run(*words):
    """The text on standard output."""
    done = subprocess.run([BENCH, *words], capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    if done.returncode != 0:
        raise AssertionError(f"{words} ended with {done.returncode}: {done.stderr}")
    return done.stdout


class Headings(unittest.TestCase):
    def test_every_table_names_the_version_of_kolo(self):
        version = run("--version").strip()
        self.assertRegex(version, r"^kolo \S+, commit \S+$")
        with tempfile.TemporaryDirectory() as folder:
            table = Path(folder) / "table"
            tune = ["tune", "--collectives", "broadcast", "--ranks", "2", "--transport", "inproc", "--max-bytes", "8", "--out", str(table)]
            for words in (["allreduce", "--max-bytes", "8", *FEW], ["allreduce", "--overlap", "--max-bytes", "8", *FEW],
                          ["p2p", "latency", "--max-bytes", "8", *FEW], ["explain", "allreduce", "--bytes", "8", *FEW],
                          [*tune, *FEW], ["limits", "--quick", "--only", "line"], ["interpreter", "--quick"]):
                with self.subTest(words=words):
                    self.assertEqual(run(*words).splitlines().count(f"# {version}"), 1)
            self.assertTrue(table.read_text().splitlines()[2].endswith(f" UTC, {version}"), table.read_text())

    def test_a_parameter_servers_table_names_its_servers(self):
        for words, about in ((["ps", "push", "--servers", "1"], "push: 3 ranks over shm, 1 server among them, in place"),
                             (["ps", "push-pull", "--servers", "2"], "push_pull: 3 ranks over shm, 2 servers among them, in place"),
                             (["pull"], "pull: 3 ranks over shm, each of them a server, in place"),
                             (["explain", "pull"], "explain pull: 3 ranks over shm, each of them a server, in place")):
            heading = run(*words, "--ranks", "3", "--transport", "shm", "--max-bytes", "8", *FEW).splitlines()[0]
            self.assertEqual(heading, f"# kolo-bench {about}")

    def test_a_size_is_rounded_to_whole_elements_and_a_line_says_so(self):
        about = "# sizes are multiples of 4 bytes (float32): 7 is measured as 4"
        with tempfile.TemporaryDirectory() as folder:
            table = str(Path(folder) / "table")
            for words in (["allreduce"], ["allreduce", "--overlap"], ["explain", "allreduce"], ["reduce_scatter"], ["allgather", "--algorithm", "all"],
                          ["tune", "--collectives", "broadcast", "--ranks", "2", "--transport", "inproc", "--out", table]):
                with self.subTest(words=words):
                    lines = run(*words, "--bytes", "7", *FEW).splitlines()
                    self.assertEqual(lines.count(about), 1, lines)
                    self.assertTrue(any(re.match(r" .*\b4\b", line) for line in lines), lines)
        self.assertNotIn("sizes are multiples", run("p2p", "latency", "--bytes", "7", *FEW))

    def test_a_quick_run_of_limits_is_marked_as_a_trial(self):
        self.assertEqual(run("limits", "--quick", "--only", "line").splitlines()[0],
                         "# kolo-bench limits --quick: a trial, of fewer sizes and repeats")

    def test_peers_over_another_transport_are_marked(self):
        if "gloo" not in run("peers").splitlines():
            self.skipTest("gloo is not in this build")
        for words in (["allreduce"], ["p2p", "latency"]):
            heading = run(*words, "--transport", "shm", "--against", "gloo", "--max-bytes", "8", *FEW).splitlines()[0]
            self.assertRegex(heading, r", in turn with gloo \(over tcp\)$")

    def test_the_carrier_of_a_transport_is_in_the_heading_and_in_every_row(self):
        there = {line.split(":")[0]: line for line in run("transports").splitlines()}
        for transport in ("shm", "tcp", "ucx", "ofi"):
            if "cannot be used here" in there.get(transport, "cannot be used here"):
                continue
            has_several = transport in ("ucx", "ofi")
            for words in (["allreduce", "--transport", transport], ["allreduce", "--transport", transport, "--overlap"],
                          ["p2p", "latency", "--transport", transport, "--level", "both"],
                          ["explain", "allreduce", "--transport", transport]):
                with self.subTest(words=words), tempfile.TemporaryDirectory() as folder:
                    path = Path(folder) / "rows"
                    heading = run(*words, "--max-bytes", "8", *FEW, "--json", str(path)).splitlines()[0]
                    carriers = {json.loads(line).get("carrier") for line in path.read_text().splitlines()}
                    self.assertEqual(len(carriers), 1)
                    carrier = carriers.pop()
                    self.assertEqual(bool(carrier), has_several)
                    over = f"2 ranks over {transport} ({carrier})" if has_several else f"2 ranks over {transport}"
                    self.assertRegex(heading, rf"{re.escape(over)}(,|$)")
        if "ofi" in there and "cannot be used here" not in there["ofi"]:
            heading = run("allreduce", "--transport", "ofi", "--shape", "1Gbit", "--max-bytes", "8", *FEW).splitlines()[0]
            self.assertRegex(heading, r"2 ranks over ofi,1Gbit \([^)]+\),")


class Files(unittest.TestCase):
    """An output file that has content already: one line says what happens to it."""

    def errors_of(self, *words):
        done = subprocess.run([BENCH, *words], capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stderr

    def test_appended_rows_are_announced(self):
        for words in (["allreduce", "--transport", "shm"], ["allreduce", "--transport", "inproc"], ["explain", "scan"],
                      ["p2p", "latency"]):
            with self.subTest(words=words), tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "rows"
                all_words = [*words, "--max-bytes", "8", *FEW, "--json", str(path)]
                self.assertEqual(self.errors_of(*all_words), "")
                rows = path.read_text()
                self.assertEqual(self.errors_of(*all_words),
                                 f"kolo-bench: --json {path}: the file is not empty; the rows are appended\n")
                self.assertTrue(path.read_text().startswith(rows))
        self.assertEqual(self.errors_of("allreduce", "--max-bytes", "8", *FEW, "--json", "/dev/null"), "")

    def test_a_replaced_table_and_rows_of_several_jobs_are_announced_once(self):
        with tempfile.TemporaryDirectory() as folder:
            table, path = Path(folder) / "table", Path(folder) / "rows"
            words = ["tune", "--collectives", "broadcast", "--ranks", "2", "--transport", "inproc,shm", "--max-bytes", "8", *FEW,
                     "--out", str(table), "--json", str(path)]
            self.assertEqual(self.errors_of(*words), "")
            self.assertEqual(self.errors_of(*words),
                             f"kolo-bench: --json {path}: the file is not empty; the rows are appended\n"
                             f"kolo-bench: --out {table}: the file is not empty; the table replaces it\n")


if __name__ == "__main__":
    BENCH = sys.argv.pop(1)
    unittest.main(verbosity=2)
