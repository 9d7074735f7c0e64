"""Bar charts of `kolo-bench table`: time and bandwidth by size, grouped by the number of processes; a panel per library.

In the chart of times a bar shows the average, and a dash the median. In the chart of bandwidths a bar shows the bus bandwidth of the
median. Hatched bars have more processes than cores. Hollow bars were measured while the cores moved or were disturbed. A peer that
was measured beside several transports of kolo has one panel, with its last rows.
"""

import math
from collections import defaultdict

from plot_axes import HOLLOW, HOLLOW_COLOR, cut, legend_below, number_ticks, time_text
from plot_lines import LIMITS, is_unsure, series_of
from rows import size_text

COLUMNS = 3
MOST_TITLE = 50
BAR_SHARE = 0.84  # of the distance between two sizes, for all bars of a size
PANEL_INCHES = (5.2, 3.6)
COLORS = ("#9ccfc0", "#3d9a80", "#0b5a44", "#e0b25c", "#b5651d", "#7a4412")  # by the number of processes
OVERSUBSCRIBED = "more processes than cores, which share them"
MEDIAN = "median"
LABELS = {"time": "time, ms (average)", "bandwidth": "bus bandwidth, GB/s (of the median)"}
TITLES = {"time": "time", "bandwidth": "bus bandwidth"}


def decimal_text(size):
    """1 MB for 10^6 bytes; otherwise as in the other plots."""
    for unit, letters in ((10**9, "GB"), (10**6, "MB"), (10**3, "KB")):
        if size % unit == 0 and size > 0:
            return f"{size // unit} {letters}"
    return size_text(size)


def is_oversubscribed(row):
    run = row.get("run")
    return isinstance(run, dict) and row["ranks"] > run.get("cores", row["ranks"])


def average_of(row):
    return row.get("average_us", row["median_us"])


def height_of(row, what):
    return average_of(row) / 1e3 if what == "time" else row["busbw_GBps"] or 0


def panels_of(rows):
    """{collective: {line: {(ranks, size): row}}}, kolo's lines first."""
    found = defaultdict(lambda: defaultdict(dict))
    for (picture, ranks), lines in series_of(rows).items():
        for name, points in lines.items():
            if points[0]["library"] not in LIMITS:
                found[picture][name].update({(ranks, row["bytes"]): row for row in points})
    return {picture: dict(sorted(panels.items(), key=lambda item: not item[0].startswith("kolo"))) for picture, panels in found.items()}


def style_of(row, color):
    """The look of a bar. Hatching takes precedence: with more processes than cores, the probe of the cores is always disturbed."""
    if is_oversubscribed(row):
        return {"facecolor": color, "edgecolor": "white", "hatch": "///", "linewidth": 0}
    if is_unsure(row):
        return {"facecolor": "white", "edgecolor": color, "linewidth": 1.6}
    return {"facecolor": color, "linewidth": 0}


def fill_panel(axes, points, what, sizes, counts):
    """Draws the bars of a library."""
    width = BAR_SHARE / len(counts)
    for number, ranks in enumerate(counts):
        for place, size in enumerate(sizes):
            row = points.get((ranks, size))
            if row is None:
                continue
            at = place + (number - (len(counts) - 1) / 2) * width
            height = top = height_of(row, what)
            axes.bar(at, height, 0.92 * width, **style_of(row, COLORS[number % len(COLORS)]))
            if what == "time":
                median = row["median_us"] / 1e3
                axes.hlines(median, at - width / 2, at + width / 2, color="black", linewidth=1)
                top = max(height, median)
            axes.annotate(time_text(height), (at, top), xytext=(0, 3), textcoords="offset points", rotation=90, fontsize=7, ha="center",
                          va="bottom")
    axes.set_xticks(range(len(sizes)), [decimal_text(size) for size in sizes])
    axes.set_xlim(-0.6, len(sizes) - 0.4)
    axes.grid(True, axis="y", which="major", alpha=0.3)
    axes.set_axisbelow(True)


def limit_axis(plt, axes, heights, what):
    """Sets the axis, which all panels share, with room for the numbers above the bars."""
    if what == "bandwidth":
        axes.set_ylim(0, 1.2 * max(heights) or 1)
        return
    axes.set_yscale("log")
    low, high = 10 ** math.floor(math.log10(min(heights)) - 0.3), max(heights)
    axes.set_ylim(low, high * (high / low) ** 0.18)
    number_ticks(plt, axes.yaxis)


def keys_for(plt, rows, counts, what):
    """{label: handle} of the legend."""
    def square(**look):
        return plt.Rectangle((0, 0), 1, 1, **look)
    keys = {f"{ranks} {'process' if ranks == 1 else 'processes'}": square(facecolor=COLORS[number % len(COLORS)])
            for number, ranks in enumerate(counts)}
    if what == "time":
        keys[MEDIAN] = plt.Line2D([], [], color="black", linewidth=1)
    if any(map(is_oversubscribed, rows)):
        keys[OVERSUBSCRIBED] = square(facecolor=HOLLOW_COLOR, edgecolor="white", hatch="///", linewidth=0)
    if any(is_unsure(row) and not is_oversubscribed(row) for row in rows):
        keys[HOLLOW] = square(facecolor="white", edgecolor=HOLLOW_COLOR, linewidth=1.6)
    return keys


def draw_chart(plt, picture, panels, what):
    rows = [row for points in panels.values() for row in points.values()]
    sizes, counts = sorted({row["bytes"] for row in rows}), sorted({row["ranks"] for row in rows})
    columns = 2 if len(panels) == 4 else min(COLUMNS, len(panels))
    lines = -(-len(panels) // columns)
    figure, grid = plt.subplots(lines, columns, figsize=(max(9, PANEL_INCHES[0] * columns), PANEL_INCHES[1] * lines + 0.8),
                                layout="constrained", squeeze=False, sharey=True)
    for axes, (name, points) in zip(grid.flat, panels.items()):
        axes.set_title(cut(name, MOST_TITLE), fontsize=10)
        fill_panel(axes, points, what, sizes, counts)
    limit_axis(plt, grid[0][0], [height_of(row, what) for row in rows], what)
    for axes in grid.flat[len(panels):]:
        axes.remove()
    for line in grid:
        line[0].set_ylabel(LABELS[what])
    figure.suptitle(f"\n{picture}: {TITLES[what]} by size and number of processes", fontsize=13)
    legend_below(figure, keys_for(plt, rows, counts, what), 9)
    return figure


def charts_of_table(plt, rows):
    """Yields the name and the figure of each chart."""
    for picture, panels in panels_of(rows).items():
        for what in TITLES:
            yield f"{picture}_table_{what}", draw_chart(plt, picture, panels, what)
