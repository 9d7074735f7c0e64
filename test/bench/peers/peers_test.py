#!/usr/bin/env python3
"""kolo-bench beside its peers: each installed peer runs in turn with kolo on the same buffers. Faulty peers must be detected.

  peers_test.py KOLO_BENCH [test...]
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

BENCH = ""
PATIENCE_S = 240
FEW = ["--iterations", "2", "--passes", "2", "--warmup", "1", "--timeout", "120"]
SMALL = ["--bytes", "12,4000"]  # 3 and 1000 elements: equal and unequal chunks of 2 and of 3 ranks
COLLECTIVES = ["allreduce", "broadcast", "reduce_scatter", "allgather", "barrier", "reduce", "gather", "scatter", "alltoall",
               "scan", "exclusive_scan"]
MESSAGES = ["latency", "bandwidth", "bidirectional", "message-rate"]
GLOO_LACKS = ("reduce_scatter", "scan", "exclusive_scan")
WRONG_RESULTS = 3


def run(*words, **environment):
    done = subprocess.run([BENCH, *words], capture_output=True, text=True, timeout=PATIENCE_S, check=False,
                          env={**os.environ, **environment})
    return done.returncode, done.stdout, done.stderr


def processes_of(name):
    """The processes that run this build's program of that name."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and Path(os.readlink(entry / "exe")) == worker(name):
                found.append(int(entry.name))
        except OSError:
            continue  # it has ended, or is a kernel thread
    return found


def worker(name):
    return (Path(BENCH).resolve().parent / "../libexec/kolo" / name).resolve()


class Peer(unittest.TestCase):
    name = ""

    def setUp(self):
        errors = run("allreduce", "--max-bytes", "8", "--against", self.name + ":no such thing")[2]
        if "not among the peers" in errors:
            self.skipTest(f"{self.name} is not in this build")

    def lines_of(self, *words, code=0, **environment):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "lines.jsonl"
            found, output, errors = run(*words, *FEW, "--json", str(path), **environment)
            self.assertEqual(found, code, output + errors)
            return [json.loads(line) for line in path.read_text().splitlines()], output

    def check(self, collective, transport, ranks, *more, lacks=()):
        sizes = [] if collective == "barrier" else SMALL
        lines, output = self.lines_of(collective, "--ranks", str(ranks), "--transport", transport, *sizes, "--against", self.name,
                                      *more)
        self.assertTrue(all(line["wrong"] == 0 for line in lines), output)
        mine = [line for line in lines if line["library"] == self.name]
        self.assertEqual(bool(mine), collective not in lacks, output)
        for line in mine:
            self.assertEqual((line["collective"], line["ranks"]), (collective, ranks))
            self.assertGreater(line["first_us"], 0)
            self.assertGreaterEqual(line["p99_us"], line["p90_us"])
        return lines, output

    def check_messages(self, transport, over, *kinds):
        """Messages between two ranks, over the peer's own transport."""
        for kind in kinds:
            with self.subTest(kind=kind, transport=transport):
                window = ["--window", "8"] if kind in ("bidirectional", "message-rate") else []  # else 64 messages, and 16 of latency
                lines, output = self.lines_of("p2p", kind, "--transport", transport, "--bytes", "1,300,70K", *window,
                                              "--against", self.name)
                self.assertEqual([(line["library"], line["bytes"]) for line in lines],
                                 [(name, size) for size in (1, 300, 71680) for name in ("kolo", self.name)], output)
                for own, peer in zip(lines[::2], lines[1::2]):
                    self.assertEqual((own["wrong"], peer["wrong"]), (0, 0), output)
                    self.assertEqual((own["transport"], peer["transport"]), (transport, over))
                    self.assertEqual((own["algorithm"], peer["algorithm"]), ("messages", "messages"))
                    self.assertEqual((own["window"], peer["window"], peer["peer"]), (own["window"], own["window"], self.name))
                    self.assertNotIn("peer", own)
                self.assertIn("ratio", output)
                self.assertIn(lines[1]["version"], output)


class MpiPeer:
    """Tests of every MPI."""

    def test_every_collective_is_right_beside_shm(self):
        types = {"allreduce": ["--type=float64", "--op=min"], "reduce": ["--type=int8", "--op=bit_or"], "broadcast": ["--type=bfloat16"]}
        for collective in COLLECTIVES:
            with self.subTest(collective=collective):
                lines, _ = self.check(collective, "shm", 2, *types.get(collective, []))
                mine = [line for line in lines if line["library"] == self.name]
                self.assertEqual(len(mine), 1 if collective == "barrier" else 2)
                self.assertEqual({line["transport"] for line in mine}, {"shm"})

    def test_out_of_place_buffers_and_more_ranks_than_cores_are_right(self):
        for collective in ("reduce_scatter", "allgather", "gather", "scatter", "exclusive_scan"):
            with self.subTest(collective=collective):
                self.check(collective, "shm", 3, "--out-of-place")

    def test_an_mpi_without_a_sum_of_bfloat16_is_left_out(self):
        _, output = self.check("allreduce", "shm", 2, "--type=bfloat16", lacks=("allreduce",))
        self.assertEqual(output.count(f"{self.name} left out: no sum of bfloat16"), 1)

    def test_mpi_runs_over_tcp_beside_tcp_and_over_shared_memory_beside_threads(self):
        lines, _ = self.check("allreduce", "tcp", 2)
        self.assertEqual({line["transport"] for line in lines}, {"tcp"})
        lines, _ = self.check("allreduce", "inproc", 2)
        self.assertEqual({line["transport"] for line in lines}, {"inproc", "shm"})

    def test_messages_of_two_ranks_work_too(self):
        self.check_messages("shm", "shm", *MESSAGES)
        self.check_messages("tcp", "tcp", "bidirectional")

    def test_wrong_results_of_a_faulty_mpi_are_detected(self):
        liar = Path(BENCH).resolve().parent / f"../test/lying/lying_{self.name}.so"
        if not liar.exists():
            self.skipTest(f"{liar.name} was not built")
        for collective in ("allreduce", "barrier"):
            sizes = [] if collective == "barrier" else ["--max-bytes", "8"]
            lines, output = self.lines_of(collective, "--transport", "shm", *sizes, "--against", self.name, code=WRONG_RESULTS,
                                          LD_PRELOAD=str(liar.resolve()))
            wrong = {line["library"]: line["wrong"] for line in lines}
            self.assertEqual(wrong["kolo"], 0)
            self.assertGreater(wrong[self.name], 0)
            self.assertIn(f"# {self.name}: {wrong[self.name]} elements are wrong", output)

    def test_a_dead_worker_process_ends_the_job_with_one_line(self):
        program = f"kolo-bench-{self.name}"
        before = set(processes_of(program))
        bench = subprocess.Popen([BENCH, "allreduce", "--transport", "shm", "--max-bytes", "8", "--against", self.name,
                                  "--iterations", "1600000", "--passes", "100", "--no-check", "--timeout", "120"],
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        mine = set()
        deadline = time.monotonic() + PATIENCE_S
        try:
            while len(mine) < 2 and time.monotonic() < deadline and bench.poll() is None:
                mine = set(processes_of(program)) - before
            self.assertEqual(len(mine), 2)
            os.kill(min(mine), signal.SIGKILL)
            _, errors = bench.communicate(timeout=PATIENCE_S)
        finally:
            bench.kill()
            bench.wait()
        self.assertEqual((bench.returncode, len(errors.splitlines())), (1, 1), errors)
        self.assertIn(self.name, errors)
        while mine & set(processes_of(program)):
            self.assertLess(time.monotonic(), deadline, "processes are left")


class Openmpi(MpiPeer, Peer):
    name = "openmpi"

    def test_openmpi_runs_over_ucx_and_by_a_ring_too(self):
        lines, output = self.lines_of("allreduce", "--transport", "tcp", "--max-bytes", "8", "--against",
                                      "openmpi,openmpi:ucx,openmpi:ring")
        self.assertEqual([(line["peer"], line["library"], line["algorithm"], line["wrong"]) for line in lines[1:]],
                         [("openmpi", "openmpi", "default", 0), ("openmpi:ucx", "openmpi:ucx", "default", 0),
                          ("openmpi:ring", "openmpi", "ring", 0)])
        self.assertNotIn("peer", lines[0])
        self.assertIn("best peer", output)


class Mpich(MpiPeer, Peer):
    name = "mpich"

    def check(self, collective, transport, ranks, *more, lacks=()):
        lines, output = super().check(collective, transport, ranks, *more, lacks=lacks)
        if collective not in lacks:
            self.check_warning(output, ranks)
        return lines, output

    def check_warning(self, output, ranks):
        self.assertEqual("a waiting rank keeps its core" in output, ranks > len(os.sched_getaffinity(0)), output)

    def test_the_table_warns_about_more_ranks_than_cores(self):
        ranks = len(os.sched_getaffinity(0)) + 1
        _, output = self.lines_of("allreduce", "--ranks", str(ranks), "--transport", "shm", "--max-bytes", "8", "--against", "mpich")
        self.check_warning(output, ranks)


class Gloo(Peer):
    name = "gloo"

    def test_every_collective_is_right(self):
        for collective in COLLECTIVES:
            with self.subTest(collective=collective):
                self.check(collective, "tcp", 2, lacks=GLOO_LACKS)
        for collective in ("reduce", "gather", "scatter", "alltoall"):
            with self.subTest(collective=collective):
                self.check(collective, "shm", 3, "--out-of-place")

    def test_messages_of_two_ranks_work_too(self):
        self.check_messages("tcp", "tcp", *MESSAGES)
        self.check_messages("shm", "tcp", "bidirectional")

    def test_the_peers_share_a_table_with_the_limit(self):
        others = [name for name in ("openmpi", "mpich")
                  if "not among" not in run("allreduce", "--max-bytes", "8", "--against", name + ":no such thing")[2]]
        if not others:
            self.skipTest("no MPI is in this build")
        lines, output = self.lines_of("allreduce", "--ranks", "2", "--transport", "shm", "--max-bytes", "128", "--factor", "16",
                                      "--against", ",".join([*others, "gloo"]))
        self.assertEqual([line["library"] for line in lines], ["kolo", *others, "gloo"] * 2)
        for word in [*others, "gloo", "ratio", "of limit", "best peer", "p99", "first"]:
            self.assertIn(word, output)
        if os.cpu_count() > 1:
            # None if other programs had the cores; measure_test.cpp tests when that is so.
            self.assertTrue(all(line["limit_us"] is None or line["limit_us"] > 0 for line in lines))


class Absent(unittest.TestCase):
    def test_an_unknown_peer_is_refused_before_ranks_start(self):
        code, output, errors = run("allreduce", "--against", "nobody")
        self.assertEqual((code, output, len(errors.splitlines())), (2, "", 1), errors)
        self.assertIn("nobody is not among the peers", errors)
        code, output, errors = run("p2p", "latency", "--against", "nobody")
        self.assertEqual((code, output, len(errors.splitlines())), (2, "", 1), errors)
        self.assertIn("nobody is not among the peers", errors)
        code, _, errors = run("p2p", "latency", "--against", "gloo", "--max-bytes", "2G")
        self.assertEqual(code, 2, errors)
        code, _, errors = run("allreduce", "--against", "gloo,")
        self.assertEqual(code, 2, errors)

    def test_rows_name_the_run(self):
        code, output, errors = run("allreduce", "--max-bytes", "8", *FEW, "--json", "-", "--transport", "inproc", KOLO_SPIN_US="1234")
        self.assertEqual(code, 0, errors)
        row = json.loads(output)
        self.assertEqual(list(row["run"]), ["machine", "cores", "kernel", "compiler", "kolo", "commit", "command", "environment", "date"])
        self.assertTrue(row["run"]["command"].startswith("kolo-bench allreduce --max-bytes 8"), row["run"])
        self.assertTrue(all(value for name, value in row["run"].items() if name != "environment"), row["run"])
        environment = {name: value for name, value in row["run"]["environment"].items() if name != "KOLO_TEST_DATA"}
        self.assertEqual(environment, {"KOLO_SPIN_US": "1234"})
        self.assertIsNone(row["limit_us"])

    def test_all_transports_run_in_turn(self):
        code, output, errors = run("barrier", "--transport", "all", *FEW, "--json", "-")
        self.assertEqual(code, 0, errors)
        self.assertLessEqual({"inproc", "shm", "tcp"}, {json.loads(line)["transport"] for line in output.splitlines()})
        code, output, errors = run("p2p", "latency", "--transport", "all", "--max-bytes", "8", *FEW, "--json", "-")
        self.assertEqual(code, 0, errors)
        self.assertLessEqual({"inproc", "shm", "tcp"}, {json.loads(line)["transport"] for line in output.splitlines()})
        code, _, errors = run("barrier", "--transport", "all", RANK="0", WORLD_SIZE="2", LOCAL_RANK="0", LOCAL_WORLD_SIZE="2")
        self.assertEqual(code, 2)
        self.assertIn("without a launcher", errors)


if __name__ == "__main__":
    BENCH = sys.argv.pop(1)
    unittest.main(verbosity=2)
