#!/usr/bin/env python3
"""Draws kolo-bench's JSON lines: time and bus bandwidth against size, one picture per collective and number of ranks.

  kolo-bench plot FILE... --out DIR

Libraries are lines with markers and a band from the 10th to the 90th percentile; floors (of `kolo-bench limits`) are dashed.
Where a file holds several rows for one point, the last one counts.
"""

import argparse
import json
import os
import sys
from collections import defaultdict
from pathlib import Path

SYSTEM_PYTHON = "/usr/bin/python3"
COLORS = {("kolo", "shm"): "#0b6e4f", ("kolo", "tcp"): "#1f5fbf", ("kolo", "inproc"): "#7a4fb5",
          ("gloo", "tcp"): "#d1495b", ("floor", "shm"): "#6b6b6b", ("floor", "tcp"): "#a0a0a0"}
MARKERS = {"shm": "o", "tcp": "s", "inproc": "^"}
TEXTS = ["library", "transport", "collective", "algorithm"]
NUMBERS = ["ranks", "bytes", "median_us", "p10_us", "p90_us", "algbw_GBps", "busbw_GBps"]
UNITS = ["B", "KiB", "MiB", "GiB"]


def fail(message):
    sys.exit(f"kolo-bench plot: {message}")


def read_lines(path):
    try:
        return Path(path).read_text(encoding="utf-8").splitlines()
    except OSError as error:
        fail(f"{path}: {error.strerror}")
    except UnicodeDecodeError:
        fail(f"{path} is no text: it takes JSON lines, as --json writes them")


def what_is_wrong(row):
    """Of a row that has a library; empty where it can be drawn."""
    for name in TEXTS:
        if not isinstance(row.get(name), str):
            return f"lacks '{name}', or it is no text"
    for name in NUMBERS:
        if not isinstance(row.get(name), (int, float)) or row[name] < 0:
            return f"lacks '{name}', or it is no number from 0"
    return "" if row["median_us"] > 0 and row["p10_us"] > 0 else "has no time above 0"


def read_rows(paths):
    rows = []
    for path in paths:
        for number, line in enumerate(read_lines(path), 1):
            try:
                row = json.loads(line)
            except json.JSONDecodeError as error:
                fail(f"{path}:{number}: is no JSON line: {error}")
            if not isinstance(row, dict) or "library" not in row:
                continue  # a limit, perhaps
            wrong = what_is_wrong(row)
            if wrong:
                fail(f"{path}:{number}: {wrong}: is it a row of kolo-bench?")
            if row["bytes"] > 0:
                rows.append(row)
    if not rows:
        fail(f"nothing to draw in {', '.join(paths)}: it takes rows of collectives with a size")
    return rows


def name_of(row):
    return f"{row['library']} over {row['transport']}, {row['algorithm']}"


def series_of(rows):
    """{(collective, ranks): {name: [row by size]}}"""
    pictures = defaultdict(lambda: defaultdict(dict))
    for row in rows:
        pictures[row["collective"], row["ranks"]][name_of(row)][row["bytes"]] = row
    return {key: {name: [points[size] for size in sorted(points)] for name, points in lines.items()}
            for key, lines in pictures.items()}


def size_text(size, _position=None):
    unit = 0
    while size >= 1024 and unit + 1 < len(UNITS):
        size, unit = size / 1024, unit + 1
    return f"{size:g} {UNITS[unit]}"


def draw_line(axes, name, points, quantity):
    first = points[0]
    style = {"color": COLORS.get((first["library"], first["transport"])), "label": name, "linewidth": 1.6}
    sizes = [row["bytes"] for row in points]
    if first["library"] == "floor":
        dashes = (2, 2) if "reno" in first["algorithm"] else (6, 2)
        axes.plot(sizes, [quantity(row, "median_us") for row in points], dashes=dashes, **style)
        return
    line, = axes.plot(sizes, [quantity(row, "median_us") for row in points], marker=MARKERS.get(first["transport"], "d"),
                      markersize=4.5, **style)
    axes.fill_between(sizes, [quantity(row, "p10_us") for row in points], [quantity(row, "p90_us") for row in points],
                      color=line.get_color(), alpha=0.15, linewidth=0)


def draw(plt, collective, ranks, lines, what, folder):
    figure, axes = plt.subplots(figsize=(8, 5), layout="constrained")

    def bandwidth(row, key):
        factor = row["busbw_GBps"] / row["algbw_GBps"] if row["algbw_GBps"] > 0 else 1
        return factor * row["bytes"] / row[key] / 1e3

    quantity = (lambda row, key: row[key]) if what == "time" else bandwidth
    # The slowest at large sizes first, so that the legend reads as the lines lie.
    order = sorted(lines.items(), key=lambda item: quantity(item[1][-1], "median_us"), reverse=True)
    for name, points in order:
        draw_line(axes, name, points, quantity)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    sizes = sorted({row["bytes"] for points in lines.values() for row in points})
    axes.set_xticks(sizes[:: max(1, len(sizes) // 12)])
    axes.xaxis.set_major_formatter(plt.FuncFormatter(size_text))
    axes.xaxis.set_minor_locator(plt.NullLocator())
    axes.yaxis.set_major_formatter(plt.FuncFormatter(lambda value, _: f"{value:g}"))
    axes.tick_params(axis="x", rotation=35)
    axes.set_xlabel("size")
    axes.set_ylabel("time, us (median; band: 10th to 90th percentile)" if what == "time" else "bus bandwidth, GB/s")
    axes.set_title(f"{collective}, {ranks} ranks")
    axes.grid(True, which="major", alpha=0.3)
    axes.legend(frameon=False)
    for suffix in ("png", "svg"):
        path = folder / f"{collective}_{ranks}_ranks_{what}.{suffix}"
        figure.savefig(path, dpi=130)
        print(path)
    plt.close(figure)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="+")
    parser.add_argument("--out", default="plots")
    arguments = parser.parse_args()
    rows = read_rows(arguments.files)
    try:
        import matplotlib
    except ImportError:
        # Distributions install it for their own Python, which need not be the first in PATH.
        if os.path.exists(SYSTEM_PYTHON) and os.path.realpath(SYSTEM_PYTHON) != os.path.realpath(sys.executable):
            os.execv(SYSTEM_PYTHON, [SYSTEM_PYTHON, *sys.argv])
        fail("matplotlib is missing; cmake/setup.sh --with plots installs it")
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    folder = Path(arguments.out)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for (collective, ranks), lines in series_of(rows).items():
            for what in ("time", "bandwidth"):
                draw(plt, collective, ranks, lines, what, folder)
    except OSError as error:
        fail(f"cannot write to {folder}: {error.strerror}")


if __name__ == "__main__":
    main()
