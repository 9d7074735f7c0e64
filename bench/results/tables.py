#!/usr/bin/env python3
"""Writes Markdown tables of kolo-bench's JSON lines: kolo, the limit, and the peers beside it, size by size.

  tables.py FILE... [--made-by TEXT] [--trial] [--pictures "A.png B.png"] > README.md

A section for each transport, number of ranks and whatever else was asked for. Peers' rows follow kolo's of the same size. What a
peer's time is over kolo's is the ratio: above 1, kolo is faster; where it is below, it is bold.
"""

import argparse
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "output"))
from rows import count_text, key_of, name_of, setting_text, size_text  # noqa: E402  # pylint: disable=wrong-import-position

TIME_OF = {"p2p_latency": "Time of one message, one way.", "p2p_bidirectional": "Time of a window of messages each way at once."}


def time_text(us):
    return f"{us:,.0f}" if us >= 100 else f"{us:.3g}"


def ratio_text(ratio):
    text = f"{ratio:.2f}" if ratio < 100 else f"{ratio:.0f}"
    return f"**{text}**" if ratio < 1 else text


def read_rows(path):
    try:
        return [json.loads(line) for line in Path(path).read_text(encoding="utf-8").splitlines()]
    except OSError as error:
        sys.exit(f"tables.py: {path}: {error.strerror}")
    except ValueError as error:
        sys.exit(f"tables.py: {path}: no JSON lines: {error}")


def points_of(rows):
    """[(kolo's row, {peer: its row})]; of several rows of one measurement the last."""
    points = {}
    last = None
    for row in rows:
        if row.get("library") == "kolo":
            last = key_of(row)
            points[last] = (row, {})
        elif "library" in row and last is not None:
            points[last][1][name_of(row)] = row
    return list(points.values())


def sections_of(points):
    """{(transport, ranks, what else was asked for): its points}"""
    sections = {}
    for own, peers in points:
        words = [setting_text(own), "messages" if is_message(own["collective"]) else ""]
        sections.setdefault((own["transport"], own["ranks"], ", ".join(filter(None, words))), []).append((own, peers))
    return sections


def is_message(collective):
    return collective.startswith("p2p_")


def able(row):
    return row.get("wrong") in (0, None)


def best_ratio(own, peers):
    times = [row["median_us"] for row in peers.values() if able(row)]
    return min(times) / own["median_us"] if times else None


def over_limit(own, _):
    return own["median_us"] / own["limit_us"] if own.get("limit_us") else None


def line(cells):
    return "| " + " | ".join(cells) + " |"


def summary(points, collectives, what, ratio_of, text_of):
    """A line per size."""
    moved = {(own["collective"], own["bytes"]) for own, _ in points if own.get("regime") not in ("near", "far")}
    ratios = {(own["collective"], own["bytes"]): ratio_of(own, peers) for own, peers in points}
    with_ratios = [name for name in collectives if any(ratio and key[0] == name for key, ratio in ratios.items())]
    if not with_ratios:
        return
    print(what + (" (in brackets where the cores did not stay near or far)" if moved else "") + ":\n")
    print(line(["bytes", *with_ratios]))
    print("|---" * (len(with_ratios) + 1) + "|")
    for size in sorted({own["bytes"] for own, _ in points}):
        keys = [(collective, size) for collective in with_ratios]
        cells = [text_of(ratios[key]) if ratios.get(key) else "" for key in keys]
        cells = [f"({cell})" if cell and key in moved else cell for cell, key in zip(cells, keys)]
        if any(cells):
            print(line([size_text(size) if size else "no size", *cells]))
    print()


def peer_cell(own, row):
    if row is None:
        return "-"
    if not able(row):
        return f"wrong ({count_text(row['wrong'], 'element')})"
    return f"{time_text(row['median_us'])}, {ratio_text(row['median_us'] / own['median_us'])}"


def limit_cells(own):
    first, limit = own.get("first_us"), own.get("limit_us")
    return [time_text(first) if first else "-", time_text(limit) if limit else "-", f"{limit / own['median_us']:.2f}" if limit else "-"]


def speed_cells(own):
    """Of messages between two ranks."""
    rate = own.get("messages_per_s", 0) / 1e6
    return [f"{own.get('algbw_GBps', 0):.2f}", f"{rate:.3g}" if rate else "-", *limit_cells(own)[1:]]


def overlap_cells(own):
    """Of an operation with a computation beside it."""
    return [time_text(own["alone_us"]), time_text(own["compute_us"]), f"{own['hidden']:.0%}"]


def own_columns(points, is_messages):
    """Their titles, and what makes a row's cells."""
    if is_messages:
        return ["kolo, GB/s", "million messages/s", "limit", "limit / kolo"], speed_cells
    if all("hidden" in own for own, _ in points):
        return ["alone", "computation", "hidden of it"], overlap_cells
    return ["first call", "limit", "limit / kolo"], limit_cells


def table(points, collective):
    points = [point for point in points if point[0]["collective"] == collective]
    peers = []
    for _, others in points:
        peers += [name for name in others if name not in peers]
    is_messages = is_message(collective)
    print(f"### {collective}\n")
    if is_messages:
        print(TIME_OF.get(collective, "Time of a window of messages.") + "\n")
    of_own, cells_of = own_columns(points, is_messages)
    print(line(["bytes", "by", "kolo (p10 - p90), us", *of_own, *(f"{name}, over kolo" for name in peers), "cores"]))
    print("|---" * (4 + len(of_own) + len(peers)) + "|")
    for own, others in points:
        print(line([size_text(own["bytes"]), own["algorithm"],
                    f"{time_text(own['median_us'])} ({time_text(own['p10_us'])} - {time_text(own['p90_us'])})"
                    + ("" if able(own) else f", wrong ({count_text(own['wrong'], 'element')})"),
                    *cells_of(own),
                    *(peer_cell(own, others.get(name)) for name in peers), str(own.get("regime", "-"))]))
    print()
    for command in dict.fromkeys(own["run"]["command"] for own, _ in points if "command" in own.get("run", {})):
        print(f"    {command}")
    print()


def versions_of(files):
    """Of the peers, by their names where the rows do not say."""
    rows = [row for rows in files for row in rows if row.get("library", "kolo") not in ("kolo", "floor")]
    return list(dict.fromkeys(" ".join((row.get("version") or row["library"]).split()) for row in rows))


def head(files, made_by, is_trial):
    run = next((row["run"] for rows in files for row in rows if "run" in row), {})
    where = [run.get("machine"), count_text(run["cores"], "core") if "cores" in run else "", run.get("date", "")[:10]]
    print(f"# {', '.join(word for word in where if word) or 'A machine that the rows do not name'}\n")
    if is_trial:
        print("**A trial of the program: no figures to quote.**\n")
    built = f" ({run['compiler']})" if run.get("compiler") else ""
    kolo = f"{run.get('kernel')}, kolo {run.get('kolo')} at {run.get('commit')}{built}" if run else "A kolo of an unknown version"
    print(f"{kolo}; peers: {'; '.join(versions_of(files)) or 'none'}.{f' Made by {made_by}.' if made_by else ''}\n")
    if run.get("environment"):
        print(f"Set were {', '.join(f'`{name}={value}`' for name, value in run['environment'].items())}.\n")
    print("Times are microseconds: the median over the iterations of the longest of the ranks' times, all libraries in turn over the "
          "same pages, every element checked. The first call of a size is apart from these. Behind a peer's time is that time over "
          "kolo's: above 1, kolo is faster. The limit was measured in turn with them (`bench/README.md`); cores: how far apart they "
          "were (near, far) in all turns that the row is made of; or that no distance had a turn of every library (moved), or somebody else "
          "had them (disturbed): then a row's libraries may not have had the same machine.\n")


def section(points, title):
    print(f"## {title}\n")
    moved = sum(own.get("regime") == "moved" for own, _ in points)
    if moved:
        print(f"In {moved} of {len(points)} rows the cores moved so often that no distance had a turn of every library.\n")


def show(pictures, prefix):
    for name in pictures:
        if name.startswith(prefix):
            print(f"![{name}]({name})\n")


def crowds(points):
    """What a rank's byte costs as ranks get more than cores, over what it costs four."""
    own = [row for row, _ in points if row["collective"] == "allreduce" and row["bytes"] and not setting_text(row)]
    for transport in dict.fromkeys(row["transport"] for row in own):
        times = {(row["ranks"], row["bytes"]): row["median_us"] for row in own if row["transport"] == transport}
        many = sorted({ranks for ranks, _ in times if ranks > 4})
        sizes = sorted({size for ranks, size in times if ranks > 4 and (4, size) in times})
        if not many or not sizes:
            continue
        print(f"## {transport}, more ranks\n\nkolo's all-reduce: time over ranks and bytes, over the same of 4 ranks.\n")
        print(line(["ranks", *(size_text(size) for size in sizes)]))
        print("|---" * (len(sizes) + 1) + "|")
        for ranks in many:
            costs = [times.get((ranks, size), 0) / ranks / (times[4, size] / 4) for size in sizes]
            print(line([str(ranks), *(f"{cost:.2f}" if cost else "" for cost in costs)]))
        print()


def tables(points):
    collectives = list(dict.fromkeys(own["collective"] for own, _ in points))
    summary(points, collectives, "The best peer's time over kolo's", best_ratio, ratio_text)
    summary(points, collectives, "kolo's time over the limit's", over_limit, lambda ratio: f"{ratio:.2f}")
    for collective in collectives:
        table(points, collective)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="+")
    parser.add_argument("--made-by", default="", help="by what command, and in what time")
    parser.add_argument("--trial", action="store_true", help="say that no figure is to be quoted")
    parser.add_argument("--pictures", default="")
    arguments = parser.parse_args()
    files = [read_rows(path) for path in arguments.files]
    if not any(points_of(rows) for rows in files):
        sys.exit(f"tables.py: no row of kolo's in {', '.join(arguments.files)}")
    head(files, arguments.made_by, arguments.trial)
    pictures = [Path(name).name for name in arguments.pictures.split()]
    points = [point for rows in files for point in points_of(rows)]
    for (transport, ranks, setting), of_section in sections_of(points).items():
        section(of_section, f"{transport}, {count_text(ranks, 'rank')}" + (f", {setting}" if setting else ""))
        if not setting:
            show(pictures, f"{transport.replace('/', '_')}_{ranks}_ranks")
        tables(of_section)
    crowds(points)


if __name__ == "__main__":
    try:
        main()
    except BrokenPipeError:  # whoever read it has seen enough
        sys.exit(1)
