"""How the spread of a library's times is drawn: as a band, or, of many lines, as strokes side by side."""

import math

from plot_lines import has_bands, known, libraries

STROKES_SHARE = 0.7  # of the way from one size to the next, for those of all lines


def draw_band(axes, points, quantity, color):
    sizes, lows, highs = ([row["bytes"] for row in points], [quantity(row, "p10_us") for row in points],
                          [quantity(row, "p90_us") for row in points])
    if len(points) == 1:
        axes.vlines(sizes, lows, highs, color=color, alpha=0.3, linewidth=5, zorder=1.5)  # beneath all markers
    else:
        axes.fill_between(sizes, lows, highs, color=color, alpha=0.15, linewidth=0)


def strokes(number, count, octaves):
    """Draws a spread as a stroke at each size, those of `count` lines side by side, this the `number`th; `octaves`: from one size to
    the next."""
    aside = 2 ** (octaves * STROKES_SHARE * ((number + 0.5) / count - 0.5))

    def draw_strokes(axes, points, quantity, color):
        axes.vlines([row["bytes"] * aside for row in points], [quantity(row, "p10_us") for row in points],
                    [quantity(row, "p90_us") for row in points], color=color, linewidth=1.2, alpha=0.8, zorder=1.5)
    return draw_strokes


def spreads_of(lines, order):
    """{name: what draws the spread of its times}, of libraries; those that come later in `order` stand further to the right."""
    names = sorted(libraries(lines), key=order.index)
    if has_bands(lines):
        return {name: draw_band for name in names}
    sizes = sorted({row["bytes"] for name in names for row in known(lines[name])} - {0})
    octaves = min((math.log2(larger / smaller) for smaller, larger in zip(sizes, sizes[1:])), default=1)
    return {name: strokes(number, len(names), octaves) for number, name in enumerate(names)}
