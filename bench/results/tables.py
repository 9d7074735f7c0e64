#!/usr/bin/env python3
"""Writes Markdown tables of kolo-bench's JSON lines: kolo, the limit, and the peers beside it, size by size.

  tables.py FILE... [--seconds N] [--pictures "A.png B.png"] > README.md

A file is of one transport and one number of ranks, as make.sh writes them. Peers' rows follow kolo's of the same size. What a
peer's time is over kolo's is the ratio: above 1, kolo is faster; where it is below, it is bold.
"""

import argparse
import json
import sys
from pathlib import Path

UNITS = ["B", "KiB", "MiB", "GiB"]


def size_text(size):
    unit = 0
    while size >= 1024 and unit + 1 < len(UNITS):
        size, unit = size / 1024, unit + 1
    return f"{size:g} {UNITS[unit]}"


def time_text(us):
    return f"{us:,.0f}" if us >= 100 else f"{us:.3g}"


def ratio_text(ratio):
    text = f"{ratio:.2f}" if ratio < 100 else f"{ratio:.0f}"
    return f"**{text}**" if ratio < 1 else text


def read_rows(path):
    try:
        return [json.loads(line) for line in Path(path).read_text(encoding="utf-8").splitlines()]
    except OSError as error:
        sys.exit(f"tables.py: {path}: {error.strerror}")
    except ValueError as error:
        sys.exit(f"tables.py: {path}: no JSON lines: {error}")


def points_of(rows):
    """[(kolo's row, {peer: its row})]"""
    points = []
    for row in rows:
        if row.get("library") == "kolo":
            points.append((row, {}))
        elif "library" in row and points:
            points[-1][1][row["library"]] = row
    return points


def able(row):
    return row.get("wrong") in (0, None)


def best_ratio(own, peers):
    times = [row["median_us"] for row in peers.values() if able(row)]
    return min(times) / own["median_us"] if times else None


def line(cells):
    return "| " + " | ".join(cells) + " |"


def summary(points, collectives, sizes):
    """The best peer's time over kolo's, a line per collective."""
    print("The best peer's time over kolo's:\n")
    print(line(["collective", *(size_text(size) if size else "no size" for size in sizes)]))
    print("|---" * (len(sizes) + 1) + "|")
    for collective in collectives:
        ratios = {own["bytes"]: best_ratio(own, peers) for own, peers in points if own["collective"] == collective}
        cells = [ratio_text(ratios[size]) if ratios.get(size) else "" for size in sizes]
        print(line([collective, *cells]))
    print()


def peer_cell(own, row):
    if row is None:
        return "-"
    if not able(row):
        return f"wrong ({row['wrong']} elements)"
    return f"{time_text(row['median_us'])}, {ratio_text(row['median_us'] / own['median_us'])}"


def table(points, collective):
    points = [point for point in points if point[0]["collective"] == collective]
    peers = []
    for _, others in points:
        peers += [name for name in others if name not in peers]
    print(f"### {collective}\n")
    print(line(["bytes", "by", "kolo (p10 - p90), us", "limit", "limit / kolo", *(f"{name}, over kolo" for name in peers), "cores"]))
    print("|---" * (6 + len(peers)) + "|")
    for own, others in points:
        limit = own.get("limit_us")
        print(line([size_text(own["bytes"]), own["algorithm"],
                    f"{time_text(own['median_us'])} ({time_text(own['p10_us'])} - {time_text(own['p90_us'])})"
                    + ("" if able(own) else f", wrong ({own['wrong']} elements)"),
                    time_text(limit) if limit else "-", f"{limit / own['median_us']:.2f}" if limit else "-",
                    *(peer_cell(own, others.get(name)) for name in peers), str(own.get("regime", "-"))]))
    print()
    print(f"    {own['run']['command']}\n")


def versions_of(files):
    versions = []
    for rows in files:
        for row in rows:
            if row.get("version") and row["version"] not in versions:
                versions.append(row["version"])
    return versions


def head(files, seconds):
    run = next(row["run"] for rows in files for row in rows if "run" in row)
    print(f"# {run['machine']}, {run['cores']} cores, {run['date'][:10]}\n")
    print(f"{run['kernel']}, kolo {run['kolo']} at {run['commit']}; peers: {'; '.join(versions_of(files)) or 'none'}. "
          f"Made by `bench/results/make.sh`{f' in {seconds} s' if seconds else ''}.\n")
    print("Times are microseconds: the median over the iterations of the longest of the ranks' times, all libraries in turn over the "
          "same pages, every element checked. Behind a peer's time is that time over kolo's: above 1, kolo is faster. The limit was "
          "measured just before its row (`bench/README.md`); cores: how far apart they were then (near, far).\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="+")
    parser.add_argument("--seconds", default="")
    parser.add_argument("--pictures", default="")
    arguments = parser.parse_args()
    files = [read_rows(path) for path in arguments.files]
    if not any(points_of(rows) for rows in files):
        sys.exit(f"tables.py: no row of kolo's in {', '.join(arguments.files)}")
    head(files, arguments.seconds)
    pictures = [Path(name).name for name in arguments.pictures.split()]
    for rows in files:
        points = points_of(rows)
        if not points:
            continue
        own = points[0][0]
        collectives = list(dict.fromkeys(point[0]["collective"] for point in points))
        print(f"## {own['transport']}, {own['ranks']} ranks\n")
        for name in pictures:
            if name.startswith(f"{own['transport']}_{own['ranks']}_ranks"):
                print(f"![{name}]({name})\n")
        if any(peers for _, peers in points):
            summary(points, collectives, sorted({point[0]["bytes"] for point in points}))
        for collective in collectives:
            table(points, collective)


if __name__ == "__main__":
    try:
        main()
    except BrokenPipeError:  # whoever read it has seen enough
        sys.exit(1)
