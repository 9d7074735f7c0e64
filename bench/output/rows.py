"""Rows of kolo-bench's JSON lines, for scripts: their identity, their names, and checks of their fields.

Rows are of the same measurement if key_of is equal. Rows of older versions lack some fields; these get the value that was in
effect then. `kolo-bench diff` does the same (diff.cpp).
"""

import json
import math
import re

SETTINGS = {"form": "blocking", "memory": "", "reproducibility": "fast", "progress": "", "network": "", "segment_bytes": 0, "servers": 0}
USUAL_TYPES = ("float32", "uint8", "-", "")  # uint8 is the type of p2p
USUAL_OPS = ("sum", "-", "")
UNITS = ["B", "KiB", "MiB", "GiB"]
ALMOST = 1023.95  # would be written 1024.0
MOST_BYTES = 2**63 - 1
MOST_LETTERS = 200


def is_text(value):
    return isinstance(value, str)


def is_word(value):
    """A text for a legend or a title."""
    return is_text(value) and len(value) <= MOST_LETTERS and value.isprintable()


def is_name(value):
    """A text for a part of a file name, which cannot lead to another folder."""
    return is_text(value) and re.fullmatch(r"[A-Za-z0-9_-]{1,64}", value) is not None


def is_count(value):
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST_BYTES


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= MOST_BYTES and math.isfinite(value)


def is_share(value):
    """The hidden share: below 0 if the overlap only delays."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and -MOST_BYTES <= value <= MOST_BYTES


def is_time(value):
    """A time in microseconds, within the range of clocks."""
    return is_number(value) and 1e-6 <= value <= 1e15


# Required and optional fields of a row: name, check of the value, and description of valid values.
TEXT = (is_text, "a text")
WORD = (is_word, f"a text of at most {MOST_LETTERS} printable letters")
NAME = (is_name, "a name of letters, digits, - and _")
COUNT = (is_count, "a whole number from 0")
NUMBER = (is_number, "a number from 0")
TIME = (is_time, "a time from 1e-6 to 1e15")
NEEDED = {"library": WORD, "transport": WORD, "collective": NAME, "algorithm": WORD, "ranks": COUNT, "bytes": COUNT,
          "median_us": TIME, "p10_us": TIME, "p90_us": TIME}
BANDWIDTHS = ("algbw_GBps", "busbw_GBps")  # null if no data moves
OPTIONAL = {"peer": WORD, "type": WORD, "op": WORD, "form": WORD, "memory": WORD, "reproducibility": WORD, "progress": WORD,
            "network": WORD, "segment_bytes": COUNT, "servers": COUNT, "window": COUNT, "messages_per_s": NUMBER, "in_place": (lambda value: isinstance(value, bool), "true or false"),
            "wrong": COUNT, "left_out": COUNT, "limit_us": TIME, "average_us": TIME, "run": (lambda value: isinstance(value, dict), "an object"), "regime": TEXT, "version": TEXT,
            "carrier": TEXT, "alone_us": NUMBER, "compute_us": NUMBER, "hidden": (is_share, "a number")}
OF_RUN = {"machine": TEXT, "cores": COUNT, "kernel": TEXT, "kolo": TEXT, "commit": TEXT, "command": TEXT, "compiler": TEXT, "date": TEXT}
CAN_BE_NULL = ("wrong", "limit_us", "messages_per_s", *BANDWIDTHS)
MOST_SHOWN = 40  # longest shown value, in characters


def what_is_odd(name, value, kind):
    fits, wanted = kind
    if fits(value) or value is None and name in CAN_BE_NULL:
        return ""
    shown = json.dumps(value)
    shown = shown if len(shown) <= MOST_SHOWN else shown[:MOST_SHOWN] + "..."
    return f"'{name}' is {shown}, where {wanted} belongs"


def what_is_wrong(row):
    """The first missing or invalid field of a row with a library; empty if all are valid."""
    for name, kind in {**NEEDED, **dict.fromkeys(BANDWIDTHS, NUMBER)}.items():
        if name not in row:
            return f"lacks '{name}', {kind[1]}"
        if odd := what_is_odd(name, row[name], kind):
            return odd
    odd = [what_is_odd(name, row[name], kind) for name, kind in OPTIONAL.items() if name in row]
    run = row.get("run")
    if isinstance(run, dict):
        odd += [what_is_odd(f"run.{name}", run[name], kind) for name, kind in OF_RUN.items() if name in run]
    return next(filter(None, odd), "")


def size_text(size):
    """32 KiB; 32.0 KiB for a size that is not exactly 32 KiB."""
    unit = 0
    while unit + 1 < len(UNITS) and (size >= 1024 or size > ALMOST and size != int(size)):
        size, unit = size / 1024, unit + 1
    return f"{size:.{0 if size == int(size) else 1}f} {UNITS[unit]}"


def count_text(count, one):
    """1 rank, 2 ranks"""
    return f"{count} {one}" if count == 1 else f"{count} {one}s"


def name_of(row):
    """The name in --against, as openmpi:ring and openmpi are the same library."""
    return row.get("peer") or row["library"]


def is_usually_in_place(row):
    return row["collective"] != "alltoall" and not row["collective"].startswith("p2p_")


def setting_of(row):
    """Options beyond the collective, the ranks and the size."""
    return (row.get("type", ""), row.get("op", ""), row.get("in_place", is_usually_in_place(row)),
            *(row.get(name, usual) for name, usual in SETTINGS.items()))


def setting_text(row):
    """The options that differ from the defaults: "persistent, allocated"; empty if there are none."""
    words = [row[name] for name, usual in (("type", USUAL_TYPES), ("op", USUAL_OPS)) if row.get(name, "") not in usual]
    words += [row[name] for name in ("form", "memory", "reproducibility") if row.get(name, SETTINGS[name]) != SETTINGS[name]]
    if row.get("progress"):
        words.append(f"progress by {row['progress']}")
    if row.get("network"):
        words.append(f"network {row['network']}")
    if row.get("in_place", is_usually_in_place(row)) != is_usually_in_place(row):
        words.append("out of place" if is_usually_in_place(row) else "in place")
    if row.get("segment_bytes"):
        words.append(f"segments of {size_text(row['segment_bytes'])}")
    if row.get("servers"):
        words.append(count_text(row["servers"], "server"))
    return ", ".join(words)


def key_of(row):
    return (name_of(row), row["transport"], row["collective"], row["ranks"], row["bytes"], setting_of(row), row.get("window", 0),
            row["algorithm"])


def latest(rows):
    """Keeps the last of several rows of one measurement, at the position of the first."""
    found = {}
    for row in rows:
        found[key_of(row)] = row
    return list(found.values())


def bandwidth(row, key):
    """From the row's bandwidth, as a window or both ways move more than the row's bytes."""
    return row["busbw_GBps"] * row["median_us"] / row[key]


def has_bandwidth(row):
    """False if no data moves: one rank, or no bytes."""
    return row["bytes"] > 0 and bool(row["busbw_GBps"])


def message_rate(row, key):
    return row["messages_per_s"] * row["median_us"] / row[key] / 1e6


def has_message_rate(row):
    return row["collective"] == "p2p_message-rate" and bool(row.get("messages_per_s"))
