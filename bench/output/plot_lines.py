"""Lines of kolo-bench's JSON lines, for plot.py: which rows make one, what it is called, and what of it a picture shows."""

import math
from collections import Counter, defaultdict

from rows import bandwidth, has_bandwidth, has_message_rate, latest, message_rate, name_of, setting_text

CHOSEN = ("algorithm", "window")  # by the library, size by size
ALONE, COMPUTATION = "operation alone", "computation alone"  # of what was measured with --overlap
LIMITS = ("floor", "limit", ALONE, COMPUTATION)  # which are no libraries
MOST_BANDS = 5
LEAST_HIDDEN, MOST_HIDDEN = -1.0, 1.25  # what is beyond is drawn there, and marked
UNSURE = ("moved", "disturbed")  # regimes of rows to compare with nothing
MOST_BARS = 6  # sizes


def is_no_floor(row):
    """What another program held up is not the least that the machine takes."""
    return row["library"] == "floor" and row.get("regime") == "disturbed"


def is_known(row):
    return not math.isnan(row["median_us"])


def known(points):
    return list(filter(is_known, points))


def is_unsure(row):
    return row.get("regime") in UNSURE


def is_between_two(row):
    return row["collective"].startswith("p2p_")


def limit_of(row):
    """What the run measured as the machine's limit, as a row of its own; one whose times are not known where it did not."""
    limit = row.get("limit_us") or math.nan
    asked = {name: row[name] for name in ("type", "op", "in_place", "memory", "network") if name in row}  # which it is of, too
    kept = {name: row[name] for name in ("collective", "ranks", "bytes", "transport", "algbw_GBps", "busbw_GBps")}
    kept["regime"] = row.get("regime", "")
    faster = row["median_us"] / limit if limit > 0 else math.nan
    if kept["busbw_GBps"]:
        kept["busbw_GBps"] *= faster
    if row.get("messages_per_s"):
        kept["messages_per_s"] = row["messages_per_s"] * faster
    return {**kept, **asked, "library": "limit", "algorithm": "measured in the same run", "median_us": limit, "p10_us": limit,
            "p90_us": limit}


def is_overlap(row):
    return "hidden" in row


def parts_of(row):
    """What an operation beside a computation is held against, as rows of their own: each by itself."""
    kept = {name: value for name, value in row.items() if name not in ("hidden", "progress", "limit_us")}
    fitted_to = ", ".join(filter(None, (f"for {row['transport']}", setting_text(kept))))
    for part, field in ((ALONE, "alone_us"), (COMPUTATION, "compute_us")):
        time = row.get(field) or math.nan
        yield {**kept, "library": part, "algorithm": fitted_to if part == COMPUTATION else part, "median_us": time,
               "p10_us": time, "p90_us": time}


def picture_of(row):
    return row["collective"] + ("_overlap" if is_overlap(row) else "")


def series_of(rows):
    """{(picture, ranks): {name: [row by size]}}"""
    by_picture = defaultdict(list)
    for row in rows:
        by_picture[picture_of(row), row["ranks"]].append(row)
    return {key: lines_of(of_picture) for key, of_picture in by_picture.items()}


def latest_known(rows):
    return latest(sorted(rows, key=is_known))


def lines_of(rows):
    """{name: [row by size]}, kolo's limits among them, and the parts of what overlaps."""
    rows = latest_known(rows)
    rows += [part for row in rows if is_overlap(row) for part in parts_of(row)]
    rows = latest_known(rows + [limit_of(row) for row in rows if row["library"] == "kolo"])
    lines = defaultdict(list)
    for row in rows:
        lines[line_name(row)].append(row)
    for name in CHOSEN:
        lines = split_by(name, lines)
    return {name: sorted(points, key=lambda row: row["bytes"]) for name, points in lines.items() if known(points)}


def line_name(row):
    if row["library"] == COMPUTATION:
        return COMPUTATION  # over no transport
    level = row["algorithm"] if is_between_two(row) else ""  # who sends: a channel, the communicator, ...
    setting = ", ".join(filter(None, (level, setting_text(row))))
    return f"{name_of(row)} over {row['transport']}" + (f", {setting}" if setting else "")


def split_by(field, lines):
    """A line that has several values of it at one size becomes a line for each."""
    result = {}
    for name, points in lines.items():
        if len({row["bytes"] for row in points}) == len(points):
            result[name] = points
            continue
        values = list(dict.fromkeys(row.get(field) for row in points))
        for value in values:
            of_value = [row for row in points if row.get(field) == value]
            result[name if len(values) == 1 else f"{name}, {value}"] = of_value
    return result


def pages_of(rows):
    """{(kolo's transport, ranks): {collective: {name: [row by size]}}}. Peers' rows follow kolo's, whose transport they stood
    beside."""
    pages = defaultdict(lambda: defaultdict(list))
    beside = None
    for row in rows:
        if row["library"] in LIMITS:
            continue
        if row["library"] == "kolo":
            beside = row["transport"]
        pages[beside or row["transport"], row["ranks"]][picture_of(row)].append(row)
    return {key: {collective: lines_of(of_panel) for collective, of_panel in panels.items()} for key, panels in pages.items()}


def is_beyond(row):
    return not LEAST_HIDDEN <= row["hidden"] <= MOST_HIDDEN


QUANTITIES = {"time": lambda row, key: row[key], "bandwidth": bandwidth, "rate": message_rate,
              "hidden": lambda row, _: min(max(row["hidden"], LEAST_HIDDEN), MOST_HIDDEN)}
# Of an operation beside a computation what counts is the share that is hidden, and no bandwidth.
HAS = {"bandwidth": lambda row: has_bandwidth(row) and not is_part_of_overlap(row), "rate": has_message_rate,
       "hidden": is_overlap, "bars": lambda row: not is_part_of_overlap(row)}


def is_part_of_overlap(row):
    return is_overlap(row) or row["library"] in (ALONE, COMPUTATION)


def of_what(lines, what):
    """Those of {name: [row by size]} that have it."""
    has = HAS.get(what)
    if not has:
        return lines
    moving = {name: [row for row in points if has(row)] for name, points in lines.items()}
    return {name: points for name, points in moving.items() if known(points)}


def unit_of(lines, what):
    """The words at an axis of it."""
    rows = [row for points in lines.values() for row in points]
    if what == "rate":
        return "million messages a second"
    if what == "hidden":
        return "hidden, of the shorter of operation and computation"
    if what == "bandwidth":
        return "bandwidth, GB/s" if all(row["collective"].startswith("p2p_") for row in rows) else "bus bandwidth, GB/s"
    windows = {row.get("window", 1) for row in rows if row["library"] not in LIMITS}
    if len(windows) != 1:
        return "time, us"
    window = windows.pop()
    return f"time of {window} messages, us" if window > 1 else "time, us"


def libraries(lines):
    """The names of those that are no limits."""
    return [name for name, points in lines.items() if points[0]["library"] not in LIMITS]


def has_bands(lines):
    """Where there are more, they hide one another: then there are strokes, side by side."""
    return len(libraries(lines)) <= MOST_BANDS


def spread_text(charts):
    """What shows the spread of times, for the words at an axis or in a title; empty where there are limits alone."""
    shown = {"band" if has_bands(lines) else "strokes" for lines in charts if libraries(lines)}
    return f"; {' or '.join(sorted(shown))}: 10th to 90th percentile" if shown else ""


def few(sizes):
    """At most MOST_BARS of them, the first and the last among these, evenly spread."""
    if len(sizes) <= MOST_BARS:
        return sizes
    return [sizes[round(i * (len(sizes) - 1) / (MOST_BARS - 1))] for i in range(MOST_BARS)]


def sizes_of_bars(lines, rows):
    """Of those at which the most lines of libraries have a row: limits and floors may have others."""
    shown = [name for name in libraries(lines) if rows[name]]
    counts = Counter(size for name in shown or lines for size in rows[name])
    return few(sorted(size for size, count in counts.items() if count == max(counts.values())))
