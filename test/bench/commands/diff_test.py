#!/usr/bin/env python3
"""kolo-bench diff: two files of rows made by the test, and the comparison.

  diff_test.py KOLO_BENCH [test...]
"""

import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

BENCH = ""
PATIENCE_S = 120


def row(median, p10=None, p90=None, **more):
    """A row with a noise of a tenth to either side by default."""
    return {"library": "kolo", "transport": "shm", "collective": "allreduce", "algorithm": "ring", "ranks": 2, "bytes": 4096,
            "iterations": 100, "median_us": median, "p10_us": p10 or 0.9 * median, "p90_us": p90 or 1.1 * median,
            "algbw_GBps": 1, "busbw_GBps": 1, "wrong": 0, "type": "float32", "op": "sum", "cache_line_us": 0.1,
            "regime": "near", **more}


class Comparison(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name)

    def file(self, name, content):
        path = self.folder / name
        path.write_text(content if isinstance(content, str) else "".join(json.dumps(line) + "\n" for line in content))
        return str(path)

    def diff(self, old, new, *more):
        done = subprocess.run([BENCH, "diff", self.file("old", old), self.file("new", new), *more], capture_output=True, text=True,
                              timeout=PATIENCE_S, check=False)
        return done.returncode, done.stdout, done.stderr


class Diff(Comparison):
    def test_regressions_are_distinguished_from_noise(self):
        for now, code, verdict in ((row(10), 0, "noise"), (row(10.9), 0, "noise"), (row(13), 1, "SLOWER"), (row(7), 0, "faster"),
                                   (row(13, p10=9.5), 0, "noise"), (row(7, p90=10.5), 0, "noise")):
            with self.subTest(now=now["median_us"], p10=now["p10_us"]):
                found, output, errors = self.diff([row(10)], [now])
                self.assertEqual((found, errors), (code, ""), output)
                self.assertIn(verdict, output)

    def test_passes_that_do_not_overlap_are_a_change_whatever_the_iterations(self):
        before = row(0.59, 0.49, 113, pass_us=[0.58, 0.59, 0.6])
        for now, code, verdict in ((row(112, 0.5, 120, pass_us=[111, 112, 113]), 1, "SLOWER"),
                                   (row(0.3, 0.29, 90, pass_us=[0.29, 0.3, 0.31]), 0, "faster"),
                                   (row(0.7, 0.69, 0.71, pass_us=[0.59, 0.7, 0.71]), 0, "noise"),
                                   (row(0.615, 0.61, 0.62, pass_us=[0.61, 0.615, 0.619]), 0, "noise"),  # less than 5 %
                                   (row(112, 0.5, 120, pass_us=[111, 112]), 0, "noise")):  # two passes may differ by chance
            with self.subTest(now=now):
                found, output, errors = self.diff([before], [now])
                self.assertEqual((found, errors), (code, ""), output)
                self.assertIn(verdict, output)

    def test_the_requested_settings_are_part_of_the_compared_point(self):
        for setting, said in (({"form": "persistent"}, "persistent"), ({"memory": "allocated"}, "allocated"),
                              ({"reproducibility": "ordered"}, "ordered"), ({"progress": "thread"}, "progress by thread"),
                              ({"in_place": False}, "out of place"), ({"servers": 1}, "servers 1"), ({"window": 8}, "window 8"),
                              ({"segment_bytes": 65536}, "segments of 64 KiB"), ({"network": "1Gbit,10ms"}, "network 1Gbit,10ms"), ({"peer": "kolo:other"}, "kolo:other")):
            with self.subTest(setting=setting):
                rows = [row(10), row(100, **setting)]
                code, output, errors = self.diff(rows, list(reversed(rows)))
                self.assertEqual((code, errors), (0, ""), output)
                self.assertIn("2 noise", output)
                self.assertIn(said, output)
                self.assertIn("no row in common", self.diff([row(10)], [row(100, **setting)])[2])

    def test_an_old_row_with_progress_nobody_is_compared_with_progress_none(self):
        code, output, errors = self.diff([row(10, progress="nobody")], [row(10, progress="none")])
        self.assertEqual((code, errors), (0, ""), output)
        self.assertIn("1 noise", output)

    def test_old_rows_without_a_field_have_its_default(self):
        usual = {"form": "blocking", "reproducibility": "fast", "servers": 0, "segment_bytes": 0}
        for collective, in_place in (("allreduce", True), ("alltoall", False), ("p2p_latency", False)):
            code, output, errors = self.diff([row(10, collective=collective)], [row(10, collective=collective, in_place=in_place, **usual)])
            self.assertEqual((code, errors), (0, ""), output)
            self.assertIn("1 noise", output)
            self.assertNotIn("(out of place)", output)

    def test_peers_of_one_library_are_compared_separately(self):
        rows = [row(10, library="openmpi", peer="openmpi", algorithm="default"), row(99, library="openmpi", peer="openmpi:ring")]
        code, output, _ = self.diff(rows, list(reversed(rows)))
        self.assertEqual(code, 0)
        self.assertIn("2 noise", output)
        self.assertIn("openmpi:ring", output)

    def test_a_difference_below_the_least_is_noise(self):
        old, new = row(10, 9.99, 10.01), row(10.4, 10.39, 10.41)
        self.assertEqual(self.diff([old], [new])[0], 0)
        self.assertEqual(self.diff([old], [new], "--least", "3")[0], 1)

    def test_another_regime_is_not_compared(self):
        code, output, _ = self.diff([row(10)], [row(40, regime="far", cache_line_us=0.5)])
        self.assertEqual(code, 4)
        self.assertIn("different regime (near, now far), not comparable", output)
        code, output, _ = self.diff([row(10)], [row(40, regime="disturbed", cache_line_us=5)])
        self.assertEqual(code, 4)
        self.assertIn("disturbed by another program, not comparable", output)
        for old, new in ((row(10), row(40, regime="moved")), (row(10, regime="moved"), row(40, regime="moved"))):
            code, output, _ = self.diff([old], [new])
            self.assertEqual(code, 4)
            self.assertIn("the cores moved during one of them, not comparable", output)

    def test_without_a_comparison_the_result_is_not_good(self):
        far, peer = {"regime": "far"}, {"library": "gloo", "bytes": 8}
        for old, new, code, said in (
                ([row(10)], [row(10, **far)], 4, "# nothing could be compared"),
                ([row(10), row(10, **peer)], [row(10, **far), row(10, **peer)], 4, "# no row of kolo's could be compared"),
                ([row(10), row(9, bytes=8)], [row(10, **far), row(9, bytes=8)], 0, "# no regression of kolo's"),
                ([row(10)], [row(10, wrong=1, **far)], 1, "# 1 regression of kolo's"),
                ([row(10, **peer)], [row(10, **peer)], 0, "# the files have only peers' rows in common")):
            with self.subTest(old=old, new=new):
                found, output, errors = self.diff(old, new)
                self.assertEqual((found, errors), (code, ""), output)
                self.assertIn(said, output.splitlines()[-1])

    def test_a_slower_peer_is_reported_and_does_not_count(self):
        code, output, _ = self.diff([row(10, library="gloo")], [row(20, library="gloo")])
        self.assertEqual(code, 0)
        self.assertIn("slower (does not count: not kolo's)", output)

    def test_wrong_results_are_a_regression(self):
        code, output, _ = self.diff([row(10)], [row(5, wrong=3)])
        self.assertEqual(code, 1)
        self.assertIn("WRONG: 3 elements", output)

    def test_rows_are_matched_by_their_settings(self):
        sizes = [row(10, bytes=8), row(20, bytes=64), row(30, bytes=64, op="max"), row(40, bytes=64, ranks=4)]
        code, output, _ = self.diff(sizes, [{**line} for line in reversed(sizes)])
        self.assertEqual(code, 0)
        self.assertIn("4 noise", output)
        code, output, _ = self.diff(sizes, [row(10, bytes=8), row(1, bytes=16)])
        self.assertIn("only in the old file 3, only in the new one 1", output)

    def test_the_last_of_several_rows_for_a_point_counts(self):
        self.assertEqual(self.diff([row(10)], [row(90), row(10)])[0], 0)
        self.assertEqual(self.diff([row(90), row(10)], [row(90)])[0], 1)

    def test_another_choice_of_algorithm_is_compared(self):
        code, output, _ = self.diff([row(10)], [row(20, algorithm="one_shot")])
        self.assertEqual(code, 1)
        self.assertIn("ring -> one_shot", output)
        both = [row(20), row(10, algorithm="one_shot")]  # both files have both algorithms, so each is compared with itself
        code, output, _ = self.diff(both, [row(10, algorithm="one_shot"), row(20)])
        self.assertEqual(code, 0)
        self.assertNotIn("->", output)

    def test_limit_rows_and_other_machines_are_ignored(self):
        limit = {"limit": "cache line", "median_us": 1}
        code, output, _ = self.diff([limit, row(10, run={"machine": "A"})], [row(10, run={"machine": "B"}), limit])
        self.assertEqual(code, 0)
        self.assertIn("# measured on different machines: A, now B", output)


class Wrong(Comparison):
    def assert_refused(self, about, old, new, *more):
        code, output, errors = self.diff(old, new, *more)
        self.assertEqual((code, output, len(errors.splitlines())), (2, "", 1), errors)
        self.assertIn(about, errors)

    def test_errors_name_files_without_rows(self):
        good = [row(10)]
        self.assert_refused("new: nothing in it", good, "")
        self.assert_refused("old:1: is not JSON: expected lines as", "no JSON\n", good)
        self.assert_refused("new:2: no row of kolo-bench: key 'transport' not found", good, json.dumps(row(1)) + "\n{\"library\": \"kolo\"}\n")
        self.assert_refused("'median_us' is not above 0", good, [row(10, median_us=0)])
        self.assert_refused("'median_us' is not a number", good, [row(10, median_us="abc")])
        self.assert_refused("do not rise", good, [row(10, 11)])
        self.assert_refused("'pass_us' is not above 0", good, [row(10, pass_us=[10, -1, 10])])
        for name, value in (("bytes", -8), ("bytes", 1.5), ("ranks", 1 << 40), ("ranks", (1 << 64) - 1), ("ranks", "2"), ("wrong", -1), ("window", True)):
            self.assert_refused(f"'{name}' is not a count", good, [row(10, **{name: value})])
        self.assert_refused("new: holds no rows", good, [{"limit": "cache line"}])
        code, output, errors = self.diff(good, [row(10, bytes=8)])
        self.assertEqual((code, output, len(errors.splitlines())), (4, "", 1), errors)
        self.assertIn("no row in common", errors)
        self.assert_refused("--least -1", good, good, "--least", "-1")

    def test_an_error_names_a_missing_file(self):
        for words in (["/no/such/file", self.file("new", [row(1)])], [self.file("old", [row(1)]), "/no/such/file"],
                      [str(self.folder), self.file("new", [row(1)])]):
            done = subprocess.run([BENCH, "diff", *words], capture_output=True, text=True, timeout=PATIENCE_S, check=False)
            self.assertEqual((done.returncode, done.stdout, len(done.stderr.splitlines())), (2, "", 1), done.stderr)
            self.assertTrue("/no/such/file: No such file" in done.stderr or str(self.folder) in done.stderr, done.stderr)
        done = subprocess.run([BENCH, "diff", "/no/such/file"], capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        self.assertEqual((done.returncode, len(done.stderr.splitlines())), (2, 1), done.stderr)
        self.assertIn("needs two files", done.stderr)


if __name__ == "__main__":
    BENCH = sys.argv.pop(1)
    unittest.main(verbosity=2)
