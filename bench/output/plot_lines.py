"""Lines of a plot, made of kolo-bench's rows: which rows form a line, its name, and which of its quantities a picture shows."""

import math
from collections import Counter, defaultdict

from rows import bandwidth, has_bandwidth, has_message_rate, latest, message_rate, name_of, setting_text

CHOSEN = ("algorithm", "window")  # chosen by the library for each size
ALONE, COMPUTATION = "operation alone", "computation alone"  # reference lines of --overlap
LIMITS = ("floor", "limit", ALONE, COMPUTATION)  # not libraries
MOST_BANDS = 5
LEAST_HIDDEN, MOST_HIDDEN = -1.0, 1.25  # values beyond are drawn at the edge and marked
UNSURE = ("moved", "disturbed")  # regimes of rows that must not be compared
MOST_BARS = 6  # sizes


def is_no_floor(row):
    """A floor that another program disturbed is not a limit."""
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
    """The machine's limit of a row as a row of its own; its times are NaN if the row has no limit."""
    limit = row.get("limit_us") or math.nan
    asked = {name: row[name] for name in ("type", "op", "in_place", "memory", "network") if name in row}  # the limit's own options
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
    """The references of an overlap row as rows of their own: the operation alone and the computation alone."""
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
    """{name: [row by size]}, including the limits of kolo's rows and the references of overlap rows."""
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
        return COMPUTATION  # has no transport
    level = row["algorithm"] if is_between_two(row) else ""  # the level: segments, messages, ...
    setting = ", ".join(filter(None, (level, setting_text(row))))
    return f"{name_of(row)} over {row['transport']}" + (f", {setting}" if setting else "")


def split_by(field, lines):
    """Splits a line with several rows at one size: one line for each value of the field."""
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
    """{(kolo's transport, ranks): {collective: {name: [row by size]}}}. Peers' rows follow kolo's row and go to the page of its
    transport."""
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
# Overlap rows show the hidden share, and no bandwidth.
HAS = {"bandwidth": lambda row: has_bandwidth(row) and not is_part_of_overlap(row), "rate": has_message_rate,
       "hidden": is_overlap, "bars": lambda row: not is_part_of_overlap(row)}


def is_part_of_overlap(row):
    return is_overlap(row) or row["library"] in (ALONE, COMPUTATION)


def of_what(lines, what):
    """The lines that have the quantity."""
    has = HAS.get(what)
    if not has:
        return lines
    moving = {name: [row for row in points if has(row)] for name, points in lines.items()}
    return {name: points for name, points in moving.items() if known(points)}


def unit_of(lines, what):
    """The label of the quantity's axis."""
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
    """The names of lines that are not limits."""
    return [name for name, points in lines.items() if points[0]["library"] not in LIMITS]


def has_bands(lines):
    """More bands than MOST_BANDS would hide each other; then strokes are drawn side by side."""
    return len(libraries(lines)) <= MOST_BANDS


def spread_text(charts):
    """How the spread is shown, for an axis label or a title; empty if there are only limits."""
    shown = {"band" if has_bands(lines) else "strokes" for lines in charts if libraries(lines)}
    return f"; {' or '.join(sorted(shown))}: 10th to 90th percentile" if shown else ""


def few(sizes):
    """At most MOST_BARS of the sizes, evenly spread, with the first and the last."""
    if len(sizes) <= MOST_BARS:
        return sizes
    return [sizes[round(i * (len(sizes) - 1) / (MOST_BARS - 1))] for i in range(MOST_BARS)]


def sizes_of_bars(lines, rows):
    """Chosen from the sizes at which most lines of libraries have a row; limits and floors may have other sizes."""
    shown = [name for name in libraries(lines) if rows[name]]
    counts = Counter(size for name in shown or lines for size in rows[name])
    return few(sorted(size for size, count in counts.items() if count == max(counts.values())))
