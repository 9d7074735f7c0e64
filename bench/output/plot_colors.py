"""Colors and markers of plot.py's lines.

A library has its own color and marker for each transport; all other lines get unused ones. Lines of libraries are solid. Limits
are gray or muted and dashed, with markers only at isolated points.
"""

import colorsys
from collections import defaultdict
from typing import NamedTuple

from plot_lines import LIMITS
from rows import name_of


class Look(NamedTuple):
    color: str
    marker: str
    dashes: tuple = ()


def limit(color, *dashes):
    return Look(color, "D", dashes)


LOOKS = {"kolo over shm": Look("#0b6e4f", "o"), "kolo over tcp": Look("#1f5fbf", "s"), "kolo over inproc": Look("#7a4fb5", "^"),
         "kolo over ucx": Look("#4fc3f7", "v"), "kolo over ofi": Look("#8bc34a", ">"),
         "gloo over tcp": Look("#d1495b", "D"), "gloo:ring over tcp": Look("#a02f43", "d"), "gloo:bcube over tcp": Look("#7d1d2e", "h"),
         "openmpi over shm": Look("#e08a1e", "^"), "openmpi over tcp": Look("#b5651d", "^"),
         "openmpi:ring over shm": Look("#a85f0a", "v"), "openmpi:ring over tcp": Look("#7a4412", "v"),
         "openmpi:ucx over shm": Look("#f2b95f", "<"), "openmpi:ucx over tcp": Look("#8a7a12", "<"),
         "mpich over shm": Look("#8c4a9e", ">"), "mpich over tcp": Look("#c07bd0", ">"),
         "limit over shm": limit("#404040", 6, 2), "limit over tcp": limit("#2c4a73", 6, 2),
         "limit over shm, allocated": limit("#a08050", 3, 1.5),
         "floor over shm": limit("#6b6b6b", 6, 2, 1, 2), "floor over tcp": limit("#7b9cc4", 6, 2, 1, 2),
         "floor over shm, allocated": limit("#b59a6a", 2, 1),
         "floor over tcp, both ways, bbr": limit("#4f7f8f", 10, 3), "floor over tcp, both ways, reno": limit("#a8735a", 1, 1),
         "operation alone over shm": limit("#505050", 6, 2), "operation alone over tcp": limit("#34506f", 6, 2),
         "computation alone": limit("#9a9a9a", 2, 1)}
LIMIT_DASHES = ((6, 2), (2, 1), (6, 2, 1, 2), (10, 3), (1, 1), (6, 2, 1, 2, 1, 2))
OTHER_COLORS = {"kolo": ("#00bcd4", "#14213d", "#b2a429", "#5c6bc0", "#00e5a0", "#2e86de", "#33691e", "#9fa8da", "#17a589", "#607d8b"),
                "limit": ("#808080", "#5f7f9f", "#9f7f5f"), "floor": ("#8c8c8c", "#6f8fb3", "#b08f5f"),
                "peer": ("#e57399", "#c2185b", "#8d6e63", "#ff7043", "#ba68c8", "#bcaaa4", "#5d4037", "#f48fb1")}
OTHER_MARKERS = ("v", "s", "^", "P", "D", "<", "*", ">", "X", "p", "h", "o")
HUES = 24
LIGHTNESSES = (0.3, 0.45, 0.6, 0.75)
SATURATION = 0.65
# If all colors above are taken: the one of these that is farthest from the taken ones.
SPARE = ["#" + "".join(f"{round(255 * part):02x}" for part in colorsys.hls_to_rgb(hue / HUES, lightness, SATURATION))
         for lightness in LIGHTNESSES for hue in range(HUES)]


def distance(one, other):
    return sum((int(one[at:at + 2], 16) - int(other[at:at + 2], 16)) ** 2 for at in (1, 3, 5))


def farthest_from(taken):
    return max(SPARE, key=lambda color: min((distance(color, other) for other in taken), default=0))


def own_looks(firsts):
    """Looks of known lines: by their names, or by library and transport if no other line has the same."""
    looks = {name: LOOKS[name] for name in firsts if name in LOOKS}
    kinds = defaultdict(list)
    for name, first in firsts.items():
        kinds[f"{name_of(first)} over {first['transport']}"].append(name)
    alone = {names[0]: LOOKS[kind] for kind, names in kinds.items() if len(names) == 1 and kind in LOOKS}
    return {**alone, **looks}


def looks_of(charts):
    """{name: Look}, the same in all charts of a set, without repeated colors."""
    firsts = {name: points[0] for lines in charts for name, points in lines.items()}
    looks = own_looks(firsts)
    others = defaultdict(int)  # used so far
    for name in sorted(set(firsts) - set(looks)):
        is_limit = firsts[name]["library"] in LIMITS
        kind = firsts[name]["library"] if firsts[name]["library"] in OTHER_COLORS else "limit" if is_limit else "peer"
        number, others[kind] = others[kind], others[kind] + 1
        taken = {look.color for look in looks.values()}
        color = next((color for color in OTHER_COLORS[kind] if color not in taken), None) or farthest_from(taken)
        looks[name] = (limit(color, *LIMIT_DASHES[number % len(LIMIT_DASHES)]) if is_limit
                       else Look(color, OTHER_MARKERS[number % len(OTHER_MARKERS)]))
    return looks
