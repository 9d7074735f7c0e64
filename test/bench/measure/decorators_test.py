#!/usr/bin/env python3
"""kolo-bench with decorators: a simulated network, injected faults, and traces.

  decorators_test.py KOLO_BENCH [test...]
"""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

BENCH = ""
PATIENCE_S = 240
FEW = ["--iterations", "2", "--passes", "1", "--warmup", "1", "--max-bytes", "64K", "--factor", "64"]


def run(*words, **environment):
    done = subprocess.run([BENCH, *words], capture_output=True, text=True, timeout=PATIENCE_S, check=False,
                          env={**os.environ, **environment})
    return done.returncode, done.stdout, done.stderr


class Decorators(unittest.TestCase):
    def lines_of(self, *words, **environment):
        code, output, errors = run(*words, *FEW, "--json", "-", **environment)
        self.assertEqual(code, 0, errors)
        lines = [json.loads(line) for line in output.splitlines()]
        self.assertTrue(lines)
        self.assertEqual({line["wrong"] for line in lines}, {0})
        return lines

    def test_results_name_their_network(self):
        for transport in ("inproc", "shm", "tcp"):
            with self.subTest(transport=transport):
                lines = self.lines_of("broadcast", "--transport", transport, "--shape", "1Gbit,1ms")
                self.assertEqual({line["transport"] for line in lines}, {f"{transport},1Gbit,1ms"})
        lines = self.lines_of("allreduce", "--transport", "tcp", "--ranks", "3", KOLO_SHAPE="10Gbit,50us+0-1:off")
        self.assertEqual({line["transport"] for line in lines}, {"tcp,10Gbit,50us+0-1:off"})

    def test_two_ranks_may_have_a_longer_delay(self):
        lines = self.lines_of("p2p", "latency", "--transport", "shm", "--shape", "2ms")
        self.assertEqual({line["transport"] for line in lines}, {"shm,2ms"})
        self.assertGreaterEqual(min(line["p10_us"] for line in lines), 2000)

    def test_every_algorithm_survives_a_fault_storm(self):
        for collective in ("allreduce", "broadcast", "alltoall", "reduce_scatter"):
            with self.subTest(collective=collective):
                lines = self.lines_of(collective, "--transport", "inproc", "--ranks", "3", "--algorithm", "all",
                                      "--fault", "storm@times=3,seed=11")
                self.assertGreater(len({line["algorithm"] for line in lines}), 1)

    def test_an_injected_death_is_reported_by_the_others(self):
        code, _, errors = run("allreduce", "--transport", "tcp", "--ranks", "3", "--fault", "die@rank=1,segment=20", *FEW)
        self.assertNotEqual(code, 0)
        self.assertIn("rank 1", errors)

    def test_a_trace_is_json_for_each_rank(self):
        with tempfile.TemporaryDirectory() as folder:
            self.lines_of("allreduce", "--transport", "shm", "--trace", str(Path(folder) / "run"))
            files = sorted(Path(folder).iterdir())
            self.assertEqual([file.name for file in files if "-rank0.json" in file.name], ["run-rank0.json"])
            self.assertTrue(any(file.name == "run-rank1.json" for file in files))
            for file in files:
                events = json.loads(file.read_text())
                self.assertTrue([event for event in events if event["ph"] == "X"])

    def test_invalid_decorators_are_refused_once(self):
        for flag, wrong, why in (("--shape", "1Gbps", "'1Gbps' is neither a rate"), ("--fault", "explode", "is none of die")):
            code, _, errors = run("allreduce", flag, wrong, *FEW)
            self.assertEqual((code, errors.count("\n")), (2, 1), errors)
            self.assertTrue(errors.startswith(f"kolo-bench: {flag} {wrong}: "), errors)
            self.assertIn(why, errors)
        code, _, errors = run("allreduce", "--transport", "tcp", "--shape", "1ms+0-7:off", *FEW)
        self.assertEqual((code, errors), (2, "kolo-bench: --shape 1ms+0-7:off: there is no rank 7: this job has 2\n"))


if __name__ == "__main__":
    BENCH = sys.argv.pop(1)
    unittest.main()
