"""Plots of the experiments sweep, scale, scale-data and ladder, for plot_report.py, which draws a report's plots.

    sweep        images per second and peak memory over the batch size
    scale        images per second over the ranks beside the ideal line, and efficiency
    scale_data   where the time of an epoch goes, by amount of data; and the time to the target accuracy
    ladder       where an iteration's time goes, for each rung of sync=
"""

import textwrap
from collections import OrderedDict

from plot_report import (COLOURS, MARKERS, PART_COLOURS, PART_LABELS, DOUBT_LETTERS, DOUBTS, colour_on, finish, legend_below, new_plot,
                         short_number, tick_name, without_folders)


def note_of(report):
    terms = report["terms"]
    doubts = [line for finding in report["findings"] if finding.startswith(DOUBTS) for line in textwrap.wrap(finding, DOUBT_LETTERS)]
    known = [without_folders(terms[name]) for name in ("data", "batch", "compute") if name in terms]
    return "\n".join(["; ".join(known[:2]), *known[2:], *doubts])


def rows_by_arm(report):
    arms = OrderedDict()
    for row in report["rows"]:
        arms.setdefault(row["arm"], []).append(row)
    return arms


def whole_ticks(axis, values):
    """Ticks at the values, which are spread by their ratios."""
    axis.set_xscale("log", base=2)
    axis.minorticks_off()
    axis.set_xticks(values, [f"{value:g}" for value in values])


def draw_sweep(report, folder):
    figure, axes = new_plot(report["title"], note_of(report), size=(7.2, 5.6), panels=(2, 1))
    rows = [row for row in report["rows"] if "images_per_second" in row]
    sizes = [row["batch_size"] for row in report["rows"]]
    for axis, key, label, colour in ((axes[0][0], "images_per_second", "images/s", COLOURS[0]), (axes[1][0], "peak_mib", "peak memory, MiB", COLOURS[1])):
        axis.plot([row["batch_size"] for row in rows], [row[key] for row in rows], marker="o", color=colour)
        for row in rows:
            axis.annotate(f"{row[key]:,.0f}" if row[key] >= 100 else f"{row[key]:.1f}", (row["batch_size"], row[key]), xytext=(0, 6),
                          textcoords="offset points", ha="center", fontsize=8, fontweight="bold" if row["note"] == "best" else None)
        whole_ticks(axis, sizes)
        axis.margins(x=0.08, y=0.2)
        axis.set_ylim(bottom=0)
        axis.set_ylabel(label)
        axis.grid(alpha=0.3)
        for row in report["rows"]:
            if row not in rows:
                axis.axvline(row["batch_size"], color="#555555", linestyle=":")
                axis.annotate(row["note"], (row["batch_size"], 0), xytext=(-4, 6), textcoords="offset points", rotation=90, ha="right", fontsize=7)
    axes[1][0].set_xlabel("batch size")
    finish(figure, folder, "sweep")


def draw_scale(report, folder):
    figure, axes = new_plot(report["title"], note_of(report), size=(9.6, 4.4), panels=(1, 2))
    speed, efficiency = axes[0]
    arms = rows_by_arm(report)
    for index, (arm, rows) in enumerate(arms.items()):
        ranks = [row["ranks"] for row in rows]
        colour, marker = COLOURS[index % len(COLOURS)], MARKERS[index % len(MARKERS)]
        speed.plot(ranks, [row["images_per_second"] for row in rows], color=colour, marker=marker, label=arm)
        speed.plot(ranks, [row["ideal_images_per_second"] for row in rows], color=colour, linestyle="--", linewidth=1, alpha=0.7)
        efficiency.plot(ranks, [row["efficiency_percent"] for row in rows], color=colour, marker=marker)
        for axis, key in ((speed, "images_per_second"), (efficiency, "efficiency_percent")):
            crowded = [row for row in rows if row["note"]]
            axis.plot([row["ranks"] for row in crowded], [row[key] for row in crowded], color=colour, marker="o", markersize=13,
                      markerfacecolor="none", linestyle="none")
    speed.plot([], [], color="black", linestyle="--", linewidth=1, label="ideal, from the arm's first point")
    if any(row["note"] for row in report["rows"]):
        speed.plot([], [], color="black", marker="o", markersize=10, markerfacecolor="none", linestyle="none", label="more busy threads than cores")
    efficiency.axhline(100, color="black", linestyle="--", linewidth=1)
    for axis, label in ((speed, "images/s, all workers"), (efficiency, "efficiency, %")):
        whole_ticks(axis, sorted({row["ranks"] for row in report["rows"]}))
        axis.margins(x=0.08, y=0.12)
        axis.set_ylim(bottom=0)
        axis.set_xlabel("ranks")
        axis.set_ylabel(label)
        axis.grid(alpha=0.3)
    legend_below(figure, speed)
    finish(figure, folder, "scale")


def stacked_bars(axis, report, labels, unit):
    """A horizontal bar per row, of its parts."""
    totals = [sum(row[f"part_{part}"] for part in report["part_names"]) for row in report["rows"]]
    for y, (row, total) in enumerate(zip(report["rows"], totals)):
        left = 0.0
        for part in report["part_names"]:
            value, colour = row[f"part_{part}"], PART_COLOURS[part]
            axis.barh(y, value, 0.65, left=left, color=colour, edgecolor="white", linewidth=0.5, label=PART_LABELS.get(part, part) if y == 0 else None)
            if value > 0.05 * max(totals):
                axis.text(left + value / 2, y, short_number(value), ha="center", va="center", color=colour_on(colour), fontsize=8)
            left += value
        axis.text(left, y, f" {short_number(total)} {unit}", va="center", fontsize=9, fontweight="bold")
    axis.set_yticks(range(len(labels)), labels)
    axis.invert_yaxis()
    axis.margins(x=0.14)
    axis.grid(axis="x", alpha=0.3)


def draw_scale_data(report, folder):
    rows = report["rows"]
    has_target = any("target_seconds" in row for row in rows)
    figure, axes = new_plot(report["title"], note_of(report), size=(8.8 if not has_target else 10.4, 2.2 + 0.45 * len(rows)),
                            panels=(1, 2 if has_target else 1))
    bars = axes[0][0]
    stacked_bars(bars, report, [f"{row['arm']}, {row['train_size']:g}" for row in rows], "s")
    bars.set_xlabel("seconds of an epoch")
    bars.set_ylabel("arm, training samples")
    if has_target:
        for y, row in enumerate(rows):
            seconds = row.get("target_seconds")
            axes[0][1].barh(y, seconds or 0, 0.65, color=COLOURS[0])
            axes[0][1].text(seconds or 0, y, f" {short_number(seconds)} s" if seconds is not None else " not reached", va="center", fontsize=9)
        axes[0][1].set_yticks(range(len(rows)), [""] * len(rows))
        axes[0][1].invert_yaxis()
        axes[0][1].margins(x=0.25)
        axes[0][1].set_xlabel("seconds of training " + next(c["label"] for c in report["columns"] if c["key"] == "target_seconds").rstrip(", s"))
        axes[0][1].grid(axis="x", alpha=0.3)
    legend_below(figure, bars)
    finish(figure, folder, "scale_data")


def draw_ladder(report, folder):
    figure, axes = new_plot("Where an iteration's time goes: " + report["title"], note_of(report), size=(8.8, 1.9 + 0.55 * len(report["rows"])))
    stacked_bars(axes[0][0], report, [tick_name(row["arm"]) for row in report["rows"]], "ms")
    axes[0][0].set_xlabel("ms per iteration")
    legend_below(figure, axes[0][0])
    finish(figure, folder, "ladder")


DRAW = {"sweep": draw_sweep, "scale": draw_scale, "scale-data": draw_scale_data, "ladder": draw_ladder}


def draw(report, folder):
    DRAW[report["experiment"]](report, folder)
