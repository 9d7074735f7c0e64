"""What the tests of programs ask of the processes they started. Every wait ends: what is waited for comes, or the test fails."""

import os
import time
from pathlib import Path

PATIENCE_S = 180


def wait_until(holds, what, patience_s=PATIENCE_S):
    """What `holds` answers at last, as soon as it is true."""
    deadline = time.monotonic() + patience_s
    while not (found := holds()):
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {patience_s} s for {what}")
        os.sched_yield()
    return found


def children_of(process, file):
    """Process id and what /proc/ID/`file` holds, of every child alive: one that is just going is none."""
    for child in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split():
        try:
            yield int(child), Path(f"/proc/{child}/{file}").read_bytes()
        except (ProcessLookupError, FileNotFoundError):
            continue


def ranks_of(process):
    """Process ids of a launcher's ranks, by rank. Only those that run their program already: a child just forked has its
    parent's variables."""
    return {int(variable[5:]): child for child, variables in children_of(process, "environ")
            for variable in variables.split(b"\0") if variable.startswith(b"RANK=")}


def guardian_of(process):
    """The process id of a launcher's guardian; None until it has taken its name, which is a moment after it was forked."""
    return next((child for child, name in children_of(process, "comm") if name.strip() == b"kolo-guardian"), None)
