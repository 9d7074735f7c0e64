#!/usr/bin/env python3
"""Cost of unwanted connections for a running job: kolo-bench over tcp with and without them.

  unwanted_connections.py [--bin build/release/bin] [--rounds 5] [--kinds scan,garbage,slow,crowd] [--rate 500]

The job has 4 ranks under kolo-run and runs ring all-reduces. Ranks 0 and 2, and 1 and 3, never connect, so every rank listens to
the end, and so does the launcher's store. Its listening sockets are found in /proc. Connections come at most `rate` a second:

| kind | what it does |
|---|---|
| scan | connects and resets, as a port scan |
| garbage | connects, sends 4 KiB that are not a handshake, and stays until it is closed; 256 at a time |
| slow | sends the start of a valid handshake, a byte every 100 ms; 200 at a time; reconnects when closed |
| crowd | a thousand at once that send nothing and stay; each reconnects when closed |

Each round has three runs, in rotated order. `none`: no unwanted connections. `elsewhere`: the same connections to another process,
which accepts and closes them; this is their cost for the machine, since they need a core. `at the job`: connections to the job's
own listeners. The table has the median over the rounds of the job's medians, and the ratios by round: the first is the machine's
cost, the last is kolo's. Fails if a job failed.
"""

import argparse
import ctypes
import json
import multiprocessing
import os
import random
import resource
import selectors
import signal
import socket
import statistics
import struct
import subprocess
import sys
import time
from pathlib import Path

KINDS = ("scan", "garbage", "slow", "crowd")
PLACES = ("none", "elsewhere", "at the job")
MOST = {"scan": 1, "garbage": 256, "slow": 200, "crowd": 1000}
RANKS = 4
LISTENERS = RANKS + 1  # and the store's listener
HELLOS = (b"KOLT" + struct.pack("<I", 3) + bytes(56), b"KOLO" + bytes(28))  # transports/tcp/hello.h, store_wire.h
RESET = struct.pack("ii", 1, 0)
DIE_WITH_PARENT = 1


# --- listeners of the job ------------------------------------------------------------------------------------------------

def listening():
    """{inode: port} of all listening sockets."""
    ports = {}
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in Path(table).read_text().splitlines()[1:]:
            words = line.split()
            if words[3] == "0A":
                ports[words[9]] = int(words[1].rsplit(":", 1)[1], 16)
    return ports


def family(pid):
    """A process and all its descendants."""
    yield pid
    try:
        for task in os.listdir(f"/proc/{pid}/task"):
            for child in Path(f"/proc/{pid}/task/{task}/children").read_text().split():
                yield from family(int(child))
    except OSError:
        return


def ports_of(pid):
    inodes = listening()
    found = set()
    for member in family(pid):
        try:
            for fd in os.listdir(f"/proc/{member}/fd"):
                name = os.readlink(f"/proc/{member}/fd/{fd}")
                if name.startswith("socket:["):
                    found.add(inodes.get(name[8:-1]))
        except OSError:
            continue
    return sorted(found - {None})


# --- unwanted connections -------------------------------------------------------------------------------------------------------------

class UnknownClients:
    """Unwanted connections of one kind, from a process of their own until it is told to stop."""

    def __init__(self, kind, ports, rate):
        self.kind, self.ports, self.rate = kind, ports, rate
        self.selector = selectors.DefaultSelector()
        self.here = {}  # by descriptor, oldest first: the socket, and the sent bytes of a handshake
        self.came = 0
        self.noise = random.Random(1).randbytes(4096)

    def come(self):
        one = socket.socket()
        one.setblocking(False)
        one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)  # otherwise ports run out
        one.connect_ex(("127.0.0.1", self.ports[self.came % len(self.ports)]))
        self.came += 1
        if self.kind == "scan":
            return one.close()
        self.here[one.fileno()] = [one, 0]
        self.selector.register(one, selectors.EVENT_READ)
        if self.kind == "garbage":
            self.say(one, self.noise)

    @staticmethod
    def say(one, words):
        try:
            one.send(words)
        except OSError:
            pass  # not connected yet, or closed

    def go(self, number):
        one, _ = self.here.pop(number)
        self.selector.unregister(one)
        one.close()

    def listen(self, seconds):
        for key, _ in self.selector.select(seconds):
            try:
                is_over = not key.fileobj.recv(4096)
            except BlockingIOError:
                continue
            except OSError:
                is_over = True
            if is_over:
                self.go(key.fd)

    def speak_slowly(self):
        for number, entry in self.here.items():
            hello = HELLOS[number % len(HELLOS)]
            self.say(entry[0], hello[entry[1]:][:1])
            entry[1] += 1

    def run(self, stop, result):
        ctypes.CDLL(None).prctl(DIE_WITH_PARENT, signal.SIGKILL)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        began = spoke = time.monotonic()
        allowed = MOST[self.kind]  # a crowd connects at once, later at the rate
        while not stop.is_set():
            now = time.monotonic()
            due = int((now - began) * self.rate) + (allowed if self.kind == "crowd" else 0) - self.came
            while due > 0 and len(self.here) < allowed:
                self.come()
                due -= 1
            if len(self.here) >= allowed and self.kind == "garbage":
                self.go(next(iter(self.here)))
            if self.kind == "slow" and now - spoke > 0.1:
                self.speak_slowly()
                spoke = now
            self.listen(0.002)
        result.put(self.came)


class Elsewhere:
    """Listeners of a process outside the job; it accepts every connection and closes it."""

    def __init__(self):
        self.listeners = [socket.create_server(("127.0.0.1", 0), backlog=1024) for _ in range(LISTENERS)]
        self.ports = [one.getsockname()[1] for one in self.listeners]
        self.process = multiprocessing.Process(target=self.run, daemon=True)
        self.process.start()

    def run(self):
        ctypes.CDLL(None).prctl(DIE_WITH_PARENT, signal.SIGKILL)
        selector = selectors.DefaultSelector()
        for one in self.listeners:
            selector.register(one, selectors.EVENT_READ)
        while True:
            for key, _ in selector.select():
                try:
                    key.fileobj.accept()[0].close()
                except OSError:
                    pass

    def close(self):
        self.process.kill()
        self.process.join()


# --- the job ---------------------------------------------------------------------------------------------------------------

def start_job(arguments):
    bench = [arguments.bin / "kolo-run", "-n", str(RANKS), arguments.bin / "kolo-bench", "allreduce", "--transport", "tcp",
             "--algorithm", "ring", "--min-bytes", "4K", "--max-bytes", "1M", "--factor", "256", "--passes", "1",
             "--seconds", str(arguments.seconds), "--json", "-"]
    return subprocess.Popen(bench, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)


def wait_for_listeners(job):
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline and job.poll() is None:
        ports = ports_of(job.pid)
        if len(ports) == LISTENERS:
            return ports
        time.sleep(0.01)
    raise SystemExit(f"the job listens at {len(ports_of(job.pid))} ports, not {LISTENERS}: {job.communicate()[1]}")


def rows_of(job, what):
    out, err = job.communicate(timeout=120)
    lines = [line[line.find("{"):] for line in out.splitlines() if "{" in line]
    rows = [json.loads(line) for line in lines]
    if job.returncode != 0 or not rows or any(row["wrong"] for row in rows):
        raise SystemExit(f"the job failed ({job.returncode}), {what}:\n{out}{err}")
    return {row["bytes"]: row["median_us"] for row in rows}


def run_once(arguments, kind, place, elsewhere):
    """The job's medians by size, and the number of unwanted connections."""
    job = start_job(arguments)
    stop, result = multiprocessing.Event(), multiprocessing.Queue()
    unknown_clients = None
    try:
        ports = wait_for_listeners(job)
        if place != "none":
            clients = UnknownClients(kind, ports if place == "at the job" else elsewhere.ports, arguments.rate)
            unknown_clients = multiprocessing.Process(target=clients.run, args=(stop, result), daemon=True)
            unknown_clients.start()
        rows = rows_of(job, f"{kind} {place}")
        stop.set()
        return rows, result.get(timeout=20) if unknown_clients else 0
    finally:
        stop.set()
        if job.poll() is None:
            os.killpg(job.pid, signal.SIGTERM)
            job.wait(20)
        if unknown_clients:
            unknown_clients.join(20)


# --- the table -------------------------------------------------------------------------------------------------------------

def spread(ratios):
    return f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"


def print_kind(kind, rounds, came):
    for size in sorted(rounds[0]["none"]):
        times = {place: [one[place][size] for one in rounds] for place in PLACES}
        medians = " | ".join(f"{statistics.median(times[place]):.0f}" for place in PLACES)
        machine = [b / a for a, b in zip(times["none"], times["elsewhere"])]
        kolo = [b / a for a, b in zip(times["elsewhere"], times["at the job"])]
        print(f"| {kind} | {size} | {medians} | {spread(machine)} | {spread(kolo)} | "
              f"{statistics.median(came):.0f} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=Path, default=Path(__file__).resolve().parents[2] / "build/release/bin")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.5, help="of the job, at each size")
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--rate", type=int, default=500, help="connections a second")
    arguments = parser.parse_args()
    kinds = arguments.kinds.split(",")
    if not set(kinds) <= set(KINDS) or arguments.rounds < 1 or arguments.rate < 1:
        parser.error(f"--kinds are of {', '.join(KINDS)}; --rounds and --rate at least 1")
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, limits[1]), limits[1]))
    elsewhere = Elsewhere()
    print("| connections | bytes | none, us | elsewhere, us | at the job, us | elsewhere / none | at the job / elsewhere | "
          "came |\n|---|---|---|---|---|---|---|---|", flush=True)
    for kind in kinds:
        rounds, came = [], []
        for number in range(arguments.rounds):
            order = PLACES[number % 3:] + PLACES[:number % 3]
            times = {}
            for place in order:
                times[place], count = run_once(arguments, kind, place, elsewhere)
                if place == "at the job":
                    came.append(count)
            rounds.append(times)
        print_kind(kind, rounds, came)
    elsewhere.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
