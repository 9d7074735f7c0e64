"""Drawing of the spread of a library's times: as a band, or with many lines as strokes side by side."""

import math

from plot_lines import has_bands, known, libraries

STROKES_SHARE = 0.7  # share of the distance between two sizes that all strokes take


def draw_band(axes, points, quantity, color):
    sizes, lows, highs = ([row["bytes"] for row in points], [quantity(row, "p10_us") for row in points],
                          [quantity(row, "p90_us") for row in points])
    if len(points) == 1:
        axes.vlines(sizes, lows, highs, color=color, alpha=0.3, linewidth=5, zorder=1.5)  # beneath all markers
    else:
        axes.fill_between(sizes, lows, highs, color=color, alpha=0.15, linewidth=0)


def strokes(number, count, octaves):
    """A function that draws a spread as a stroke at each size. The strokes of `count` lines stand side by side; this is the
    `number`th. `octaves` is the distance between two sizes."""
    aside = 2 ** (octaves * STROKES_SHARE * ((number + 0.5) / count - 0.5))

    def draw_strokes(axes, points, quantity, color):
        axes.vlines([row["bytes"] * aside for row in points], [quantity(row, "p10_us") for row in points],
                    [quantity(row, "p90_us") for row in points], color=color, linewidth=1.2, alpha=0.8, zorder=1.5)
    return draw_strokes


def spreads_of(lines, order):
    """{name: function that draws its spread} for libraries; strokes are in the order of `order`, from left to right."""
    names = sorted(libraries(lines), key=order.index)
    if has_bands(lines):
        return {name: draw_band for name in names}
    sizes = sorted({row["bytes"] for name in names for row in known(lines[name])} - {0})
    octaves = min((math.log2(larger / smaller) for smaller, larger in zip(sizes, sizes[1:])), default=1)
    return {name: strokes(number, len(names), octaves) for number, name in enumerate(names)}
