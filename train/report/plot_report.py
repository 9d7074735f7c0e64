#!/usr/bin/env python3
"""Draws the plots of a report: plot_report.py FOLDER reads FOLDER/report.json and writes PNG and SVG files beside it.

    throughput   images per second of each arm, and what each worker contributes
    iteration    where an iteration's time goes
    learning     loss and accuracy, over epochs and over seconds of training
    bytes        what each kind of rank sends per iteration, measured and by the strategy's formula

or, of a report of `kolo-train crossover`,

    crossover    time of an exchange over the number of dedicated servers: predicted as lines, measured as points

or, of a report of an experiment, the plot of plot_experiments.py.

Each file is written completely or not at all. Exit codes: 0 success, 1 the report cannot be read or the folder not written,
3 there is no matplotlib.
"""

import json
import os
import re
import signal
import sys
import textwrap
from collections import OrderedDict
from pathlib import Path

os.environ["MPLBACKEND"] = "Agg"  # whatever it was: windows are not wanted here
try:
    import matplotlib.colors
    from matplotlib import pyplot
except ImportError:
    sys.exit(3)

# Colours of arms: Okabe and Ito's, which are distinguishable for colour-blind readers and in grey.
COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#F0E442", "#000000"]
# Colours of parts: different from those of arms, and each lighter or darker than its neighbours.
PART_COLOURS = {"data": "#999999", "forward": "#BCBDDC", "backward": "#54278F", "exposed": "#DF65B0",
                "optimizer": "#8C6D31", "other": "#E0E0E0"}
BYTES_COLOUR = "#4D4D4D"
MARKERS = ["o", "s", "D", "^"]
PART_LABELS = {"exposed": "exposed communication"}
MIB = 1024.0 * 1024.0
EQUALLY_CLEAR = 0.18  # the luminance on which black and white text have the same contrast
DOUBTS = ("WARNING", "INCOMPLETE")  # with which a finding begins that a picture must not be without
DOUBT_LETTERS = 90  # of a line
KINDS = ("png", "svg")  # of each plot's files
LEGEND_POINTS = 9
LEGEND_KEY, LEGEND_LETTER, LEGEND_LINE = 5.5, 0.6, 1.6  # widths and a line's height, in font sizes
POINTS_PER_INCH = 72


def arms_of(report):
    """Maps each arm to its runs, one per seed, in the order of the runs."""
    arms = OrderedDict()
    for run in report["runs"]:
        arms.setdefault(run["arm"], []).append(run)
    return arms


def mean(values):
    values = list(values)
    return sum(values) / len(values) if values else 0.0


def spread(values):
    """Distances from the mean to the smallest and the largest value, for error bars."""
    middle = mean(values)
    return [[middle - min(values)], [max(values) - middle]]


def of_kind(run, is_worker):
    return [rank for rank in run["ranks"] if rank["is_worker"] == is_worker]


def tick_name(arm):
    """The words of an arm on separate lines, so that neighbouring labels do not overlap."""
    return arm.replace(":", ":\n")


def without_folders(text):
    """Names of files without their folders, which say nothing to a reader of the picture."""
    return re.sub(r"\((?:[^()]*/)([^/()]+)\)", r"(\1)", text)


def short_number(value):
    """Three digits, or a whole number."""
    return f"{value:,.0f}" if abs(value) >= 99.95 else f"{value:.3g}"


def subtitle(report):
    terms = report["runs"][0]["terms"]
    # Arms of PyTorch compute and communicate in their own ways, and one rank alone has no transport.
    shared = [name for name in ("compute", "transport") if len({run["terms"].get(name, "") for run in report["runs"]}) == 1 and name in terms]
    how = "; ".join(terms[name] if name == "compute" else f"{name} {terms[name]}" for name in shared)
    doubts = [line for finding in report.get("findings", []) if finding.startswith(DOUBTS) for line in textwrap.wrap(finding, DOUBT_LETTERS)]
    return "\n".join([f"{terms['model']}; {terms['batch']}", without_folders(terms["data"]), *([how] if how else []), *doubts])


def time_text(ms):
    """The same format as in the table."""
    return f"{ms:,.1f}"


def colour_on(background, alpha=1.0):
    """The colour of text on a background: black or white, whichever has more contrast."""
    light = [1 - alpha + alpha * part for part in matplotlib.colors.to_rgb(background)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in light]
    luminance = sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear))
    return "black" if luminance > EQUALLY_CLEAR else "white"


def legend_below(figure, axis):
    """Draws the legend below the axes; the figure grows by its height."""
    handles, labels = axis.get_legend_handles_labels()
    inches = LEGEND_POINTS / POINTS_PER_INCH
    columns = max(1, int(figure.get_figwidth() / (inches * (LEGEND_KEY + LEGEND_LETTER * max(map(len, labels))))))
    lines = -(-len(labels) // columns)
    below = inches * (LEGEND_LINE * lines + 1)
    figure.set_figheight(figure.get_figheight() + below)
    share = below / figure.get_figheight()
    figure.get_layout_engine().set(rect=(0, share, 1, 1 - share))
    figure.legend(handles, labels, loc="lower center", bbox_to_anchor=(0.5, 0), bbox_transform=figure.transFigure,
                  ncol=-(-len(labels) // lines), fontsize=LEGEND_POINTS, frameon=False, handlelength=3)


def finish(figure, folder, name):
    for kind in KINDS:
        part = folder / f".{name}.{kind}.{os.getpid()}.part"  # another run may draw into the same folder
        try:
            figure.savefig(part, format=kind, dpi=150, bbox_inches="tight", metadata={"Date": None} if kind == "svg" else None)
            os.replace(part, folder / f"{name}.{kind}")
        finally:
            part.unlink(missing_ok=True)
        figure.set_layout_engine("none")  # all stays where the first one had it
    pyplot.close(figure)


def new_plot(title, note, size=(7.2, 4.2), panels=(1, 1)):
    figure, axes = pyplot.subplots(*panels, figsize=size, squeeze=False, constrained_layout=True)
    figure.suptitle(title, fontsize=12, fontweight="bold")
    figure.text(0.5, -0.01, note, ha="center", va="top", fontsize=7.5, color="#555555")
    for axis in axes.flat:
        axis.spines[["top", "right"]].set_visible(False)
        axis.set_axisbelow(True)
    return figure, axes


def draw_throughput(report, folder):
    arms = arms_of(report)
    most = max(map(len, arms.values()))
    bars = f"\nnumbers: means over {most} seeds; black lines: from the slowest to the fastest of them" if most > 1 else ""
    figure, axes = new_plot("Images per second: each worker a block, all together on top", subtitle(report) + bars,
                            size=(max(5.0, 1.8 + 1.3 * len(arms)), 4.2))
    axis = axes[0][0]
    for x, (arm, runs) in enumerate(arms.items()):
        workers = [mean(of_kind(run, True)[i]["images_per_second"] for run in runs) for i in range(runs[0]["workers"])]
        workers = [value for value in workers if value > 0]  # of a pipeline, the first stages count the samples
        bottom = 0.0
        for i, value in enumerate(workers):
            colour, alpha = COLOURS[x % len(COLOURS)], 1.0 if i % 2 == 0 else 0.75
            axis.bar(x, value, 0.6, bottom=bottom, color=colour, alpha=alpha, edgecolor="white")
            if len(workers) <= 8:
                axis.text(x, bottom + value / 2, f"{value:.1f}", ha="center", va="center", color=colour_on(colour, alpha), fontsize=8)
            bottom += value
        totals = [run["images_per_second"] for run in runs]
        top = bottom
        if len(runs) > 1:
            ends = spread(totals)
            top += ends[1][0]
            axis.errorbar(x + 0.22, bottom, yerr=ends, color="black", capsize=4)  # beside the numbers
        axis.annotate(f"{mean(totals):.1f}", (x, top), xytext=(0, 3), textcoords="offset points", ha="center", va="bottom",
                      fontweight="bold")
    axis.set_xticks(range(len(arms)), [tick_name(arm) for arm in arms])
    axis.set_ylabel("images/s")
    axis.grid(axis="y", alpha=0.3)
    axis.margins(y=0.12)
    finish(figure, folder, "throughput")


def draw_iteration(report, folder):
    arms = arms_of(report)
    figure, axes = new_plot("Where an iteration's time goes (mean over workers)", subtitle(report),
                            size=(8.8, 1.9 + 0.7 * len(arms)))
    axis = axes[0][0]
    longest = 1e3 * max(rank["step_seconds"] for run in report["runs"] for rank in of_kind(run, True))
    for y, (arm, runs) in enumerate(arms.items()):
        left = 0.0
        for index, part in enumerate(report["part_names"]):
            value = 1e3 * mean(rank["parts"][index] for run in runs for rank in of_kind(run, True))
            colour = PART_COLOURS.get(part, "#000000")
            axis.barh(y, value, 0.6, left=left, color=colour, edgecolor="white", linewidth=0.5,
                      label=PART_LABELS.get(part, part) if y == 0 else None)
            if value > 0.04 * longest:
                axis.text(left + value / 2, y, time_text(value), ha="center", va="center", color=colour_on(colour), fontsize=8)
            left += value
        axis.text(left, y, f" {time_text(left)} ms", va="center", fontsize=9, fontweight="bold")
    axis.set_yticks(range(len(arms)), list(arms))
    axis.invert_yaxis()
    axis.set_xlabel("ms per iteration")
    axis.margins(x=0.12)
    axis.grid(axis="x", alpha=0.3)
    axis.legend(loc="lower center", bbox_to_anchor=(0.45, 1.0), ncol=6, fontsize=8, frameon=False, handlelength=1.2,
                columnspacing=1.2)
    finish(figure, folder, "iteration")


def draw_learning(report, folder):
    arms = arms_of(report)
    figure, axes = new_plot("Learning, over epochs and over seconds of training",
                            subtitle(report), size=(9.6, 6.4), panels=(2, 2))
    styles = ["-", "--", ":", "-."]
    for index, (arm, runs) in enumerate(arms.items()):
        for repetition, run in enumerate(runs):
            colour, style = COLOURS[index % len(COLOURS)], styles[index % len(styles)]
            # If arms have the same values, the marker of each is a ring around the marker of the next.
            look = {"color": colour, "linestyle": style, "linewidth": 2.6 - 0.6 * min(index, 2), "marker": MARKERS[index % len(MARKERS)],
                    "markersize": 3 + 3 * (len(arms) - 1 - index), "markerfacecolor": "white" if index + 1 < len(arms) else colour,
                    "alpha": 1.0 if repetition == 0 else 0.4, "label": arm if repetition == 0 else None}
            evaluated = [epoch for epoch in run["epochs"] if epoch["is_evaluated"]]
            for column, key in enumerate(("epoch", "training_seconds")):
                axes[0][column].plot([e[key] for e in run["epochs"]], [e["train_loss"] for e in run["epochs"]], **look)
                axes[1][column].plot([e[key] for e in evaluated], [100 * e["test_accuracy"] for e in evaluated], **look)
    for column, label in enumerate(("epoch", "seconds of training")):
        axes[0][column].set_ylabel("training loss")
        axes[1][column].set_ylabel("test accuracy, %")
        for axis in (axes[0][column], axes[1][column]):
            axis.set_xlabel(label)
            axis.grid(alpha=0.3)
            if column == 0:
                axis.xaxis.get_major_locator().set_params(integer=True, min_n_ticks=1)
                axis.set_xlim(0.5, 0.5 + max(len(run["epochs"]) for runs in arms.values() for run in runs))
            else:
                axis.set_xlim(0, 1.04 * max(epoch["training_seconds"] for run in report["runs"] for epoch in run["epochs"]))
    if any(len(runs) > 1 for runs in arms.values()):
        axes[0][0].plot([], [], color="black", alpha=0.4, marker="o", markersize=4, label="faded: other seeds")
    legend_below(figure, axes[0][0])
    finish(figure, folder, "learning")


def draw_bytes(report, folder):
    rows = []  # label, measured, formula
    for arm, runs in arms_of(report).items():
        if runs[0].get("program", "kolo") != "kolo":
            continue  # PyTorch counts no bytes
        for is_worker, kind in ((True, "worker"), (False, "server")):
            ranks = [rank for run in runs for rank in of_kind(run, is_worker)]
            if ranks:
                rows.append((f"{tick_name(arm)}\neach {kind}", mean(r["bytes_sent"] for r in ranks) / MIB,
                             mean(r["formula_sent"] for r in ranks) / MIB))
    figure, axes = new_plot("MiB sent per iteration: counted by the transport, and by the formula", subtitle(report),
                            size=(max(5.5, 1.8 + 1.1 * len(rows)), 4.2))
    axis = axes[0][0]
    if not rows:
        axis.set_axis_off()
        axis.text(0.5, 0.5, "not counted: PyTorch has no count of bytes", ha="center", va="center", transform=axis.transAxes)
        return finish(figure, folder, "bytes")
    for x, (_, measured, formula) in enumerate(rows):
        axis.bar(x - 0.2, measured, 0.38, color=BYTES_COLOUR, label="counted" if x == 0 else None)
        axis.bar(x + 0.2, formula, 0.38, color="white", edgecolor=BYTES_COLOUR, hatch="///", label="formula" if x == 0 else None)
        axis.text(x, max(measured, formula), f"{measured:.4g}", ha="center", va="bottom", fontsize=9)
    axis.set_xticks(range(len(rows)), [row[0] for row in rows], fontsize=9)
    axis.set_ylabel("MiB")
    axis.grid(axis="y", alpha=0.3)
    axis.margins(y=0.15)
    legend_below(figure, axis)
    return finish(figure, folder, "bytes")


def draw_crossover(report, folder):
    note = "\n".join([f"{report['ranks']} workers, {report['bytes']:,} bytes; {report['transport']}; lines: predicted; points: measured",
                      *report["findings"]])
    figure, axes = new_plot("Time of one exchange of gradients, without training", note)
    axis = axes[0][0]
    arms = OrderedDict()
    for point in report["points"]:
        arms.setdefault(point["arm"], []).append(point)
    for index, (arm, points) in enumerate(arms.items()):
        look = {"color": COLOURS[index], "marker": MARKERS[index], "markersize": 8 - index, "linestyle": "none"}
        servers = [point["servers"] for point in points]
        predicted = [1e3 * point["predicted_seconds"] for point in points]
        # An arm without dedicated servers takes as long for any number of them.
        if len(points) == 1 and servers == [0]:
            servers, predicted = [0, report["ranks"]], 2 * predicted
        axis.plot(servers, predicted, color=COLOURS[index], linestyle="--" if index % 2 else "-", label=arm)
        measured = [point for point in points if "measured_seconds" in point]
        axis.plot([point["servers"] for point in measured], [1e3 * point["measured_seconds"] for point in measured], **look)
    axis.set_xlabel("dedicated servers; 0: none")
    axis.set_ylabel("ms")
    axis.set_ylim(bottom=0)
    axis.xaxis.get_major_locator().set_params(integer=True)
    axis.grid(alpha=0.3)
    legend_below(figure, axis)
    finish(figure, folder, "crossover")


def draw_experiment(report, folder):
    sys.dont_write_bytecode = True  # the scripts' folder may be shared
    import plot_experiments  # imports this file

    plot_experiments.draw(report, folder)


FIGURES = {"kolo-report-1": (draw_throughput, draw_iteration, draw_learning, draw_bytes), "kolo-crossover-1": (draw_crossover,),
           "kolo-experiment-1": (draw_experiment,)}


def end_at_once(folder, number):
    """Ends without an exception, which a callback of matplotlib would print and drop."""
    for part in folder.glob(f".*.{os.getpid()}.part"):
        part.unlink(missing_ok=True)
    os._exit(128 + number)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    folder = Path(sys.argv[1])
    signal.signal(signal.SIGTERM, lambda number, _: end_at_once(folder, number))
    try:
        report = json.loads((folder / "report.json").read_text(encoding="utf-8"))
        for draw in FIGURES[report["format"]]:
            draw(report, folder)
    except OSError as error:
        sys.exit(f"plot_report: {folder}: {error.strerror or error}")
    except (ValueError, KeyError) as error:
        sys.exit(f"plot_report: {folder}: {error!r}")


if __name__ == "__main__":
    main()
