"""Helpers for tests of programs: the processes that they start. Every wait ends: its condition comes true, or the test fails."""

import os
import time
from pathlib import Path

PATIENCE_S = 180


def wait_until(holds, what, patience_s=PATIENCE_S):
    """Waits until `holds` returns something true, and returns that."""
    deadline = time.monotonic() + patience_s
    while not (found := holds()):
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {patience_s} s for {what}")
        os.sched_yield()
    return found


def living_with(text):
    """Whether a living process has the text in its command line."""
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and text.encode() in (entry / "cmdline").read_bytes():
                return True  # a zombie has no command line
        except OSError:
            continue
    return False


def children_of(process, file):
    """Process id and content of /proc/ID/`file` of every living child. Children that end meanwhile are left out."""
    for child in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split():
        try:
            yield int(child), Path(f"/proc/{child}/{file}").read_bytes()
        except (ProcessLookupError, FileNotFoundError):
            continue


def ranks_of(process):
    """Process ids of a launcher's ranks, by rank. Only those that already run their program: a child just forked still has its
    parent's variables."""
    return {int(variable[5:]): child for child, variables in children_of(process, "environ")
            for variable in variables.split(b"\0") if variable.startswith(b"RANK=")}


def guardian_of(process):
    """The process id of a launcher's reaper. None until it has set its name, a moment after the fork."""
    return next((child for child, name in children_of(process, "comm") if name.strip() == b"kolo-reaper"), None)
