"""kolo-bench's JSON lines, for the scripts that read them: what a row is of, and what it is called.

Rows are of the same measurement where key_of says the same. Rows of a version that did not write one of the fields yet have
the value that it stood for. `kolo-bench diff` does the same (diff.cpp).
"""

SETTINGS = {"form": "blocking", "memory": "", "reproducibility": "fast", "progress": "", "network": "", "segment_bytes": 0, "servers": 0}
USUAL_TYPES = ("float32", "uint8", "-", "")  # uint8 is that of p2p
USUAL_OPS = ("sum", "-", "")
UNITS = ["B", "KiB", "MiB", "GiB"]


def size_text(size):
    unit = 0
    while size >= 1024 and unit + 1 < len(UNITS):
        size, unit = size / 1024, unit + 1
    return f"{size:g} {UNITS[unit]}"


def name_of(row):
    """As --against had it: openmpi:ring and openmpi are the same library."""
    return row.get("peer") or row["library"]


def is_usually_in_place(row):
    return row["collective"] != "alltoall" and not row["collective"].startswith("p2p_")


def setting_of(row):
    """What was asked for beyond the collective, the ranks and the size."""
    return (row.get("type", ""), row.get("op", ""), row.get("in_place", is_usually_in_place(row)),
            *(row.get(name, usual) for name, usual in SETTINGS.items()))


def setting_text(row):
    """Of that, what is not usual: "persistent, allocated"; empty where all is."""
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
        words.append(f"{row['servers']} servers")
    return ", ".join(words)


def key_of(row):
    return (name_of(row), row["transport"], row["collective"], row["ranks"], row["bytes"], setting_of(row), row.get("window", 0),
            row["algorithm"])


def latest(rows):
    """Of several rows of one measurement the last, in the place of the first."""
    found = {}
    for row in rows:
        found[key_of(row)] = row
    return list(found.values())
