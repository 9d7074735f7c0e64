"""Axes and legends of plot.py: numbers on a log axis, the marks of uncertain rows, a legend below the axes."""

import math

from plot_lines import is_unsure, known

HOLLOW = "hollow: cores moved or were disturbed"
HOLLOW_COLOR = "#555555"  # in the legend: the color of no line
LABELLED_DECADES = 3.5  # longer axes have numbers only at powers of ten and above the last one
POINTS_PER_INCH = 72
LEGEND_LINE, LEGEND_LETTER, LEGEND_KEY, LEGEND_STROKE = 1.5, 0.62, 5.5, 3  # a line's height, and widths, in font sizes


def cut(text, most):
    return text if len(text) <= most else text[:most - 3].rstrip("\\") + "..."


def number_text(value, _position=None):
    """The number of a tick, never in the form 1e-05."""
    return f"{value:,.0f}" if value >= 1000 else f"{value:.10f}".rstrip("0").rstrip(".")


def time_text(value):
    """At least three digits: 0.200 beside 0.261."""
    return f"{value:,.0f}" if value >= 99.95 else f"{value:#.3g}"


def number_ticks(plt, axis):
    """Puts numbers also at ticks between powers of ten if an axis has few of these, and above the last power of ten."""
    class Between(plt.LogFormatter):
        def __call__(self, x, pos=None):
            low, high = sorted(axis.get_view_interval())
            if math.log10(high / low) < 1:
                return number_text(x) if super().__call__(x, pos) else ""
            is_above = x > 10 ** math.floor(math.log10(high))
            digit = round(x / 10 ** math.floor(math.log10(x) + 1e-9))
            return number_text(x) if digit in (2, 5) and (is_above or math.log10(high / low) < LABELLED_DECADES) else ""
    axis.set_major_formatter(plt.FuncFormatter(number_text))
    axis.set_minor_locator(plt.LogLocator(subs=range(2, 10), numticks=99))
    axis.set_minor_formatter(Between())
    axis.set_tick_params(which="minor", labelsize=8)


def hollow_key(plt, charts):
    """{label: handle} for hollow marks; empty if there are none."""
    if not any(is_unsure(row) for lines in charts for points in lines.values() for row in known(points)):
        return {}
    return {HOLLOW: plt.Line2D([], [], linestyle="none", marker="o", markerfacecolor="white", markeredgecolor=HOLLOW_COLOR)}


def legend_below(figure, keys, font_points):
    """Draws a legend below the axes in as many columns as fit; the figure grows by its height."""
    inches = font_points / POINTS_PER_INCH
    room = int((figure.get_figwidth() / inches - LEGEND_KEY) / LEGEND_LETTER)
    keys = {label if len(label) <= room else f"{number}: {cut(label, room - 5)}": handle
            for number, (label, handle) in enumerate(keys.items(), 1)}
    widest = (LEGEND_KEY + LEGEND_LETTER * max(map(len, keys), default=0)) * inches
    lines = -(-len(keys) // max(1, int(figure.get_figwidth() / widest)))
    figure.legend(keys.values(), keys.keys(), loc="lower center", ncols=-(-len(keys) // lines) if keys else 1, frameon=False,
                  fontsize=font_points, handlelength=LEGEND_STROKE)
    below = (lines * LEGEND_LINE + 1) * inches
    figure.set_figheight(figure.get_figheight() + below)
    share = below / figure.get_figheight()
    figure.get_layout_engine().set(rect=(0, share, 1, 1 - share))


def keys_of(axes):
    return {label: handle for handle, label in zip(*axes.get_legend_handles_labels())}
