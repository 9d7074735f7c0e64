"""Ranks for the tests of the Python package: threads of this process, or processes of their own."""

import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import kolo

PATIENCE_S = 60


def run_ranks(size, body, **options):
    """Calls body(world) on `size` ranks that are threads. Returns their results; raises the first failure."""
    store = kolo.LocalStore()
    results, failures = [None] * size, []

    def run(rank):
        try:
            with kolo.init(rank=rank, size=size, store=store, **options) as world:
                results[rank] = body(world)
        except BaseException as failure:  # pylint: disable=broad-except
            failures.append(failure)

    threads = [threading.Thread(target=run, args=(rank,), daemon=True) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    if any(thread.is_alive() for thread in threads):
        raise TimeoutError(f"a rank has not ended in {PATIENCE_S} s; others failed with {failures}")
    if failures:
        raise failures[0]
    return results


class Processes:
    """Ranks that run the Python text `body`, where `world` is the communicator; a context manager that ends them."""

    def __init__(self, size, body, start=None, options=""):
        self._folder = tempfile.TemporaryDirectory()
        store = Path(self._folder.name) / "store"
        text = start or ("import os, signal, sys, time, kolo, numpy\n"
                         f"world = kolo.init(rank=int(sys.argv[1]), size={size}, "
                         f"store=kolo.FileStore({str(store)!r}, {size}), {options})\n")
        self.ranks = [
            subprocess.Popen([sys.executable, "-c", text + body, str(rank)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"})
            for rank in range(size)
        ]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for rank in self.ranks:
            rank.kill()
            rank.communicate()
        self._folder.cleanup()

    def end(self, rank):
        """Waits for the end of a rank; returns its exit code and its outputs."""
        out, err = self.ranks[rank].communicate(timeout=PATIENCE_S)
        return self.ranks[rank].returncode, out, err

    def wait_for(self, rank, line):
        """Waits until the rank has printed the line."""
        for printed in self.ranks[rank].stdout:
            if printed.strip() == line:
                return
        raise AssertionError(f"rank {rank} ended without '{line}': {self.ranks[rank].stderr.read()}")
