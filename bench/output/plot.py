#!/usr/bin/env python3
"""Draws kolo-bench's JSON lines: time and bus bandwidth against size, and bars of the times at a few sizes; three pictures
per collective and number of ranks, and the messages a second where those were measured.

  kolo-bench plot FILE... --out DIR
  kolo-bench plot --format pdf FILE...              png, svg, pdf, or a list; default png,svg, for overviews png
  kolo-bench plot --overview FILE... --out DIR      one picture per transport and number of ranks, a panel per collective
  kolo-bench plot --table FILE... --out DIR         two bar charts per collective, by size and number of processes (plot_table.py)

Libraries are lines with markers and a band from the 10th to the 90th percentile. With more than five libraries each size has
strokes instead of bands, side by side. Limits (of the same run, and floors of `kolo-bench limits`) are dashed. They are broken at
sizes where none is known, or where another program disturbed the floor. Floors without a library in the same picture are left
out; files of floors only become one page per number of ranks. Rows of --overlap have their own pictures: times, with the
operation and the computation alone, and the hidden share. Hollow marks were measured while the cores moved or were disturbed
(`regime`); do not compare them.

A library that chose its algorithm by the size is one line. If several algorithms were measured at one size, each has a line. So
have rows with other options (form, memory, type, ...). The last of several rows of one measurement (rows.py) counts. The second
line of a title has the machine and the commit, if all rows agree.
"""

import argparse
import contextlib
import json
import math
import os
import re
import signal
import sys
from collections import namedtuple
from importlib.util import find_spec
from pathlib import Path

from plot_axes import HOLLOW, HOLLOW_COLOR, cut, hollow_key, keys_of, legend_below, number_text, number_ticks, time_text
from plot_colors import looks_of
from plot_lines import (LEAST_HIDDEN, LIMITS, MOST_HIDDEN, QUANTITIES, is_beyond, is_known, is_no_floor, is_overlap,
                        is_unsure, known, of_what, pages_of, series_of, sizes_of_bars, spread_text, unit_of)
from plot_spread import spreads_of
from plot_table import charts_of_table
from rows import count_text, key_of, size_text, what_is_wrong

Out = namedtuple("Out", "folder formats")  # folder and formats of the pictures; empty: default formats
FORMATS = ("png", "svg", "pdf")
PICTURES = ("time", "hidden", "bandwidth", "rate", "bars")  # of a collective, as far as its rows have them
PAGES = ("time", "bandwidth")  # of an overview
SYSTEM_PYTHON = "/usr/bin/python3"
UNKNOWN = {"median_us": math.nan, "p10_us": math.nan, "p90_us": math.nan}
BEYOND = "beyond the axis"
BAR_INCHES = 0.13  # wide enough for the number above it
PANELS = ["allreduce", "reduce_scatter", "allgather", "alltoall", "broadcast", "barrier"]  # in this order; then all others
COLUMNS = 3
MOST_TITLE, MOST_TICK, MOST_PATH = 90, 40, 100  # longest names there, in letters


def say(message):
    print(f"kolo-bench plot: {message}", file=sys.stderr)


def tell(file):
    try:
        print(file, flush=True)
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # otherwise Python reports the error again at exit
        fail(f"cannot write to standard output: {error.strerror}")


def fail(message, code=1):
    say(message)
    sys.exit(code)


def refuse(message):
    """Ends with a usage error, before anything is drawn."""
    fail(message, 2)


def escaped(value):
    """Escapes dollars, which start formulas in matplotlib, in the texts of a row and of its run."""
    if isinstance(value, dict):
        return {name: escaped(inner) for name, inner in value.items()}
    return value.replace("$", r"\$") if isinstance(value, str) else value


def read_lines(path):
    try:
        return Path(path).read_text(encoding="utf-8").splitlines()
    except OSError as error:
        refuse(f"{path}: {error.strerror}")
    except UnicodeDecodeError:
        refuse(f"{path} is not text: expected JSON lines, as --json writes them")


def read_rows(paths, least_bytes):
    """The rows to draw, and the number of rows with wrong results."""
    rows = []
    for path in paths:
        for number, line in enumerate(read_lines(path), 1):
            try:
                row = json.loads(line)
            except (ValueError, RecursionError) as error:
                refuse(f"{path}:{number}: is not a JSON line: {error}")
            if not isinstance(row, dict) or "library" not in row:
                continue  # possibly a limit
            wrong = what_is_wrong(row)
            if wrong:
                refuse(f"{path}:{number}: {wrong}; is it a row of kolo-bench?")
            if row["bytes"] >= least_bytes:
                rows.append(escaped({**row, **UNKNOWN} if is_no_floor(row) else row))
    right = [row for row in rows if not row.get("wrong")]
    have_sizes = {row["collective"] for row in right if row["bytes"] > 0}  # a size of 0 has no place on their axis
    drawn = [row for row in right if row["bytes"] > 0 or row["collective"] not in have_sizes]
    if not known(drawn):
        refuse(f"nothing to draw in {', '.join(paths)}: it takes rows of collectives with a size, and no disturbed floors")
    return drawn, len(rows) - len(right)


def say_what_is_unknown(rows):
    """Reports floors that were disturbed and not measured again."""
    there = {key_of(row) for row in known(rows)}
    gone = {key_of(row) for row in rows if not is_known(row)} - there
    if gone:
        say(f"left out: {count_text(len(gone), 'floor')} that another program disturbed; measure again (kolo-bench limits)")


def where_text(rows):
    """Machine and commit; empty if rows lack them or differ."""
    places = {(run.get("machine"), run.get("cores"), run.get("kernel"), run.get("commit"))
              for run in (row.get("run") for row in rows) if isinstance(run, dict)}
    if len(places) != 1 or None in next(iter(places)):
        return ""
    machine, cores, kernel, commit = next(iter(places))
    text = f"{machine}, {count_text(cores, 'core')}, {kernel}, kolo at {str(commit)[:20]}"
    return cut("".join(letter if letter.isprintable() else "?" for letter in text), 2 * MOST_TITLE)


def lonely(points):
    """Indices of known points between unknown ones, to which no line leads."""
    there = [False, *map(is_known, points), False]
    return [i for i in range(len(points)) if there[i + 1] and not there[i] and not there[i + 2]]


def draw_line(axes, name, points, quantity, look, draw_spread):
    """`draw_spread(axes, points, quantity, color)` draws a library's times from the 10th to the 90th percentile."""
    first = points[0]
    sizes = [row["bytes"] for row in points]
    medians = [quantity(row, "median_us") for row in points]
    marker = {"marker": look.marker, "markersize": 5.5, "color": look.color}
    if look.dashes:
        alone = lonely(points)
        axes.plot(sizes, medians, dashes=look.dashes, linewidth=1.6, color=look.color, label=name)
        axes.plot([sizes[i] for i in alone], [medians[i] for i in alone], linestyle="none", **marker)
    else:
        axes.plot(sizes, medians, linewidth=2 if first["library"] == "kolo" else 1.4, label=name, **marker)
        draw_spread(axes, points, quantity, look.color)
    unsure = [row for row in known(points) if is_unsure(row)]
    axes.plot([row["bytes"] for row in unsure], [quantity(row, "median_us") for row in unsure], linestyle="none", **marker,
              markerfacecolor="white")
    beyond = [row for row in points if quantity is QUANTITIES["hidden"] and is_beyond(row)]
    axes.plot([row["bytes"] for row in beyond], [quantity(row, "median_us") for row in beyond], "x", markersize=9,
              markeredgecolor=look.color, markeredgewidth=1.6)


def beyond_key(plt, lines):
    """{label: handle} for marks at the edge of an axis; empty if there are none."""
    beyond = [row for points in lines.values() for row in points if is_overlap(row) and is_beyond(row)]
    if not beyond:
        return {}
    say(f"{count_text(len(beyond), 'share')} of what is hidden {'is' if len(beyond) == 1 else 'are'} beyond the axis "
        f"({100 * LEAST_HIDDEN:.0f} to {100 * MOST_HIDDEN:.0f} %), and drawn at its edge")
    return {BEYOND: plt.Line2D([], [], linestyle="none", marker="x", markersize=9, markeredgecolor=HOLLOW_COLOR)}


def draw(plt, lines, what, looks):
    figure, axes = plt.subplots(figsize=(8, 5), layout="constrained")
    fill_axes(plt, axes, lines, what, looks, most_ticks=13)
    beyond = beyond_key(plt, lines) if what == "hidden" else {}
    legend_below(figure, {**keys_of(axes), **hollow_key(plt, [lines]), **beyond}, 9)
    return figure, axes


def apart(sizes, most):
    """About `most` of the sizes, with the first and the last, not closer to each other than an even spread."""
    least = (sizes[-1] / sizes[0]) ** (0.999 / most)
    kept = sizes[:1]
    for size in sizes[1:-1]:
        if size >= kept[-1] * least and size * least <= sizes[-1]:
            kept.append(size)
    return kept + sizes[1:][-1:]


def fill_axes(plt, axes, lines, what, looks, most_ticks):
    quantity = QUANTITIES[what]
    # The slowest at large sizes first, so that the legend has the order of the lines.
    order = sorted(lines.items(), key=lambda item: quantity(known(item[1])[-1], "median_us"), reverse=True)
    spread_of = spreads_of(lines, [name for name, _ in order])
    for name, points in order:
        draw_line(axes, name, points, quantity, looks[name], spread_of.get(name))
    axes.set_xscale("log", base=2)
    if what == "hidden":
        axes.yaxis.set_major_formatter(plt.FuncFormatter(lambda share, _: f"{100 * share:.0f} %"))
        low, high = axes.get_ylim()
        axes.set_ylim(min(-0.1, low), max(1.05, high))
        axes.axhline(0, color=HOLLOW_COLOR, linewidth=0.8)
    else:
        axes.set_yscale("log")
        number_ticks(plt, axes.yaxis)
    sizes = sorted({row["bytes"] for points in lines.values() for row in known(points)})
    axes.set_xticks(apart(sizes, most_ticks))
    axes.xaxis.set_major_formatter(plt.FuncFormatter(lambda size, _: size_text(size)))
    axes.xaxis.set_minor_locator(plt.NullLocator())
    axes.tick_params(axis="x", rotation=35)
    axes.set_xlabel("size")
    axes.set_ylabel(unit_of(lines, what) + (f" (median{spread_text([lines])})" if what == "time" else ""))
    axes.grid(True, which="major", alpha=0.3)


def fill_without_sizes(plt, axes, lines, looks):
    """A barrier: a dot per library with its time. (A bar on a log axis would have no start.)"""
    order = sorted(lines.items(), key=lambda item: item[1][0]["median_us"], reverse=True)
    times = [points[0]["median_us"] for _, points in order]
    for place, (name, points) in enumerate(order):
        color = looks[name].color
        axes.plot([times[place]], [place], looks[name].marker, markersize=7, color=color,
                  markerfacecolor="white" if is_unsure(points[0]) else color)
        is_left = times[place] ** 2 <= min(times) * max(times)  # so there is room at its right
        axes.annotate(f"{cut(name, MOST_TICK)}: {time_text(times[place])}", (times[place], place), xytext=(8 if is_left else -8, 0),
                      textcoords="offset points", va="center", ha="left" if is_left else "right")
    axes.set_yticks([])
    axes.margins(y=0.15)
    axes.set_xscale("log")
    axes.set_xlim(min(times) / 3, max(times) * 10)
    axes.xaxis.set_major_formatter(plt.FuncFormatter(number_text))
    axes.xaxis.set_minor_formatter(plt.NullFormatter())  # there is no room for more numbers
    axes.set_xlabel("time, us (median)")
    axes.grid(True, axis="x", which="major", alpha=0.3)
    axes.set_axisbelow(True)


def draw_page(plt, panels, what, looks):
    """A page with a panel per collective and one legend."""
    has_size = {name: any(points[-1]["bytes"] > 0 for points in lines.values()) for name, lines in panels.items()}
    names = list(panels)
    names.sort(key=lambda name: (PANELS.index(name) if name in PANELS else len(PANELS), name))
    columns = min(COLUMNS, len(names))
    count = -(-len(names) // columns)
    figure, grid = plt.subplots(count, columns, figsize=(max(5.6 * columns, 11), 4.2 * count + 0.4), layout="constrained",
                                squeeze=False)
    keys = {}
    for axes, name in zip(grid.flat, names):
        axes.set_title(title_of(name))
        if has_size[name]:
            fill_axes(plt, axes, panels[name], what, looks, most_ticks=8)
            axes.set_ylabel(unit_of(panels[name], what))
            keys.update(keys_of(axes))
        else:
            fill_without_sizes(plt, axes, panels[name], looks)
    for axes in grid.flat[len(names):]:
        axes.remove()
    order = sorted(keys, key=lambda label: (label.startswith("limit"), not label.startswith("kolo"), label))
    legend_below(figure, {**{label: keys[label] for label in order}, **hollow_key(plt, panels.values())}, 11)
    return figure


def draw_bars(plt, lines, looks):
    """A group per size with a bar per library, with its time above."""
    rows = {name: {row["bytes"]: row for row in known(points)} for name, points in lines.items()}
    sizes = sizes_of_bars(lines, rows)
    order = [(name, points) for name, points in lines.items() if any(size in rows[name] for size in sizes)]
    order.sort(key=lambda item: (item[1][0]["library"] in LIMITS, item[1][0]["library"] != "kolo", item[0]))
    groups = [[name for name, _ in order if size in rows[name]] for size in sizes]
    width = 0.86 / max(map(len, groups))
    figure, axes = plt.subplots(figsize=(max(10, BAR_INCHES * len(sizes) / width), 4.6), layout="constrained")
    keys = {}
    for name, points in order:
        places = [place for place, size in enumerate(sizes) if size in rows[name]]
        shown = [rows[name][sizes[place]] for place in places]
        heights = [row["median_us"] for row in shown]
        at = [place + (groups[place].index(name) - (len(groups[place]) - 1) / 2) * width for place in places]
        hatch = "//" if points[0]["library"] in LIMITS else None
        color = looks[name].color
        solid, hollow = {"facecolor": color, "edgecolor": "white"}, {"facecolor": "white", "edgecolor": color, "linewidth": 1.6}
        bars = axes.bar(at, heights, 0.92 * width, hatch=hatch, linewidth=0, **solid)
        for bar in (bar for bar, row in zip(bars, shown) if is_unsure(row)):
            bar.set(**hollow)
        keys[name] = plt.Rectangle((0, 0), 1, 1, hatch=hatch, **(hollow if all(map(is_unsure, shown)) else solid))
        axes.bar_label(bars, [time_text(height) for height in heights], rotation=90, fontsize=7, padding=3)
    axes.set_yscale("log")
    times = [row["median_us"] for of_line in rows.values() for size, row in of_line.items() if size in sizes]
    # Bars have no start on a log axis: leave space below the shortest one.
    low, high = 10 ** math.floor(math.log10(min(times)) - 0.3), max(times)
    axes.set_ylim(low, high * (high / low) ** 0.15)  # room for the numbers
    axes.set_xticks(range(len(sizes)), [size_text(size) for size in sizes])
    number_ticks(plt, axes.yaxis)
    axes.set_ylabel(unit_of(lines, "time") + " (median)")
    axes.grid(True, axis="y", which="major", alpha=0.3)
    axes.set_axisbelow(True)
    shown = {name: [row for row in of_line.values() if row["bytes"] in sizes] for name, of_line in rows.items()}
    if hollow_key(plt, [shown]):
        keys[HOLLOW] = plt.Rectangle((0, 0), 1, 1, facecolor="white", edgecolor=HOLLOW_COLOR, linewidth=1.6)
    legend_below(figure, keys, 9)
    return figure, axes


def title_of(picture):
    return picture.replace("_overlap", " beside a computation")


def save(plt, figure, out, name, usual=("png", "svg"), dpi=130):
    for suffix in out.formats or usual:
        file = out.folder / f"{name}.{suffix}"
        part = out.folder / f".{os.getpid()}.part"
        try:
            figure.savefig(part, format=suffix, dpi=dpi)
            os.replace(part, file)
        finally:
            part.unlink(missing_ok=True)
        tell(file)
        figure.set_layout_engine("none")  # keep the layout for the next formats: it takes a third of the time
    plt.close(figure)


def draw_pictures(plt, rows, out):
    where = where_text(rows)
    charts = series_of(rows)
    bare = [key for key, lines in charts.items() if all(points[0]["library"] == "floor" for points in lines.values())]
    if 0 < len(bare) < len(charts):
        said = ", ".join(f"{picture} of {count_text(ranks, 'rank')}" for picture, ranks in bare)
        say(f"left out, as there are only floors: {said}")
        charts = {key: lines for key, lines in charts.items() if key not in bare}
    elif len(bare) > 1:
        return draw_floors(plt, charts, out, where)
    looks = looks_of(charts.values())
    for (picture, ranks), lines in charts.items():
        for what in PICTURES:
            there = of_what(lines, what)
            if not there:
                continue
            figure, axes = draw_bars(plt, there, looks) if what == "bars" else draw(plt, there, what, looks)
            axes.set_title(f"{title_of(picture)}, {count_text(ranks, 'rank')}")
            if where:
                figure.suptitle(where, fontsize=8, color="#555555")
            save(plt, figure, out, f"{picture}_{ranks}_ranks_{what}")


def draw_floors(plt, charts, out, where):
    """Draws a page for every number of ranks."""
    looks = looks_of(charts.values())
    for ranks in sorted({ranks for _, ranks in charts}):
        panels = {picture: lines for (picture, of_ranks), lines in charts.items() if of_ranks == ranks}
        draw_pages(plt, panels, looks, f"floors, {count_text(ranks, 'rank')}", where, out, f"floors_{ranks}_ranks")


def draw_pages(plt, panels, looks, title, where, out, name):
    """Draws a page of times and a page of bandwidths."""
    for what in PAGES:
        there = {name: kept for name, lines in panels.items() if (kept := of_what(lines, what))}
        if not there:
            continue
        figure = draw_page(plt, there, what, looks)
        spread = spread_text(lines for lines in there.values() if any(row["bytes"] > 0 for points in lines.values() for row in points))
        quantity = f"time (median{spread})" if what == "time" else f"bus bandwidth (of the median{spread})"
        figure.suptitle(f"{title}: {quantity}" + (f"\n{where}" if where else ""), fontsize=13)
        save(plt, figure, out, f"{name}_{what}", usual=("png",), dpi=100)


def draw_overviews(plt, rows, out):
    where = where_text(rows)
    pages = pages_of(rows)
    if not pages:
        refuse("nothing to draw: an overview takes rows of kolo's or of peers; floors alone are drawn without --overview")
    looks = looks_of(lines for panels in pages.values() for lines in panels.values())
    taken = set()
    for (transport, ranks), panels in pages.items():
        name = file_name(f"{transport}_{ranks}_ranks", taken)
        draw_pages(plt, panels, looks, f"{cut(transport, MOST_TITLE)}, {count_text(ranks, 'rank')}", where, out, name)


def draw_tables(plt, rows, out):
    where = where_text(rows)
    for name, figure in charts_of_table(plt, rows):
        if where:
            figure.text(0.01, 0.995, where, fontsize=8, color="#555555", va="top")
        save(plt, figure, out, name)


def file_name(text, taken):
    """A file name that is not taken and cannot lead to another folder."""
    name = re.sub(r"^\.|[^\w.,+@=:-]", "_", text)
    name = name if len(name) <= MOST_PATH else name[-MOST_PATH:]
    while name in taken:
        name += "_"
    taken.add(name)
    return name


def remove_empty(folders):
    for folder in folders:
        with contextlib.suppress(OSError):  # not empty, or missing
            folder.rmdir()


def formats_of(words):
    """The formats in `png,svg`; empty: the defaults."""
    formats = [word for word in (words or "").split(",") if word]
    for word in formats:
        if word not in FORMATS:
            refuse(f"--format {word}: expected one of {', '.join(FORMATS)}")
    return list(dict.fromkeys(formats))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="+")
    parser.add_argument("--out", default="plots")
    parser.add_argument("--overview", action="store_true")
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--format")
    arguments = parser.parse_args()
    folder = Path(arguments.out)
    made = [path for path in (folder, *folder.parents) if not path.exists()]  # innermost first

    def end_at_once(number, _):  # an exception here would be printed and dropped by callbacks of matplotlib
        (folder / f".{os.getpid()}.part").unlink(missing_ok=True)
        remove_empty(made)
        os._exit(128 + number)

    for ending in (signal.SIGINT, signal.SIGTERM):
        signal.signal(ending, end_at_once)
    formats = formats_of(arguments.format)
    if find_spec("matplotlib") is None:  # before reading files, which may be pipes
        # Distributions install it for their own Python, which may not be the first in PATH.
        if os.path.exists(SYSTEM_PYTHON) and os.path.realpath(SYSTEM_PYTHON) != os.path.realpath(sys.executable):
            os.execv(SYSTEM_PYTHON, [SYSTEM_PYTHON, "-B", *sys.argv])
        fail("matplotlib is missing; cmake/setup.sh --with plots installs it")
    rows, wrong = read_rows(arguments.files, 0 if arguments.overview else 1)
    os.environ["MPLBACKEND"] = "Agg"  # no windows, whatever was set
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        fail(f"matplotlib cannot be imported: {error}")
    if wrong:
        say(f"left out: {count_text(wrong, 'row')} with wrong results, whose times say nothing")
    if not arguments.overview:  # overviews have no floors
        say_what_is_unknown(rows)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        drawing = draw_tables if arguments.table else draw_overviews if arguments.overview else draw_pictures
        drawing(plt, rows, Out(folder, formats))
    except OSError as error:
        fail(f"cannot write to {folder}: {error.strerror}")
    finally:
        remove_empty(made)


if __name__ == "__main__":
    main()
