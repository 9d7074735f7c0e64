#!/usr/bin/env python3
"""Measures what the settings of tcp and shm are worth, and ways of waiting: one changed at a time, in turn with the defaults.

  settings.py [--out FILE.md] [--bench PROGRAM] [--rounds N] [--only transfers|waits] [--quick]

  --out      the page; else bench/results/DATE-settings.md. It must not be there
  --bench    a kolo-bench; else build/release/bin/kolo-bench of this tree
  --rounds   how often all are gone through (5)
  --only     the settings of tcp and shm alone, or ways of waiting alone
  --quick    one round, one size, few iterations: some seconds, to see that it works; no figures to quote

All-reduce of 2 and of 4 ranks; ways of waiting of 2, 4, 8 and 16, and of 2 beside programs that compute, one to a core. A figure is
the median over the rounds of the default's time over that of the changed setting, both of one round: above 1 the change is faster.
Only pairs measured at one distance of the cores count. Settings of which fewer than half the rounds count, of any size, get up to as
many rounds again; where that does not help the figure is of all pairs, in brackets. KOLO_TCP_CONGESTION takes what the kernel offers
to everybody. Exit code 1 where a measurement failed, 3 where results were wrong.
"""

import argparse
import contextlib
import datetime
import json
import os
import statistics
import subprocess
import sys
import tempfile
import typing
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CONGESTION = Path("/proc/sys/net/ipv4/tcp_allowed_congestion_control")
DEADLINE = 600  # s, of a program
FAR_APART = 1.5  # between a cache line's round trips before and after


class Case(typing.NamedTuple):
    """What makes one table."""
    transport: str
    ranks: int
    settings: list  # of environments, each of one setting
    sizes: list  # arguments that choose them
    neighbours: int = 0  # programs that compute meanwhile

    def title(self):
        beside = f", beside {self.neighbours} programs that compute" if self.neighbours else ""
        return f"{self.transport}, {self.ranks} ranks{beside}"


def settings_of(transport):
    if transport == "shm":
        return [{"KOLO_SEGMENT_BYTES": str(kib << 10)} for kib in (16, 32, 128, 256)] + [
            {"KOLO_SHM_SINGLE_COPY": "65536"}]
    try:
        offered = CONGESTION.read_text(encoding="ascii").split()
    except OSError:
        offered = []
    return ([{"KOLO_TCP_LANES": str(lanes)} for lanes in (2, 4)]
            + [{"KOLO_SEGMENT_BYTES": str(kib << 10)} for kib in (64, 128, 256, 512, 2048)]
            + [{"KOLO_TCP_BUFFERS": str(kib << 10)} for kib in (256, 1024, 4096)]
            + [{"KOLO_TCP_CONGESTION": name} for name in ("system", *offered)])


def cases(only):
    transfers = ["--min-bytes", "2K", "--max-bytes", "32M", "--factor", "16"]
    short = ["--min-bytes", "8", "--max-bytes", "512K", "--factor", "64"]
    waits = [{"KOLO_WAIT": kind} for kind in ("spin", "yield", "block")] + [{"KOLO_SPIN_US": us} for us in ("0", "50", "5000")]
    both = ("tcp", "shm")
    of_transfers = [Case(transport, ranks, settings_of(transport), transfers) for transport in both for ranks in (2, 4)]
    of_waits = [Case(transport, ranks, waits, short) for transport in both for ranks in (2, 4, 8, 16)]
    of_waits += [Case(transport, 2, waits, short, len(os.sched_getaffinity(0))) for transport in both]
    return {"transfers": of_transfers, "waits": of_waits}.get(only, of_transfers + of_waits)


def name_of(environment):
    return ", ".join(f"{name}={value}" for name, value in environment.items()) or "default"


def measure(bench, case, environment, effort):
    """Rows by bytes."""
    with tempfile.TemporaryDirectory() as folder:
        rows = Path(folder) / "rows.jsonl"
        words = [bench, "allreduce", "--ranks", str(case.ranks), "--transport", case.transport, *case.sizes, *effort, "--json", str(rows)]
        done = subprocess.run(words, capture_output=True, text=True, timeout=DEADLINE, check=False, env={**os.environ, **environment})
        if done.returncode != 0:
            said = done.stderr.strip().splitlines() or ["nothing was said"]
            print(f"settings.py: {name_of(environment)}: exit code {done.returncode}: {said[-1]}", file=sys.stderr)
            sys.exit(3 if done.returncode == 3 else 1)
        return {row["bytes"]: row for row in map(json.loads, rows.read_text(encoding="utf-8").splitlines())}


def is_comparable(one, other):
    lines = [row.get("cache_line_us") for row in (one, other)]
    regimes = (one.get("regime"), other.get("regime"))
    return "moved" not in regimes and regimes[0] == regimes[1] and None not in lines and max(lines) < FAR_APART * min(lines)


def ratios(pairs):
    return [default["median_us"] / changed["median_us"] for default, changed in pairs]


def comparable(pairs):
    return [pair for pair in pairs if is_comparable(*pair)]


def has_enough(pairs, rounds):
    return 2 * len(comparable(pairs)) >= rounds


def cell(pairs, rounds):
    if has_enough(pairs, rounds):
        return f"{statistics.median(ratios(comparable(pairs))):.2f}"
    return f"({statistics.median(ratios(pairs)):.2f})"


@contextlib.contextmanager
def neighbours(count):
    """So many programs that compute, until it ends."""
    programs = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for program in programs:
            program.kill()
            program.wait()


def size_text(size):
    return f"{size >> 20} MiB" if size >= 1 << 20 else f"{size >> 10} KiB" if size >= 1024 else f"{size} B"


def table(bench, case, rounds, effort):
    found = {name_of(setting): {} for setting in case.settings}
    defaults = {}
    for number in range(2 * rounds):
        left = [setting for setting in case.settings
                if number < rounds or not all(has_enough(pairs, rounds) for pairs in found[name_of(setting)].values())]
        if not left:
            break
        print(f"settings.py: {case.title()}, round {number + 1}: {len(left)} settings", file=sys.stderr, flush=True)
        for setting in left:
            default = measure(bench, case, {}, effort)
            changed = measure(bench, case, setting, effort)
            for size, row in default.items():
                defaults.setdefault(size, []).append(row["median_us"])
                found[name_of(setting)].setdefault(size, []).append((row, changed[size]))
    sizes = sorted(defaults)
    lines = ["| |" + "|".join(size_text(size) for size in sizes) + "|", "|---" * (len(sizes) + 1) + "|"]
    lines.append("| default, us |" + "|".join(f"{statistics.median(defaults[size]):.4g}" for size in sizes) + "|")
    lines += [f"| {name} |" + "|".join(cell(by_size[size], rounds) for size in sizes) + "|" for name, by_size in found.items()]
    return f"## {case.title()}\n\n" + "\n".join(lines) + "\n\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=ROOT / f"bench/results/{datetime.date.today().isoformat()}-settings.md")
    parser.add_argument("--bench", default=str(ROOT / "build/release/bin/kolo-bench"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", choices=("transfers", "waits"))
    parser.add_argument("--quick", action="store_true")
    arguments = parser.parse_args()
    if arguments.out.exists():
        parser.error(f"--out {arguments.out}: is there already: remove it, or name another")
    if arguments.rounds < 1:
        parser.error("--rounds: at least 1")
    if not os.access(arguments.bench, os.X_OK):
        parser.error(f"--bench {arguments.bench}: there is no such program")
    effort = ["--seconds", "0.05", "--passes", "2"]
    every = cases(arguments.only)
    if arguments.quick:
        effort = ["--iterations", "2", "--passes", "1"]
        every = [case._replace(sizes=["--min-bytes", "2K", "--max-bytes", "2K"]) for case in every]
    rounds = 1 if arguments.quick else arguments.rounds
    facts = next(iter(measure(arguments.bench, every[0], {}, effort).values()))["run"]
    page = ["# What settings are worth\n\n"
            f"`bench/results/settings.py --rounds {rounds}{f' --only {arguments.only}' if arguments.only else ''}`, {facts['machine']}, {facts['cores']} cores, {facts['kernel']}, kolo "
            f"{facts['kolo']}, commit {facts['commit']}, {facts['date']}. All-reduce of float32, in place. The first line is the "
            "default's time; the others are that over the changed setting's, in turn: above 1 the change is faster.\n\n"]
    for case in every:
        with neighbours(case.neighbours):
            page.append(table(arguments.bench, case, rounds, effort))
    beside = arguments.out.with_name(arguments.out.name + ".part")
    beside.write_text("".join(page), encoding="utf-8")
    beside.rename(arguments.out)


if __name__ == "__main__":
    main()
