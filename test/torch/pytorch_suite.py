#!/usr/bin/env python3
"""PyTorch's own tests of torch.distributed, with kolo and gloo in turn, as a table.

  pytorch_suite.py [--world-size N] [--rows FOLDER] [--backends kolo gloo] [PATTERN...]

Prints Markdown: how many tests passed, failed and were skipped, why, and each test whose outcome differs. Exit code 1: fewer
tests passed with kolo than with gloo.
"""

import argparse
import json
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

HERE = Path(__file__).resolve().parent


def run(backend, size, folder, patterns):
    path = folder / f"{backend}-{size}.jsonl"
    environment = {**os.environ, "BACKEND": backend, "WORLD_SIZE": str(size), "OMP_NUM_THREADS": "1"}
    with (folder / f"{backend}-{size}.txt").open("w") as log:
        subprocess.run([sys.executable, "-W", "ignore", HERE / "suite_of_torch.py", path, *patterns], env=environment,
                       stdout=log, stderr=subprocess.STDOUT, check=False)
    return {row["test"]: row for row in map(json.loads, path.read_text().splitlines())}


def table(header, rows):
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    lines += ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def counts(results):
    rows = []
    for backend, tests in results.items():
        outcomes = Counter(row["outcome"] for row in tests.values())
        rows.append([backend, len(tests), outcomes["passed"], outcomes["failed"], outcomes["skipped"],
                     round(sum(row["seconds"] for row in tests.values()))])
    return table(["backend", "tests", "passed", "failed", "skipped", "seconds"], rows)


def reasons(results):
    tallies = {backend: Counter(row["reason"].replace(backend, "BACKEND") for row in tests.values()
                                if row["outcome"] == "skipped") for backend, tests in results.items()}
    every = sorted(set().union(*tallies.values()), key=lambda reason: -max(tally[reason] for tally in tallies.values()))
    return table(["reason", *tallies], [[reason.replace("|", "/"), *(tally[reason] for tally in tallies.values())]
                                        for reason in every])


def error_of(text):
    """The last line of a traceback that names an exception."""
    lines = [line.strip() for line in text.splitlines() if re.match(r"\s*[\w.]*(Error|Exception): ", line)]
    return lines[-1] if lines else text.strip().splitlines()[-1]


def differences(results):
    names = sorted(set().union(*results.values()))
    rows = []
    for name in names:
        outcomes = [tests.get(name, {}).get("outcome", "none") for tests in results.values()]
        if len(set(outcomes)) > 1 or "failed" in outcomes:
            last = [error_of(row["reason"]) for tests in results.values()
                    if (row := tests.get(name)) and row["outcome"] == "failed"]
            rows.append([name, *outcomes, "; ".join(last).replace("|", "/")[:160]])
    return table(["test", *results, "error"], rows) if rows else "No test has another outcome, and none failed.\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--world-size", type=int, default=3)
    parser.add_argument("--rows", type=Path, default=Path("."), help="folder for the results as JSON lines, and logs")
    parser.add_argument("--backends", nargs="+", default=["kolo", "gloo"])
    parser.add_argument("patterns", nargs="*", metavar="PATTERN")
    given = parser.parse_args()
    given.rows.mkdir(parents=True, exist_ok=True)
    results = {backend: run(backend, given.world_size, given.rows, given.patterns) for backend in given.backends}
    print("\n".join(part(results) for part in (counts, differences, reasons)))
    passed = {backend: sum(row["outcome"] == "passed" for row in tests.values()) for backend, tests in results.items()}
    return 1 if passed.get("kolo", 0) < passed.get("gloo", 0) else 0


if __name__ == "__main__":
    sys.exit(main())
