#!/usr/bin/env python3
"""The Python package with ranks as processes: the example, interrupts, killed ranks, forks, and stores."""

import os
import signal
import subprocess
import sys
import time
import unittest
from pathlib import Path

import kolo
from ranks import PATIENCE_S, Processes

EXAMPLE = Path(__file__).parents[3] / "collectives/python/examples/all_reduce.py"


def wait_for_clients(port, count):
    """Waits until so many connections to a port of this host exist."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        lines = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()]
        if sum(words[2].endswith(f":{port:04X}") and words[3] == "01" for words in lines) >= count:
            return
        time.sleep(0.01)
    raise TimeoutError(f"no {count} clients of port {port}")


class Example(unittest.TestCase):
    def test_the_example_has_fewer_than_15_lines_and_averages(self):
        self.assertLess(len(EXAMPLE.read_text().splitlines()), 15)
        with kolo.TcpStoreServer("127.0.0.1", 0, 2) as server:
            ranks = [
                subprocess.Popen([sys.executable, EXAMPLE], stdout=subprocess.PIPE, text=True,
                                 env={**os.environ, "RANK": str(rank), "WORLD_SIZE": "2", "LOCAL_RANK": str(rank),
                                      "KOLO_STORE": f"tcp://127.0.0.1:{server.port}"})
                for rank in range(2)
            ]
            for rank, process in enumerate(ranks):
                self.assertEqual(process.communicate(timeout=PATIENCE_S)[0], f"rank {rank} of 2: 0.5\n")


class Interrupts(unittest.TestCase):
    def test_keyboard_interrupt_ends_a_blocking_call_and_then_the_job(self):
        body = """
with world:
    if world.rank == 0:
        print("waits", flush=True)
        world.all_reduce(numpy.ones(10))
    else:
        sys.stdin.readline()
        world.barrier()
"""
        with Processes(2, body) as ranks:
            ranks.wait_for(0, "waits")
            ranks.ranks[0].send_signal(signal.SIGINT)
            code, _, err = ranks.end(0)
            self.assertEqual(code, -signal.SIGINT, err)
            self.assertIn("KeyboardInterrupt", err)
            code, _, err = ranks.end(1)
            self.assertRegex(err, r"kolo\.Aborted: rank 0 .*KeyboardInterrupt")

    def test_an_operation_goes_on_after_an_interrupt(self):
        body = """
data = numpy.ones(10)
if world.rank == 0:
    try:
        print("waits", flush=True)
        world.all_reduce(data)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
        if not world.progress():  # the signal came before the call
            world.all_reduce_async(data)
else:
    sys.stdin.readline()
    world.all_reduce(data)
world.barrier()
print(data.sum())
world.close()
"""
        with Processes(2, body) as ranks:
            ranks.wait_for(0, "waits")
            ranks.ranks[0].send_signal(signal.SIGINT)
            ranks.wait_for(0, "interrupted")
            ranks.ranks[1].stdin.write("\n")
            ranks.ranks[1].stdin.flush()
            self.assertEqual([ranks.end(rank)[1] for rank in (0, 1)], ["20.0\n"] * 2)

    def test_keyboard_interrupt_ends_the_start(self):
        start = """
import sys, kolo
store = kolo.LocalStore()
print("waits", flush=True)
kolo.init(rank=0, size=2, store=store)
"""
        with Processes(1, "", start) as ranks:
            ranks.wait_for(0, "waits")
            ranks.ranks[0].send_signal(signal.SIGINT)
            code, _, err = ranks.end(0)
            self.assertEqual(code, -signal.SIGINT, err)

    def test_keyboard_interrupt_ends_the_start_while_no_store_can_be_reached(self):
        with kolo.TcpStoreServer("127.0.0.1") as server:
            port = server.port
        start = f"""
import os, kolo
os.environ.update(RANK="1", WORLD_SIZE="2", LOCAL_RANK="1", KOLO_STORE="tcp://127.0.0.1:{port}")
print("waits", flush=True)
kolo.init(timeout=1000)
"""
        with Processes(1, "", start) as ranks:
            ranks.wait_for(0, "waits")
            ranks.ranks[0].send_signal(signal.SIGINT)
            code, _, err = ranks.end(0)  # within PATIENCE_S
            self.assertEqual(code, -signal.SIGINT, err)

    def test_an_interrupt_of_the_start_under_a_launcher_ends_the_start_of_all_ranks(self):
        with kolo.TcpStoreServer("127.0.0.1", 0, 3) as server:
            start = f"""
import os, sys, kolo
os.environ.update(RANK=sys.argv[1], WORLD_SIZE="3", LOCAL_RANK="0", KOLO_STORE="tcp://127.0.0.1:{server.port}")
kolo.init()
"""
            with Processes(2, "", start) as ranks:
                wait_for_clients(server.port, 2)
                ranks.ranks[0].send_signal(signal.SIGINT)
                self.assertIn("KeyboardInterrupt", ranks.end(0)[2])
                self.assertIn("rank 0: interrupted by a signal", ranks.end(1)[2])


class Losses(unittest.TestCase):
    def test_a_killed_rank_is_named(self):
        body = """
if world.rank == 1:
    os.kill(os.getpid(), signal.SIGKILL)
try:
    world.all_reduce(numpy.ones(10))
except kolo.PeerLost as failure:
    print(failure.code, failure.peer)
"""
        with Processes(3, body) as ranks:
            self.assertEqual([ranks.end(rank)[1] for rank in (0, 2)], ["peer lost 1\n"] * 2)

    def test_a_child_of_fork_is_refused_and_its_end_disturbs_no_rank(self):
        body = """
child = os.fork()
if child == 0:
    try:
        world.barrier()
    except ValueError as failure:
        print("child:", "fork" in str(failure), flush=True)
    sys.exit(0)
os.waitpid(child, 0)
print(world.all_reduce(numpy.ones(1)), flush=True)
"""
        with Processes(2, body, options="progress_thread=True") as ranks:
            for rank in (0, 1):
                code, out, err = ranks.end(rank)
                self.assertEqual((code, out), (0, "child: True\n[2.]\n"), err)

    def test_a_program_may_end_without_closing(self):
        body = """
work = world.all_reduce_async(numpy.ones(1))
work.when_done(lambda failure: None)
work.wait()
"""
        with Processes(2, body, options="progress_thread=True") as ranks:
            for rank in (0, 1):
                self.assertEqual(ranks.end(rank), (0, "", ""))


class Stores(unittest.TestCase):
    def test_a_store_of_functions_and_a_store_by_all_gather(self):
        values, counters = {}, {}

        def add(key, delta):
            counters[key] = counters.get(key, 0) + delta
            return counters[key]

        store = kolo.KeyValueStore(values.__setitem__, values.get, add, lambda key: values.pop(key, None))
        with kolo.init(rank=0, size=1, store=store) as world:
            self.assertEqual(world.all_gather_object(7), [7])
        gathered = kolo.AllGatherStore(0, 1, lambda mine: [mine])
        with kolo.init(rank=0, size=1, store=gathered) as world:
            world.barrier()
        with self.assertRaisesRegex(RuntimeError, "ZeroDivisionError"):
            kolo.init(rank=0, size=1, store=kolo.KeyValueStore(lambda *_: 1 / 0, values.get, add), timeout=1)

    def test_a_server_that_is_not_there_is_named(self):
        with kolo.TcpStoreServer("127.0.0.1") as server:
            port = server.port
            kolo.TcpStore("127.0.0.1", port)
        with self.assertRaisesRegex(kolo.DeadlineExceeded, f"127.0.0.1:{port}"):
            kolo.TcpStore("127.0.0.1", port, timeout=0.1)


if __name__ == "__main__":
    unittest.main()
