#!/usr/bin/env python3
"""Measures what the settings of tcp and shm are worth: one changed at a time, in turn with the defaults.

  settings.py [--out FILE.md] [--bench PROGRAM] [--rounds N] [--quick]

  --out      the page; else bench/results/DATE-settings.md. It must not be there
  --bench    a kolo-bench; else build/release/bin/kolo-bench of this tree
  --rounds   how often all are gone through (5)
  --quick    one round, one size, few iterations: some seconds, to see that it works; no figures to quote

All-reduce of 2 and of 4 ranks. A figure is the median over the rounds of the default's time over that of the changed setting, both
of one round: above 1 the change is faster. Rounds in which the host moved the cores are left out for the sizes where it did; in
brackets where fewer than half are left. KOLO_TCP_CONGESTION takes what the kernel offers to everybody. Exit code 1 where a
measurement failed, 3 where results were wrong.
"""

import argparse
import datetime
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CONGESTION = Path("/proc/sys/net/ipv4/tcp_allowed_congestion_control")
DEADLINE = 600  # s, of a program
FAR_APART = 1.5  # between a cache line's round trips before and after


def settings_of(transport):
    """Lists of environments, each of one setting."""
    if transport == "shm":
        return [{"KOLO_SEGMENT_BYTES": str(kib << 10)} for kib in (16, 32, 128, 256)] + [
            {"KOLO_SHM_SINGLE_COPY": "65536"}]
    try:
        offered = CONGESTION.read_text(encoding="ascii").split()
    except OSError:
        offered = []
    return ([{"KOLO_TCP_LANES": str(lanes)} for lanes in (2, 4)]
            + [{"KOLO_SEGMENT_BYTES": str(kib << 10)} for kib in (64, 128, 512, 1024)]
            + [{"KOLO_TCP_BUFFERS": str(kib << 10)} for kib in (256, 1024, 4096)]
            + [{"KOLO_TCP_CONGESTION": name} for name in ("system", *offered)])


def name_of(environment):
    return ", ".join(f"{name}={value}" for name, value in environment.items()) or "default"


def measure(bench, transport, ranks, environment, effort):
    """Rows by bytes."""
    with tempfile.TemporaryDirectory() as folder:
        rows = Path(folder) / "rows.jsonl"
        words = [bench, "allreduce", "--ranks", str(ranks), "--transport", transport, *effort, "--json", str(rows)]
        done = subprocess.run(words, capture_output=True, text=True, timeout=DEADLINE, check=False, env={**os.environ, **environment})
        if done.returncode != 0:
            said = done.stderr.strip().splitlines() or ["nothing was said"]
            print(f"settings.py: {name_of(environment)}: exit code {done.returncode}: {said[-1]}", file=sys.stderr)
            sys.exit(3 if done.returncode == 3 else 1)
        return {row["bytes"]: row for row in map(json.loads, rows.read_text(encoding="utf-8").splitlines())}


def is_comparable(one, other):
    lines = [row.get("cache_line_us") for row in (one, other)]
    moved = "moved" in (one.get("regime"), other.get("regime"))
    return not moved and None not in lines and max(lines) < FAR_APART * min(lines)


def cell(pairs):
    kept = [default["median_us"] / changed["median_us"] for default, changed in pairs if is_comparable(default, changed)]
    if 2 * len(kept) >= len(pairs):
        return f"{statistics.median(kept):.2f}"
    return f"({statistics.median(default['median_us'] / changed['median_us'] for default, changed in pairs):.2f})"


def size_text(size):
    return f"{size >> 20} MiB" if size >= 1 << 20 else f"{size >> 10} KiB" if size >= 1024 else f"{size} B"


def table(bench, transport, ranks, rounds, effort):
    settings = settings_of(transport)
    found = {name_of(setting): {} for setting in settings}
    defaults = {}
    for number in range(rounds):
        print(f"settings.py: {transport}, {ranks} ranks, round {number + 1} of {rounds}", file=sys.stderr, flush=True)
        for setting in settings:
            default = measure(bench, transport, ranks, {}, effort)
            changed = measure(bench, transport, ranks, setting, effort)
            for size, row in default.items():
                defaults.setdefault(size, []).append(row["median_us"])
                found[name_of(setting)].setdefault(size, []).append((row, changed[size]))
    sizes = sorted(defaults)
    lines = ["| |" + "|".join(size_text(size) for size in sizes) + "|", "|---" * (len(sizes) + 1) + "|"]
    lines.append("| default, us |" + "|".join(f"{statistics.median(defaults[size]):.4g}" for size in sizes) + "|")
    lines += [f"| {name} |" + "|".join(cell(by_size[size]) for size in sizes) + "|" for name, by_size in found.items()]
    return f"## {transport}, {ranks} ranks\n\n" + "\n".join(lines) + "\n\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=ROOT / f"bench/results/{datetime.date.today().isoformat()}-settings.md")
    parser.add_argument("--bench", default=str(ROOT / "build/release/bin/kolo-bench"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--quick", action="store_true")
    arguments = parser.parse_args()
    if arguments.out.exists():
        parser.error(f"--out {arguments.out}: is there already: remove it, or name another")
    if arguments.rounds < 1:
        parser.error("--rounds: at least 1")
    if not os.access(arguments.bench, os.X_OK):
        parser.error(f"--bench {arguments.bench}: there is no such program")
    effort = ["--min-bytes", "2K", "--max-bytes", "32M", "--factor", "16", "--seconds", "0.05", "--passes", "2"]
    if arguments.quick:
        effort = ["--min-bytes", "2K", "--max-bytes", "2K", "--iterations", "2", "--passes", "1"]
    rounds = 1 if arguments.quick else arguments.rounds
    facts = next(iter(measure(arguments.bench, "tcp", 2, {}, effort).values()))["run"]
    page = ["# What settings are worth\n\n"
            f"`bench/results/settings.py --rounds {rounds}`, {facts['machine']}, {facts['cores']} cores, {facts['kernel']}, kolo "
            f"{facts['kolo']}, commit {facts['commit']}, {facts['date']}. All-reduce of float32, in place. The first line is the "
            "default's time; the others are that over the changed setting's, in turn: above 1 the change is faster.\n\n"]
    for transport in ("tcp", "shm"):
        page += [table(arguments.bench, transport, ranks, rounds, effort) for ranks in (2, 4)]
    beside = arguments.out.with_name(arguments.out.name + ".part")
    beside.write_text("".join(page), encoding="utf-8")
    beside.rename(arguments.out)


if __name__ == "__main__":
    main()
