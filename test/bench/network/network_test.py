#!/usr/bin/env python3
"""bench/network: two hosts simulated on one machine, and the share of their network that kolo-bench reaches.

  network_test.py KOLO_BENCH [test...]
"""

import json
import os
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest
import unittest.mock
from pathlib import Path

BENCH = ""
PATIENCE_S = 600
FOLDER = Path(__file__).resolve().parents[3] / "bench/network"
LINK, SWEEP = FOLDER / "link.py", FOLDER / "sweep.py"
FEW = ["--iterations", "2", "--passes", "1", "--warmup", "1", "--timeout", "200"]
sys.path.insert(0, str(FOLDER))
import link  # noqa: E402

MILLISECOND = 1_000_000


def run(*words):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    return done.returncode, done.stdout, done.stderr


def bundle(length, kind=0, headers=0, payload=0):
    return struct.pack("<BBHHHH", 0, kind, headers, payload, 0, 0) + bytes(length)


class Arithmetic(unittest.TestCase):
    """The arithmetic of one direction of the link, without real time."""

    def way(self, rate, delay_ms, queue):
        return link.Way(-1, -1, rate, delay_ms * MILLISECOND, queue)

    def test_bundles_leave_at_the_rate_and_arrive_after_the_delay(self):
        way = self.way(1_000_000, 10, 10_000)  # 1000 bytes take 1 ms
        for _ in range(3):
            way.admit(bundle(1000), 0)
        way.admit(bundle(500), 20 * MILLISECOND)
        self.assertEqual([due / MILLISECOND for due, _ in way.under_way], [11, 12, 13, 30.5])

    def test_packets_beyond_the_queue_are_dropped(self):
        way = self.way(1_000_000, 0, 2000)
        for _ in range(5):
            way.admit(bundle(1000), 0)
        self.assertEqual((len(way.under_way), way.dropped), (3, 2))  # one on the wire, two in the queue
        way.admit(bundle(1000), 1 * MILLISECOND)
        self.assertEqual((len(way.under_way), way.dropped), (4, 2))

    def test_every_packet_of_a_bundle_counts_its_headers(self):
        self.assertEqual(link.wire_bytes(bundle(60)), 60)
        self.assertEqual(link.wire_bytes(bundle(52 + 3 * 1448, kind=1, headers=52, payload=1448)), 3 * 1500)
        self.assertEqual(link.wire_bytes(bundle(52 + 2 * 1448 + 1, kind=1, headers=52, payload=1448)), 2 * 1500 + 53)

    def test_without_a_rate_no_packet_waits_or_is_dropped(self):
        way = self.way(0, 5, 0)
        for _ in range(100):
            way.admit(bundle(65000), 7)
        self.assertEqual({due for due, _ in way.under_way}, {5 * MILLISECOND + 7})
        self.assertEqual(way.dropped, 0)

    def test_a_network_has_one_name_for_all_spellings(self):
        for rate, delay, more, name in (("1Gbit", "10ms", {}, "1Gbit,10ms"), ("1000Mbit", "10000us", {}, "1Gbit,10ms"),
                                        ("1.5Mbit", "1500us", {"bottleneck": "host"}, "1.5Mbit,1.5ms,bottleneck host"),
                                        ("100Mbit", "0ms", {"queue_bytes": 512 << 10}, "100Mbit,0ms,queue 512K")):
            with self.subTest(name=name):
                self.assertEqual(link.name_of(link.rate(rate), link.delay(delay), **more), name)
        self.assertEqual(link.name_of(0, 0), "any rate,0ms")

    def test_quantities_have_units(self):
        self.assertEqual((link.rate("1.5Gbit"), link.delay("20ms"), link.size("2MiB")), (187_500_000, 20_000_000, 2 << 20))
        for call, wrong in ((link.rate, "1"), (link.rate, "1Gbps"), (link.delay, "-1ms"), (link.size, "1..5MiB"), (link.size, "")):
            with self.assertRaisesRegex(Exception, f"'{wrong}' is not a .*expected a number and one of"):
                call(wrong)


class Network(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        code, _, errors = run(LINK, "--", "true")
        if code == 2:
            print(f"skipped: {errors.strip()}")  # for ctest, which counts skipped tests
            raise unittest.SkipTest(errors.strip())
        assert code == 0, errors
        # Ranks that wait for a slow network sleep, and leave the cores to other tests.
        waiting = unittest.mock.patch.dict(os.environ, KOLO_WAIT="block")
        waiting.start()
        cls.addClassCleanup(waiting.stop)

    def rows_over(self, *words, delay, rate="1Gbit", bottleneck="router", transport="tcp"):
        """The rows of a benchmark over the link: all results are right, each row names the network and has no loopback limit."""
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "rows"
            code, _, errors = run(LINK, "--rate", rate, "--delay", delay, "--bottleneck", bottleneck, "--", BENCH, *words,
                                  "--transport", transport, *FEW, "--json", file)
            self.assertEqual(code, 0, errors)
            rows = [json.loads(line) for line in file.read_text().splitlines()]
        self.assertTrue(rows)
        self.assertEqual({row["wrong"] for row in rows}, {0})
        network = f"{rate},{delay}" + (",bottleneck host" if bottleneck == "host" else "")
        self.assertEqual({(row["network"], row["limit_us"]) for row in rows}, {(network, None)})
        return rows

    def test_no_byte_arrives_too_early(self):
        for bottleneck in ("router", "host"):
            with self.subTest(bottleneck=bottleneck):
                rows = self.rows_over("p2p", "latency", "--window", "1", "--bytes", "8", delay="20ms", bottleneck=bottleneck)
                self.assertGreaterEqual(min(row["p10_us"] for row in rows), 20_000)
        size = 1 << 20
        rows = self.rows_over("p2p", "bandwidth", "--window", "1", "--min-bytes", size, "--max-bytes", size, delay="1ms", rate="50Mbit")
        self.assertGreaterEqual(min(row["p10_us"] for row in rows), 2000 + size * 8 / 50)

    def test_ofi_connects_two_hosts(self):  # UCX looks for its devices in /sys, which is the machine's
        _, there, _ = run(BENCH, "transports")
        about = next((line for line in there.splitlines() if line.startswith("ofi:")), "cannot be used here")
        if "cannot be used here" in about:
            self.skipTest("skipped: no ofi")
        with unittest.mock.patch.dict(os.environ, KOLO_OFI_PROVIDER="tcp"):
            rows = self.rows_over("allreduce", "--bytes", "8,512K", delay="1ms", transport="ofi")
        self.assertEqual({row["transport"] for row in rows}, {"ofi"})

    def test_lanes_and_a_full_queue_lose_no_data(self):
        os.environ["KOLO_TCP_LANES"] = "3"
        self.addCleanup(os.environ.pop, "KOLO_TCP_LANES")
        self.rows_over("allreduce", "--bytes", "2M", delay="2ms", rate="200Mbit")

    def test_the_exit_code_is_the_worse_of_the_ranks(self):
        self.assertEqual(run(LINK, "--", "sh", "-c", "exit $((RANK * 5))")[0], 5)
        self.assertEqual(run(LINK, "--", "sh", "-c", "kill -KILL $$")[0], 137)

    def test_no_process_is_left_however_it_ends(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGKILL):
            with self.subTest(signal=number.name):
                job = subprocess.Popen([LINK, "--", "sh", "-c", "echo $$; exec sleep 1000"], stdout=subprocess.PIPE,
                                       stderr=subprocess.DEVNULL, text=True)
                ranks = [int(job.stdout.readline()) for _ in range(2)]
                job.send_signal(number)
                self.assertIn(job.wait(PATIENCE_S), (128 + number, -number))
                self.assertEqual(job.stdout.read(), "")  # read() returns when both ranks have ended
                job.stdout.close()
                deadline = time.monotonic() + PATIENCE_S
                while any(Path(f"/proc/{rank}/ns/net").exists() for rank in ranks):
                    self.assertLess(time.monotonic(), deadline)
                    os.sched_yield()

    def test_invalid_arguments_are_refused(self):
        for words, why in ((["--rate", "fast"], "'fast' is not a rate"), ([], "no command"), (["--", "no-such-program"], "no-such-program")):
            code, _, errors = run(LINK, *words)
            self.assertEqual(code, 2)
            self.assertIn(why, errors.splitlines()[-1])

    def test_a_sweep_prints_a_table_of_shares(self):
        with tempfile.TemporaryDirectory() as folder:
            for way, size, words in (("link", "64K", ["--games", "raw,message,stream,both,allreduce"]),
                                     ("link", "256K", ["--bottleneck", "host", "--lanes", "2", "--games", "message,allreduce"]),
                                     ("shape", "64K", ["--transports", "shm"])):
                with self.subTest(by=way, words=words):
                    file = Path(folder) / "rows"
                    code, output, errors = run(SWEEP, "--by", way, "--networks", "100Mbit,5ms", "--sizes", size, "--iterations", "2",
                                               "--seconds", "100", "--bench", BENCH, "--json", file, *words)
                    self.assertEqual(code, 0, errors)
                    rows = [json.loads(line) for line in file.read_text().splitlines()]
                    self.assertIn("message", {row["game"] for row in rows})
                    self.assertEqual(len(output.splitlines()), 2 + len(rows))
                    for row in rows:
                        self.assertIn(row["wrong"], (0, None))
                        self.assertGreater(row["share"], 0)
                        self.assertLess(row["share"], 1.001)


if __name__ == "__main__":
    BENCH = sys.argv.pop(1)
    unittest.main()
