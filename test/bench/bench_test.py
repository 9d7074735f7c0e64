#!/usr/bin/env python3
"""kolo-bench as it is used: every collective over every transport, its JSON lines, its complaints, a rank that dies.

  bench_test.py KOLO_BENCH [test...]
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

BENCH = ""
PATIENCE_S = 120
COLLECTIVES = ["allreduce", "broadcast", "reduce_scatter", "allgather", "barrier", "push_pull"]
TRANSPORTS = ["inproc", "shm", "tcp"]
FIELDS = ["library", "transport", "collective", "algorithm", "ranks", "bytes", "iterations", "median_us", "p10_us", "p90_us",
          "algbw_GBps", "busbw_GBps", "wrong"]
FEW = ["--iterations", "4", "--passes", "2", "--warmup", "1"]


def run(*words):
    done = subprocess.run([BENCH, *words], capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    return done.returncode, done.stdout, done.stderr


class Collectives(unittest.TestCase):
    def lines_of(self, *words):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "lines.jsonl"
            code, output, errors = run(*words, *FEW, "--json", str(path))
            self.assertEqual(code, 0, output + errors)
            return [json.loads(line) for line in path.read_text().splitlines()]

    def check(self, collective, transport, ranks, *more):
        sizes = [] if collective == "barrier" else ["--max-bytes", "64K", "--factor", "16"]
        lines = self.lines_of(collective, "--ranks", str(ranks), "--transport", transport, *sizes, *more)
        self.assertTrue(lines)
        for line in lines:
            self.assertEqual(list(line)[:len(FIELDS)], FIELDS)
            self.assertEqual((line["library"], line["transport"], line["collective"], line["ranks"], line["wrong"]),
                             ("kolo", transport, collective, ranks, 0))
            self.assertGreater(line["median_us"], 0)
        if collective != "barrier":
            self.assertEqual([line["bytes"] for line in lines], [8, 128, 2048, 32768, 65536])

    def test_barrier_and_all_sizes_of_the_others_are_right_on_every_transport(self):
        for transport in TRANSPORTS:
            for collective in COLLECTIVES:
                with self.subTest(collective=collective, transport=transport):
                    self.check(collective, transport, 2)

    def test_more_ranks_than_cores_and_chunks_that_differ(self):
        for collective in COLLECTIVES:
            with self.subTest(collective=collective):
                self.check(collective, "shm", 3, *(["--servers", "1"] if collective == "push_pull" else []))

    def test_types_operations_and_buffers_apart(self):
        self.check("allreduce", "shm", 2, "--type", "bfloat16", "--op", "max")
        self.check("allreduce", "inproc", 3, "--type", "int64", "--op", "average", "--out-of-place")
        self.check("reduce_scatter", "inproc", 3, "--type", "float64", "--out-of-place")
        self.check("allgather", "tcp", 2, "--type", "int32", "--out-of-place")

    def test_all_take_the_same_options_and_json_has_standard_output_to_itself(self):
        for collective in COLLECTIVES:
            code, output, errors = run(collective, "--min-bytes", "8", "--max-bytes", "8", "--factor", "2", "--type", "int32",
                                       "--op", "max", "--out-of-place", "--json", "-", *FEW)
            self.assertEqual(code, 0, errors)
            self.assertNotEqual([json.loads(line)["algorithm"] for line in output.splitlines()], ["auto"])
            self.assertEqual("has no use for" in errors, collective in ("barrier", "broadcast", "allgather"), errors)

    def test_the_peer_stands_beside_kolo(self):
        code, output, errors = run("allreduce", "--max-bytes", "8", "--against", "gloo", *FEW)
        if "not among the peers" in errors:
            self.skipTest("gloo is not in this build")
        self.assertEqual(code, 0, errors)
        self.assertIn("gloo", output)
        lines = self.lines_of("allreduce", "--max-bytes", "2K", "--factor", "16", "--against", "gloo")
        self.assertEqual([(line["library"], line["wrong"]) for line in lines], [("kolo", 0), ("gloo", 0)] * 3)


class WhatGoesWrong(unittest.TestCase):
    def assert_complains(self, code, about, *words):
        found, _, errors = run(*words)
        self.assertEqual(found, code, errors)
        self.assertEqual(len(errors.splitlines()), 1, errors)
        self.assertIn(about, errors)

    def test_bad_arguments_are_one_clear_line(self):
        self.assert_complains(2, "--transport pigeon", "allreduce", "--transport", "pigeon")
        self.assert_complains(2, "--algorithm guess", "allreduce", "--algorithm", "guess")
        self.assert_complains(2, "'many'", "allreduce", "--max-bytes", "many")
        self.assert_complains(2, "cannot write", "allreduce", "--max-bytes", "8", "--json", "/no/such/folder/file")
        self.assert_complains(2, "float32 has 4 bytes", "allreduce", "--min-bytes", "3", "--max-bytes", "3")
        self.assert_complains(2, "no option '--max-size'; see kolo-bench allreduce --help", "allreduce", "--max-size", "64", "--ranks", "2")
        self.assert_complains(2, "sum of 300 ranks", "allreduce", "--ranks", "300", "--type", "bfloat16")

    def test_a_rank_that_never_comes_is_named(self):
        with tempfile.TemporaryDirectory() as folder:
            job = {"RANK": "0", "WORLD_SIZE": "2", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "2", "KOLO_STORE": f"file:{folder}/store"}
            done = subprocess.run([BENCH, "allreduce", "--timeout", "0.2"], capture_output=True, text=True, timeout=PATIENCE_S,
                                  check=False, env={**os.environ, **job})
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("rank 1 of 2 to join the benchmark", done.stderr)

    def test_ranks_that_contradict_the_launcher_are_refused(self):
        done = subprocess.run([BENCH, "allreduce", "--ranks", "3"], capture_output=True, text=True, timeout=PATIENCE_S, check=False,
                              env={**os.environ, "RANK": "0", "WORLD_SIZE": "2", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "2"})
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("--ranks 3 contradicts the launcher, which started 2", done.stderr)

    def test_a_killed_rank_ends_the_run_and_is_named(self):
        process = subprocess.Popen([BENCH, "allreduce", "--max-bytes", "8", "--iterations", "100000000", "--passes", "100",
                                    "--transport", "shm"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for line in process.stdout:
            if "bytes" in line:
                break  # it runs
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        victim = next(child for child in children if b"RANK=1\0" in Path(f"/proc/{child}/environ").read_bytes())
        os.kill(int(victim), signal.SIGKILL)
        _, errors = process.communicate(timeout=PATIENCE_S)
        self.assertEqual(process.returncode, 128 + signal.SIGKILL)
        self.assertIn("rank 1 was killed by signal 9 (Killed)", errors)


class Others(unittest.TestCase):
    def test_limits_are_measured_and_the_floors_add_up(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "limits.jsonl"
            code, output, errors = run("limits", "--quick", "--json", str(path))
            self.assertEqual(code, 0, errors)
            lines = [json.loads(line) for line in path.read_text().splitlines()]
        for what in ("memory L2", "memory DRAM", "tcp round trip"):
            self.assertIn(what, output)
        floors = [line for line in lines if line.get("library") == "floor"]
        if os.cpu_count() > 1:
            self.assertTrue(any(line["transport"] == "shm" and line["wrong"] == 0 for line in floors))
        for line in lines:
            self.assertGreater(line["median_us"], 0)

    def test_plots_are_drawn_from_json_lines(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "lines.jsonl"
            self.assertEqual(run("allreduce", "--max-bytes", "2K", *FEW, "--json", str(path))[0], 0)
            code, _, errors = run("plot", str(path), "--out", str(Path(folder) / "plots"))
            if "matplotlib is missing" in errors:
                self.skipTest("matplotlib is not installed")
            self.assertEqual(code, 0, errors)
            names = sorted(entry.name for entry in (Path(folder) / "plots").iterdir())
            self.assertIn("allreduce_2_ranks_time.png", names)
            self.assertIn("allreduce_2_ranks_bandwidth.svg", names)

    def test_a_file_that_is_no_json_is_named(self):
        code, _, errors = run("plot", __file__, "--out", "/tmp")
        self.assertNotEqual(code, 0)
        self.assertIn(Path(__file__).name, errors)


if __name__ == "__main__":
    BENCH = sys.argv.pop(1)
    unittest.main(verbosity=2)
