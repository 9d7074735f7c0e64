#!/usr/bin/env python3
"""What a transport costs through the table of C functions for transports from outside: shm and tcp as libraries, beside themselves.

  plugin_overhead.py [--build build/release] [--rounds 9]

The libraries are kolo's own transports with nothing but the table between (test/transports/plugin/libraries/own_transport.cpp), so the
difference is the table's: a call through a pointer, an exception's frame, a status that is looked at. 2 ranks, plain send and
receive of the contract (kolo-bench p2p --level segments), by turns, the other first in every second round. A run's time is the 10th
percentile of its samples, which other programs disturb the least. Prints the medians over the rounds, and the lowest, median and highest
ratio of a round: the table's time over the transport's own.
"""

import argparse
import json
import statistics
import subprocess
import sys
from pathlib import Path

GAMES = (("latency", 8), ("latency", 4096), ("message-rate", 8), ("bandwidth", 65536), ("bandwidth", 4 << 20))


def time_of(arguments, transport, kind, size):
    """Microseconds of a message there, or of a message in a window."""
    command = [arguments.build / "bin/kolo-bench", "p2p", kind, "--transport", transport, "--level", "segments",
               "--min-bytes", str(size), "--max-bytes", str(size), "--seconds", str(arguments.seconds), "--json", "-"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode != 0 or len(rows) != 1 or rows[0]["wrong"]:
        raise SystemExit(f"{' '.join(map(str, command))} failed ({done.returncode}):\n{done.stdout}{done.stderr}")
    row = rows[0]
    return row["p10_us"] if kind == "latency" else row["p10_us"] / row["window"]


def compare(arguments, transport, kind, size):
    library = str(arguments.build.resolve() / f"lib/own_{transport}.so")
    own, tabled = [], []
    for number in range(arguments.rounds):
        order = ((own, transport), (tabled, library))
        for times, name in order if number % 2 == 0 else order[::-1]:
            times.append(time_of(arguments, name, kind, size))
    ratios = sorted(b / a for a, b in zip(own, tabled))
    print(f"| {transport} | {kind} | {size} | {statistics.median(own):.3f} | {statistics.median(tabled):.3f} | "
          f"{statistics.median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f}) |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, default=Path(__file__).resolve().parents[2] / "build/release")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=0.2, help="of each run")
    arguments = parser.parse_args()
    print("| transport | | bytes | itself, us a message | through the table, us | ratio |\n|---|---|---|---|---|---|", flush=True)
    for transport in ("shm", "tcp"):
        for kind, size in GAMES:
            compare(arguments, transport, kind, size)
    return 0


if __name__ == "__main__":
    sys.exit(main())
