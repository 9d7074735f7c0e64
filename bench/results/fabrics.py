#!/usr/bin/env python3
"""Measures the transports ucx and ofi beside the MPIs over the same libraries, beside the bare libraries, and beside ucx_perftest.

  fabrics.py [--out DIR] [--bench PROGRAM] [--libfabric DIR] [--quick]

  --out        where to; else bench/results/DATE-fabrics-N-cores. It may be there, but without results in it
  --bench      a kolo-bench; else build/release/bin/kolo-bench of this tree
  --libfabric  where another libfabric.so.1 lies, the one that mpich_ofi brings along: all-reduce over ofi once more with that, so that both
               have the same
  --quick      few sizes and iterations: half a minute, to see that it works; no figures to quote

Three questions, for every network of NETWORKS below:

  all-reduce of 2 and 4 ranks    beside openmpi:ucx or mpich_ofi over the same network, in turn
  2 ranks, one to the other      the transport's channel beside the bare library, in turn: what the contract costs
  ucx from 1 MiB                 all-reduce's bus bandwidth beside what ucx_perftest streams of the same length, in turn

In DIR: README.md with the tables and commands, and the rows as JSON lines. A peer or a tool that is absent is named, and left
out. Exit code 1 where a measurement failed: what could be measured is written all the same; 3 where results were wrong.
"""

import argparse
import contextlib
import ctypes
import datetime
import io
import json
import os
import shutil
import socket
import statistics
import subprocess
import sys
import time
from pathlib import Path

import tables
from tables import line, points_of, time_text
from rows import size_text  # tables.py has its folder in the path

ROOT = Path(__file__).resolve().parents[2]
NETWORKS = (  # its name in files, the transport, what is set, and the peer beside it
    ("ucx-shared-memory", "ucx", {"UCX_TLS": "posix,sysv,self"}, "openmpi:ucx"),
    ("ucx-tcp", "ucx", {"UCX_TLS": "tcp"}, "openmpi:ucx"),
    ("ofi-shared-memory", "ofi", {"KOLO_OFI_PROVIDER": "shm"}, "mpich_ofi"),
    ("ofi-tcp", "ofi", {"KOLO_OFI_PROVIDER": "tcp"}, "mpich_ofi"),
)
# Libfabric's tcp costs a system call more for each message where its queue can be slept on: bare, it cannot.
AWAKE = ("ofi-tcp-awake", "ofi", {"KOLO_OFI_PROVIDER": "tcp", "KOLO_WAIT": "spin"}, None)
LONG = (1 << 20, 4 << 20, 16 << 20, 64 << 20)
PERFTEST_ROUNDS = 5
BYTES_A_TEST = 4 << 30  # of ucx_perftest's messages together
DEADLINE = 900  # s, of a program


class Run:
    """The programs that are run, and what became of them."""

    def __init__(self, arguments):
        self.bench = str(arguments.bench)
        self.is_quick = arguments.quick
        self.out = arguments.out
        self.libfabric = arguments.libfabric
        self.failed = []
        self.has_wrong = False
        self.began = time.monotonic()
        self.peers = subprocess.run([self.bench, "peers"], capture_output=True, text=True, timeout=60, check=True).stdout.split()

    def measure(self, what, environment, *words):
        """The rows of a kolo-bench that is given these words; [] where it failed."""
        print(f"fabrics.py: {time.monotonic() - self.began:.0f} s: {what}", file=sys.stderr, flush=True)
        done = subprocess.run([self.bench, *map(str, words), "--json", "-"], capture_output=True, text=True, timeout=DEADLINE,
                              check=False, env={**os.environ, **environment})
        rows = [json.loads(text) for text in done.stdout.splitlines() if text.startswith("{")]
        if done.returncode == 3:
            self.has_wrong = True
        elif done.returncode != 0:
            said = done.stderr.strip().splitlines() or ["nothing was said"]
            self.fail(f"{what}: exit code {done.returncode}: {said[-1]}")
        return rows

    def fail(self, text):
        self.failed.append(text)
        print(f"fabrics.py: {text}", file=sys.stderr, flush=True)

    def keep(self, name, rows):
        (self.out / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")

    def sizes(self, ranks):
        if self.is_quick:
            return ["--min-bytes", 64, "--max-bytes", "64K", "--factor", 32, "--iterations", 4, "--passes", 1]
        return ["--max-bytes", "256M" if ranks == 2 else "16M", "--seconds", 0.15, "--passes", 5, "--warmup", 2]


def setting(environment):
    return ", ".join(f"libfabric {version_in(value)}" if name == "LD_LIBRARY_PATH" else f"{name}={value}" for name, value in environment.items())


def version_in(folder):
    """What the libfabric there says of itself: "2.5"."""
    version = ctypes.CDLL(str(Path(folder) / "libfabric.so.1")).fi_version()
    return f"{version >> 16}.{version & 0xFFFF}"


def networks_of(run):
    """All networks, and those of ofi once more where there is another libfabric."""
    if not run.libfabric:
        return NETWORKS
    others = ((f"{name}-other-libfabric", transport, {**environment, "LD_LIBRARY_PATH": str(run.libfabric)}, peer)
              for name, transport, environment, peer in NETWORKS if transport == "ofi")
    return (*NETWORKS, *others)


def show_tables(points, file):
    with contextlib.redirect_stdout(file):
        tables.tables(points)


def beside_peers(run, page):
    for name, transport, environment, peer in networks_of(run):
        for ranks in (2, 4):
            words = ["allreduce", "--ranks", ranks, "--transport", transport, *run.sizes(ranks)]
            if peer in run.peers:
                words += ["--against", peer]
            else:
                page.write(f"({peer} is not in this build: no peer beside {transport}.)\n\n")
            rows = run.measure(f"all-reduce over {name}, {ranks} ranks", environment, *words)
            run.keep(f"{name}-{ranks}-ranks", rows)
            page.write(f"## {transport}, {setting(environment)}, {ranks} ranks\n\n")
            if rows:
                show_tables(points_of(rows), page)


def beside_libraries(run, page):
    """The contract's cost: medians in turn, and the channel's share of what the bare library reaches."""
    page.write("## The contract beside the bare library\n\n2 ranks, messages in turn, every byte checked: `kolo-bench p2p KIND --level "
               "library`. Bare is UCX's tagged messages, and libfabric's. The share is the bare library's time over the channel's: what "
               "is left of it.\n\n")
    page.write(line(["transport", "set", "", "bytes", "bare, us", "channel, us", "share", "GB/s", "cores"]) + "\n" + "|---" * 9 + "|\n")
    for name, transport, environment, _ in (*NETWORKS, AWAKE):
        kept = []
        for kind, least, most in (("latency", 8, 8), ("latency", 4096, 4096), ("bandwidth", 65536, 65536), ("bandwidth", 1 << 20, 1 << 20)):
            effort = ["--iterations", 8, "--passes", 1] if run.is_quick else ["--seconds", 0.6, "--passes", 9]
            rows = run.measure(f"{kind} over {name}, {least} bytes", environment, "p2p", kind, "--transport", transport, "--level",
                               "library", "--min-bytes", least, "--max-bytes", most, *effort)
            kept += rows
            found = {row["algorithm"]: row for row in rows}
            if len(found) != 2:
                continue
            channel, bare = found["segments"], found["library"]
            page.write(line([transport, setting(environment), kind, size_text(least), time_text(bare["median_us"]),
                             time_text(channel["median_us"]), f"{bare['median_us'] / channel['median_us']:.2f}",
                             f"{channel['algbw_GBps']:.2f}", str(channel.get("regime", "-"))]) + "\n")
        run.keep(f"{name}-bare", kept)
    page.write("\n")


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def perftest(environment, test, size, messages):
    """GB/s that ucx_perftest says of a stream, each of its processes on a core of its own."""
    words = ["ucx_perftest", "-p", str(free_port()), "-t", test, "-s", str(size), "-n", str(messages), "-w", str(max(2, messages // 10)), "-f"]
    cores = sorted(os.sched_getaffinity(0))
    surroundings = {**os.environ, **environment}
    with subprocess.Popen([*words, "-c", str(cores[0])], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=surroundings) as server:
        try:
            for _ in range(100):  # until the server listens
                client = subprocess.run([words[0], "127.0.0.1", *words[1:], "-c", str(cores[-1])], capture_output=True, text=True,
                                        timeout=120, check=False, env=surroundings)
                if client.returncode == 0:
                    # messages, then times (median, average, overall), then MB/s (average, overall), which are MiB
                    return float(client.stdout.splitlines()[-1].split()[5]) * (1 << 20) / 1e9
                time.sleep(0.1)
        finally:
            server.kill()
    raise RuntimeError(f"ucx_perftest {test} of {size} bytes: {client.stderr.strip() or client.stdout.strip()}")


def beside_perftest(run, page):
    page.write("## All-reduce beside ucx_perftest\n\n2 ranks. Bus bandwidth of kolo's all-reduce over ucx, which reads, adds and writes "
               "besides, and what ucx_perftest streams one way in messages of the same length (`tag_bw`; `ucp_am_bw`), by turns: medians "
               f"of {PERFTEST_ROUNDS} rounds. Share: of the better of the two.\n\n")
    if shutil.which("ucx_perftest") is None:
        page.write("ucx_perftest was not there (Debian: ucx-utils).\n\n")
        return
    page.write(line(["set", "bytes", "all-reduce, GB/s", "tag_bw, GB/s", "ucp_am_bw, GB/s", "share"]) + "\n" + "|---" * 6 + "|\n")
    for name, transport, environment, _ in NETWORKS:
        if transport != "ucx":
            continue
        for size in LONG[:1] if run.is_quick else LONG:
            own, tests = [], {"tag_bw": [], "ucp_am_bw": []}
            for _ in range(1 if run.is_quick else PERFTEST_ROUNDS):
                rows = run.measure(f"all-reduce of {size_text(size)} over {name}, beside ucx_perftest", environment, "allreduce", "--ranks", 2,
                                   "--transport", transport, "--min-bytes", size, "--max-bytes", size, "--seconds", 0.3, "--passes", 3)
                own += [row["busbw_GBps"] for row in rows]
                for test, found in tests.items():
                    try:
                        found.append(perftest(environment, test, size, max(4, BYTES_A_TEST // size // (64 if run.is_quick else 4))))
                    except (RuntimeError, subprocess.TimeoutExpired) as error:
                        run.fail(str(error))
            if not own or not all(tests.values()):
                continue
            kolo, *streams = (statistics.median(found) for found in (own, *tests.values()))
            page.write(line([setting(environment), size_text(size), f"{kolo:.2f}", *(f"{stream:.2f}" for stream in streams),
                             f"{kolo / max(streams):.2f}"]) + "\n")
    page.write("\n")


def arguments_of(words):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--bench", type=Path, default=ROOT / "build/release/bin/kolo-bench")
    parser.add_argument("--libfabric", type=Path)
    parser.add_argument("--quick", action="store_true")
    arguments = parser.parse_args(words)
    if arguments.libfabric:
        try:
            version_in(arguments.libfabric)
        except (OSError, AttributeError) as error:
            parser.error(f"--libfabric {arguments.libfabric}: no libfabric.so.1 that can be loaded: {error}")
    if not os.access(arguments.bench, os.X_OK):
        parser.error(f"--bench {arguments.bench}: there is no such program")
    arguments.bench = arguments.bench.resolve()
    arguments.out = arguments.out or ROOT / f"bench/results/{datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d}-fabrics-{os.cpu_count()}-cores"
    try:
        arguments.out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        parser.error(f"--out {arguments.out}: {error.strerror}")
    if there := [file.name for file in arguments.out.iterdir() if file.name == "README.md" or file.suffix == ".jsonl"]:
        parser.error(f"--out {arguments.out}: {there[0]} is there already: remove it, or name another folder")
    return arguments


def main(words):
    arguments = arguments_of(words)
    run = Run(arguments)
    parts = [io.StringIO() for _ in range(3)]
    for part, measure in zip(parts, (beside_peers, beside_libraries, beside_perftest)):
        measure(run, part)
    files = [tables.read_rows(path) for path in sorted(arguments.out.glob("*-ranks.jsonl"))]
    for row in (row for rows in files for row in rows):
        row.get("run", {}).pop("environment", None)  # every section says its own
    with (arguments.out / "README.md").open("w", encoding="utf-8") as page, contextlib.redirect_stdout(page):
        tables.head(files, f"`bench/results/fabrics.py{' --quick' if run.is_quick else ''}` in {time.monotonic() - run.began:.0f} s", run.is_quick)
        for part in parts[1:] + parts[:1]:
            page.write(part.getvalue())
        for text in run.failed:
            page.write(f"Failed: {text}\n")
    print(f"fabrics.py: the tables are in {arguments.out}/README.md", file=sys.stderr)
    return 1 if run.failed else 3 if run.has_wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
