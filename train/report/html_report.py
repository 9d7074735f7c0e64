#!/usr/bin/env python3
"""Gathers reports of kolo-train into one HTML page: html_report.py PAGE FOLDER... reads report.json, report.md and the plots of each folder.

The page needs no other file and no network: plots are in it as data URIs. It is readable on a phone and printed. It has the contents of each
report.md, which is written by kolo-train in a small part of Markdown: headings, lists, tables, pictures, indented code, paragraphs, emphasis.

The page is written completely or not at all. Exit codes: 0 success, 1 a report cannot be read or the page not written.
"""

import base64
import html
import json
import os
import re
import sys
from pathlib import Path

FORMATS = ("kolo-report-1", "kolo-crossover-1", "kolo-experiment-1")
PICTURES = (("svg", "image/svg+xml"), ("png", "image/png"))  # the first that there is
LONGEST_NUMBER = 16  # letters of a cell that stays on one line, as 19.1276 ± 9.6073
DOUBTS = ("WARNING", "INCOMPLETE")  # with which a finding begins that a reader must not miss
MACHINE = ("processor", "cores", "system", "compiler", "kolo", "commit")  # what two runs should have in common

STYLE = """
:root { color-scheme: light; --ink: #1c2024; --soft: #5b6570; --line: #d9dee3; --back: #f4f6f8; --doubt: #8a4b00; --doubt-back: #fff4e0; }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 62rem; padding: 1rem 1.25rem 3rem; font: 1rem/1.5 system-ui, sans-serif; color: var(--ink); overflow-wrap: anywhere; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: .5rem 0 .25rem; }
h2 { font-size: 1.35rem; line-height: 1.25; margin: 0 0 .75rem; }
h3 { font-size: 1.05rem; margin: 1.75rem 0 .5rem; }
a { color: #00598f; }
p { margin: .6rem 0; }
section { margin-top: 2.25rem; padding-top: 1.5rem; border-top: 2px solid var(--line); }
.soft { color: var(--soft); }
.box { overflow-x: auto; margin: .75rem 0; border: 1px solid var(--line); border-radius: 6px; }
table { border-collapse: collapse; width: 100%; font-size: .875rem; font-variant-numeric: tabular-nums; }
th, td { padding: .3rem .7rem; text-align: left; vertical-align: top; border-bottom: 1px solid var(--line); }
tr:last-child > td { border-bottom: 0; }
th { background: var(--back); font-weight: 600; }
.number { text-align: right; white-space: nowrap; overflow-wrap: normal; }
.number.long { white-space: normal; }
td:first-child, th { overflow-wrap: normal; }
td.part { padding-left: 1.6rem; color: var(--soft); }
table.wide td:first-child, table.wide th:first-child { white-space: nowrap; position: sticky; left: 0; background: #fff; }
table.wide th:first-child { background: var(--back); }
td.text:not(:first-child) { min-width: 10rem; }
pre { background: var(--back); border-radius: 6px; padding: .7rem .9rem; white-space: pre-wrap; font: .85rem/1.45 ui-monospace, monospace; }
pre span { display: inline-block; max-width: 100%; }
figure { margin: 1.25rem 0; overflow-x: auto; }
figure img { display: block; max-width: 100%; height: auto; margin: 0 auto; }
ul { padding-left: 1.2rem; margin: .6rem 0; }
li { margin: .2rem 0; }
li.doubt { list-style: none; margin: .4rem 0 .4rem -1.2rem; padding: .5rem .8rem; border-left: 4px solid var(--doubt); background: var(--doubt-back);
  color: var(--doubt); }
p.doubt { padding: .5rem .8rem; border-left: 4px solid var(--doubt); background: var(--doubt-back); color: var(--doubt); }
@media (max-width: 40rem) {
  body { padding: .75rem .8rem 2rem; font-size: .95rem; }
  h1 { font-size: 1.4rem; }
  h2 { font-size: 1.2rem; }
  th, td { padding: .25rem .5rem; }
  table.wide td:first-child, table.wide th:first-child { white-space: normal; min-width: 7.5rem; max-width: 7.5rem; }
  table.wide td.part:first-child { padding-left: 1.2rem; }
  figure img { max-width: none; width: 36rem; margin: 0; }
}
@media print {
  @page { margin: 14mm; }
  body { max-width: none; padding: 0; font-size: 9.5pt; }
  section { break-before: page; border: 0; margin: 0; padding: 0; }
  .box, figure { overflow: visible; }
  table { font-size: 7.5pt; }
  table.wide td:first-child, table.wide th:first-child { position: static; white-space: normal; }
  .number { white-space: normal; }
  th, td { padding: 1.5pt 4pt; }
  tr, figure, pre, li.doubt { break-inside: avoid; }
  h2, h3 { break-after: avoid; }
  figure img { width: auto; max-width: 100%; max-height: 120mm; margin: 0 auto; }
  a { color: inherit; text-decoration: none; }
}
"""


def inline(text):
    """HTML of a line: code, bold and italic words; the spaces of &nbsp; stay."""
    text = html.escape(text, quote=True).replace("&amp;nbsp;", "")
    text = re.sub(r"`([^`]+)`", r"<code>\1</code>", text)
    text = re.sub(r"\*\*([^*]+)\*\*", r"<strong>\1</strong>", text)
    return re.sub(r"(?<![\w*])\*([^*]+)\*(?![\w*])", r"<em>\1</em>", text)


def cells_of(line):
    return [cell.strip() for cell in line.strip().removeprefix("|").removesuffix("|").split("|")]


def table(lines):
    """HTML of a table: its heading, the line of dashes, its rows."""
    heading, dashes, *rows = map(cells_of, lines)
    is_number = [cell.endswith(":") for cell in dashes]
    kinds = ["number" if number else "text" for number in is_number]
    parts = [f'<div class="box" tabindex="0"><table class="{"wide" if any(is_number) else "pairs"}"><thead><tr>']
    parts += [f'<th class="{kind}">{inline(cell)}</th>' for kind, cell in zip(kinds, heading)]
    parts.append("</tr></thead><tbody>")
    for row in rows:
        parts.append("<tr>")
        for index, (kind, cell) in enumerate(zip(kinds, row)):
            look = "part" if index == 0 and cell.startswith("&nbsp;") else kind
            if look == "number" and len(cell) > LONGEST_NUMBER:
                look = "number long"
            parts.append(f'<td class="{look}">{inline(cell)}</td>')
        parts.append("</tr>")
    return "".join(parts) + "</tbody></table></div>"


def picture(folder, alt, name):
    """HTML of a plot, with its contents."""
    for kind, media in PICTURES:
        file = folder / f"{Path(name).stem}.{kind}"
        if file.is_file():
            data = base64.b64encode(file.read_bytes()).decode("ascii")
            return f'<figure><img alt="{html.escape(alt, quote=True)}" src="data:{media};base64,{data}"></figure>'
    return f'<p class="soft">The plot “{html.escape(alt)}” is not in the folder.</p>'


def listed(lines):
    return "<ul>" + "".join(f'<li{" class=doubt" if line.startswith(DOUBTS) else ""}>{inline(line)}</li>' for line in lines) + "</ul>"


def heading(block, number):
    marks, text = block[0].split(" ", 1)
    level = len(marks) + 1
    return f'<h{level}{f" id=run-{number}" if level == 2 else ""}>{inline(text)}</h{level}>'


def block_html(block, folder, number):
    first = block[0]
    found = re.fullmatch(r"!\[([^\]]*)\]\(([^)/]+)\)", first)
    if found:
        return picture(folder, *found.groups())
    if first.startswith("#"):
        return heading(block, number)
    if first.startswith("|"):
        return table(block)
    if first.startswith("    "):
        return "<pre>" + "\n".join(" ".join(f"<span>{html.escape(word)}</span>" for word in line.split()) for line in block) + "</pre>"
    if first.startswith("- "):
        return listed([line.removeprefix("- ") for line in block])
    return f"<p>{inline(' '.join(block))}</p>"


def kind_of(line):
    return next((mark for mark in ("|", "    ", "- ", "#", "!") if line.startswith(mark)), "")


def blocks_of(text):
    """Consecutive lines of one kind. An empty line ends a block; headings and pictures have a line each."""
    blocks, last = [], None
    for line in text.splitlines():
        kind = kind_of(line) if line.strip() else None
        if kind is not None:
            if kind == last and kind not in ("#", "!"):
                blocks[-1].append(line)
            else:
                blocks.append([line])
        last = kind
    return blocks


class Run:
    """One folder."""

    def __init__(self, folder, number):
        self.folder, self.number = Path(folder), number
        self.report = json.loads((self.folder / "report.json").read_text(encoding="utf-8"))
        if self.report["format"] not in FORMATS:
            raise ValueError(f"its format is {self.report['format']}, which this version does not know")
        self.blocks = blocks_of((self.folder / "report.md").read_text(encoding="utf-8"))
        self.title = next((block[0].lstrip("# ") for block in self.blocks if block[0].startswith("# ")), self.folder.name)
        self.machine = self.report["machine"]

    def html(self):
        return "<section>" + "\n".join(block_html(block, self.folder, self.number) for block in self.blocks) + "</section>"


def differences(runs):
    """A sentence for each fact of the machines that is not the same in all runs."""
    sentences = []
    for fact in MACHINE:
        values = sorted({str(run.machine.get(fact, "unknown")) for run in runs})
        if len(values) > 1:
            sentences.append(f"WARNING: the runs do not have the same {fact}: {', '.join(values)}. Compare their times with care.")
    return sentences


def overview(runs):
    rows = "".join(f'<li><a href="#run-{run.number}">{inline(run.title)}</a><br><span class="soft">{inline(str(run.folder))}, ended '
                   f'{inline(str(run.machine.get("time", "at an unknown time")))}</span></li>' for run in runs)
    facts = "".join(f"<tr><td>{fact}</td><td class=text>{inline('; '.join(sorted({str(run.machine.get(fact, 'unknown')) for run in runs})))}</td></tr>"
                    for fact in (*MACHINE, "memory", "kernel"))
    doubts = differences(runs)
    return (f'<h1>{inline(runs[0].title) if len(runs) == 1 else "Measurements with kolo"}</h1>'
            f'<p class="soft">{len(runs)} run{"s" if len(runs) > 1 else ""} of kolo-train. Below, each with its results, how they were measured, '
            'and what was run.</p>' + (listed(doubts) if doubts else "") +
            f'<ul>{rows}</ul>'
            f'<h3>Machine and versions</h3><div class="box" tabindex="0"><table><tbody>{facts}</tbody></table></div>')


def page_of(runs):
    title = runs[0].title if len(runs) == 1 else "Measurements with kolo"
    return ('<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
            f"<title>{inline(title)}</title><style>{STYLE}</style></head>\n<body>{overview(runs)}\n" + "\n".join(run.html() for run in runs) +
            "\n</body></html>\n")


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    page, runs, folder = Path(sys.argv[1]), [], ""
    try:
        for folder in sys.argv[2:]:
            runs.append(Run(folder, len(runs) + 1))
        text = page_of(runs)
    except OSError as error:
        sys.exit(f"kolo-train: report: {error.filename or folder}: {error.strerror or error}")
    except (ValueError, KeyError, TypeError) as error:
        sys.exit(f"kolo-train: report: {folder}: its report cannot be read: {error!r}")
    part = page.parent / f".{page.name}.{os.getpid()}.part"
    try:
        part.write_text(text, encoding="utf-8")
        os.replace(part, page)
    except OSError as error:
        part.unlink(missing_ok=True)
        sys.exit(f"kolo-train: report: {page}: cannot be written: {error.strerror or error}")
    print(f"The page: {page}")


if __name__ == "__main__":
    main()
