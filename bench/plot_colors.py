"""The colours of plot.py's lines: a library's own over each transport, and for what has none one that is no other line's."""

import colorsys
from collections import defaultdict

from rows import name_of

COLORS = {("kolo", "shm"): "#0b6e4f", ("kolo", "tcp"): "#1f5fbf", ("kolo", "inproc"): "#7a4fb5",
          ("gloo", "tcp"): "#d1495b", ("gloo:ring", "tcp"): "#a02f43",
          ("gloo:bcube", "tcp"): "#7d1d2e", ("openmpi:ring", "shm"): "#a85f0a", ("openmpi:ring", "tcp"): "#7a4412",
          ("openmpi", "shm"): "#e08a1e", ("openmpi", "tcp"): "#b5651d",
          ("openmpi:ucx", "shm"): "#f2b95f", ("openmpi:ucx", "tcp"): "#d9a441", ("mpich", "shm"): "#8c4a9e",
          ("mpich", "tcp"): "#c07bd0", ("limit", "shm"): "#404040", ("limit", "tcp"): "#2c4a73",
          ("floor", "shm"): "#6b6b6b", ("floor", "tcp"): "#a0a0a0"}
OTHER_COLORS = {"kolo": ["#17a589", "#2e86de", "#7cb342", "#00acc1", "#34495e", "#5c6bc0", "#00e5a0", "#9fa8da"],
                "limit": ["#808080", "#5f7f9f", "#9f7f5f"], "floor": ["#8c8c8c", "#6f8fb3", "#b08f5f"],
                "operation alone": ["#404040"], "computation alone": ["#9a9a9a"],
                "peer": ["#e57399", "#c2185b", "#8d6e63", "#ff7043", "#ba68c8", "#bcaaa4", "#5d4037", "#f48fb1"]}
HUES = 24
LIGHTNESSES = (0.3, 0.45, 0.6, 0.75)
SATURATION = 0.65
# Where all of the above are taken: any of these, the farthest from those.
SPARE = ["#" + "".join(f"{round(255 * part):02x}" for part in colorsys.hls_to_rgb(hue / HUES, lightness, SATURATION))
         for lightness in LIGHTNESSES for hue in range(HUES)]


def distance(one, other):
    return sum((int(one[at:at + 2], 16) - int(other[at:at + 2], 16)) ** 2 for at in (1, 3, 5))


def farthest_from(taken):
    return max(SPARE, key=lambda color: min((distance(color, other) for other in taken), default=0))


def colors_of(charts):
    """{name: its colour}, the same in all charts of a set. Of several lines of a library over a transport the plain one, or
    the first, has the library's colour, the others what is left: none that is another line's."""
    firsts = {name: points[0] for lines in charts for name, points in lines.items()}
    colors = {}
    for name, first in sorted(firsts.items(), key=lambda item: item[0]):  # the plain one is the shortest, and so before others
        own = (name_of(first), first["transport"])
        if own in COLORS and COLORS[own] not in colors.values():
            colors[name] = COLORS[own]
    left = defaultdict(list, {kind: list(others) for kind, others in OTHER_COLORS.items()})
    for name in sorted(set(firsts) - set(colors)):
        library = firsts[name]["library"]
        others = left[library if library in OTHER_COLORS else "peer"]
        colors[name] = others.pop(0) if others else farthest_from(colors.values())
    return colors
