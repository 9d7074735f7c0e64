#!/usr/bin/env python3
"""The share of a network's rate that kolo reaches: kolo-bench with 2 ranks over emulated networks, as a table.

  sweep.py --by link  --networks 1Gbit,10ms 10Mbit,50ms [--lanes 1,2,4] [--buffers kernel,1MiB] [--congestion system,cubic]
  sweep.py --by shape --networks 1Gbit,10ms             [--transports shm,tcp]

`link`: the kernel's TCP between two network namespaces (link.py, which needs root). `shape`: the shaping decorator.

| game | test | takes at least |
|---|---|---|
| message | one message there, and 8 bytes back | 2 delays, and its bytes at the rate |
| raw | the same by a plain socket, without kolo (raw.py, `link` only) | the same |
| stream | 8 messages in a row, and 8 bytes back | the same |
| both | 8 messages each way at once | 1 delay, and the bytes |
| allreduce | kolo's choice of algorithm | 1 delay, and the bytes |

The share is this least time over the median. Headers count: 1448 of 1500 bytes on the link are payload. If the sending host
limits the rate (--bottleneck host), the saved tokens of its bucket (128 KiB) pass at once and are not in the least time.
"""

import argparse
import itertools
import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import link

RAW = Path(__file__).resolve().with_name("raw.py")
MESSAGES = 8
WARMUP = 2
PAYLOAD = 1448 / link.MTU
PATTERNS = {
    "message": (["p2p", "bandwidth", "--window", "1"], 2, 1),
    "raw": ([], 2, 1),
    "stream": (["p2p", "bandwidth", "--window", str(MESSAGES)], 2, MESSAGES),
    "both": (["p2p", "bidirectional", "--window", str(MESSAGES)], 1, MESSAGES),
    "allreduce": (["allreduce"], 1, 1),
}


def words(text):
    return text.split(",")


def network(text):
    """(text, bytes per second, nanoseconds)"""
    rate, _, delay = text.partition(",")
    return text, link.rate(rate), link.delay(delay or "0us")


def least_us(pattern, bytes_per_second, delay_ns, size, payload=1.0, saved=0):
    """The least time of a test: delays, and its bytes at the full rate of the network."""
    _, delays, messages = PATTERNS[pattern]
    on_wire = max(0, messages * size / payload - saved)
    return delays * delay_ns / 1e3 + on_wire / bytes_per_second * 1e6


class Sweep:
    def __init__(self, arguments):
        self.arguments = arguments
        self.rows = []

    def run(self):
        print("| network | over | game | bytes | least, ms | median, ms | share | of p90 |\n|---|---|---|---|---|---|---|---|", flush=True)
        for net in self.arguments.networks:
            if self.arguments.by == "shape":
                for transport, pattern in itertools.product(self.arguments.transports, self.arguments.patterns):
                    self.measure(net, transport, pattern, {}, None)
            else:
                self.run_over_link(net)

    def run_over_link(self, net):
        asked = self.arguments
        text, bytes_per_second, delay_ns = net
        with link.Link(bytes_per_second, delay_ns, asked.bottleneck, asked.queue) as joined:
            for lanes, buffers, congestion in itertools.product(asked.lanes, asked.buffers, asked.congestion):
                settings = {"KOLO_TCP_LANES": lanes}
                if buffers != "kernel":
                    settings["KOLO_TCP_BUFFERS"] = str(link.size(buffers))
                if congestion != "system":
                    settings["KOLO_TCP_CONGESTION"] = congestion
                over = f"{lanes} lane{'s' if lanes != '1' else ''}, {buffers} buffers, {congestion}"
                for pattern in asked.patterns:
                    self.measure(net, over, pattern, settings, joined)
            print(f"{text}: {joined.account()}", file=sys.stderr)

    def measure(self, net, over, pattern, settings, joined):
        text, bytes_per_second, delay_ns = net
        by = self.arguments.by
        for size in self.arguments.sizes:
            least = least_us(pattern, bytes_per_second, delay_ns, link.size(size), *self.overheads())
            if least * (self.arguments.iterations + 2) > self.arguments.seconds * 1e6:
                continue
            row = self.play(PATTERNS[pattern][0], size, text if by == "shape" else None, over, settings, joined)
            share, worst = least / row["median_us"], least / row["p90_us"]
            self.rows.append({"network": joined.text if joined else text, "over": over, "game": pattern, "least_us": least, "share": share, **row})
            print(f"| {text} | {over} | {pattern} | {size} | {least / 1e3:.1f} | {row['median_us'] / 1e3:.1f} | {share:.1%} | {worst:.1%} |",
                  flush=True)

    def overheads(self):
        """The share of payload in the wire's bytes, and the bytes that pass by saved tokens of a bucket."""
        if self.arguments.by == "shape":
            return 1.0, 0
        return PAYLOAD, link.BURST if self.arguments.bottleneck == "host" else 0

    def play(self, test, size, shape, over, settings, joined):
        """Runs one job of two ranks; returns its row."""
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "rows"
            command = [self.arguments.bench, *test, "--min-bytes", size, "--max-bytes", size, "--passes", "1", "--warmup", str(WARMUP),
                       "--iterations", str(self.arguments.iterations), "--transport", over if shape else "tcp", "--json", str(file)]
            if not test:
                command = [str(RAW), str(link.size(size)), str(WARMUP), str(self.arguments.iterations), str(file)]
            if shape:
                command += ["--shape", shape, *(["--ranks", "2"] if test == ["allreduce"] else [])]
                code = subprocess.run(command, stdout=subprocess.DEVNULL, check=False).returncode
            else:
                code = link.worse(joined.run(command, env=settings, stdout=subprocess.DEVNULL))
            if code != 0:
                sys.exit(f"sweep.py: {' '.join(command)}: exit code {code}")
            return json.loads(file.read_text(encoding="utf-8").splitlines()[0])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--by", choices=("link", "shape"), default="link")
    parser.add_argument("--networks", type=network, nargs="+", required=True, metavar="RATE,DELAY")
    parser.add_argument("--games", dest="patterns", type=words, default=["message", "stream", "both", "allreduce"], help=", ".join(PATTERNS))
    parser.add_argument("--sizes", type=words, default=["1M", "4M", "16M"])
    parser.add_argument("--transports", type=words, default=["shm", "tcp"])
    parser.add_argument("--lanes", type=words, default=["1"])
    parser.add_argument("--buffers", type=words, default=["kernel"])
    parser.add_argument("--congestion", type=words, default=["system"])
    parser.add_argument("--iterations", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=10, help="leave out measurements that would take longer")
    parser.add_argument("--bench", default=str(Path(__file__).resolve().parents[2] / "build/release/bin/kolo-bench"))
    parser.add_argument("--json", help="a file for the rows")
    link.add_network(parser)
    arguments = parser.parse_args()
    for pattern in arguments.patterns:
        if pattern not in PATTERNS or (pattern == "raw" and arguments.by == "shape"):
            parser.error(f"--games {pattern}: expected one of {', '.join(PATTERNS)}; raw goes with --by link")
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, link.end_on_signal)
    sweep = Sweep(arguments)
    try:
        sweep.run()
    except (link.CannotLink, OSError) as error:
        sys.exit(f"sweep.py: {error}")
    finally:
        if arguments.json:
            Path(arguments.json).write_text("".join(json.dumps(row) + "\n" for row in sweep.rows), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
