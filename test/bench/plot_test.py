#!/usr/bin/env python3
"""kolo-bench plot: lines and bars, peers and limits.

  plot_test.py KOLO_BENCH [test...]
"""

import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

BENCH = ""
PATIENCE_S = 240


def row(library, transport, size, median, **more):
    return {"library": library, "transport": transport, "collective": "allreduce", "algorithm": "ring", "ranks": 2, "bytes": size,
            "iterations": 9, "median_us": median, "p10_us": median, "p90_us": median, "algbw_GBps": 1, "busbw_GBps": 1, "wrong": 0,
            **more}


class Plot(unittest.TestCase):
    def files(self, rows, *more):
        """{name: bytes}"""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "rows"
            path.write_text("".join(json.dumps(line) + "\n" for line in rows))
            done = subprocess.run([BENCH, "plot", str(path), "--out", folder + "/plots", *more], capture_output=True, text=True,
                                  timeout=PATIENCE_S, check=False)
            if "matplotlib is missing" in done.stderr:
                self.skipTest("matplotlib is not installed")
            self.assertEqual(done.returncode, 0, done.stderr)
            return {entry.name: entry.read_bytes() for entry in (Path(folder) / "plots").iterdir()}

    def plot(self, rows):
        return {name: content.decode() for name, content in self.files(rows).items() if name.endswith(".svg")}

    def test_peers_and_limits_are_lines_and_bars(self):
        rows = [row(library, transport, size, size / 10 + 5, limit_us=size / 20 + 1)
                for library, transport in (("kolo", "shm"), ("openmpi", "shm"), ("mpich", "shm"), ("gloo", "tcp"))
                for size in (8, 4096, 1 << 20, 1 << 24)]
        pictures = self.plot(rows)
        self.assertEqual(set(pictures), {f"allreduce_2_ranks_{what}.svg" for what in ("time", "bandwidth", "bars")})
        for text in pictures.values():
            for name in ("kolo over shm", "openmpi over shm", "mpich over shm", "gloo over tcp", "limit over shm"):
                self.assertIn(f"<!-- {name}", text)

    def test_a_choice_that_changes_with_the_size_is_one_line(self):
        rows = [row("kolo", "shm", size, size, algorithm=name) for size, name in ((8, "one_shot"), (64, "ring"), (512, "ring"))]
        picture = self.plot(rows)["allreduce_2_ranks_time.svg"]
        self.assertIn("<!-- kolo over shm -->", picture)
        both = rows + [row("kolo", "shm", 8, 9, algorithm="ring")]  # measured in turn: a line each
        picture = self.plot(both)["allreduce_2_ranks_time.svg"]
        self.assertIn("<!-- kolo over shm, ring -->", picture)
        self.assertIn("<!-- kolo over shm, one_shot -->", picture)

    def test_peers_of_one_library_and_other_settings_are_lines_of_their_own(self):
        sizes = (8, 4096)
        rows = [row("openmpi", "shm", size, 2 * size, **more) for size in sizes for more in ({"peer": "openmpi"}, {"peer": "openmpi:ring"})]
        rows += [row("kolo", "shm", size, size, limit_us=1, **more) for size in sizes
                 for more in ({}, {"form": "persistent"}, {"memory": "allocated"}, {"type": "float64"}, {"network": "1Gbit,10ms"})]
        rows += [row("kolo", "tcp", 8, 5, window=window) for window in (1, 64)]
        picture = self.plot(rows)["allreduce_2_ranks_time.svg"]
        for name in ("openmpi over shm", "openmpi:ring over shm", "kolo over shm", "kolo over shm, persistent", "kolo over shm, allocated",
                     "kolo over shm, float64", "kolo over shm, network 1Gbit,10ms", "limit over shm", "limit over shm, allocated", "limit over shm, float64",
                     "kolo over tcp, 1", "kolo over tcp, 64"):
            self.assertIn(f"<!-- {name} -->", picture)
        self.assertNotIn("limit over shm, persistent", picture)

    def test_an_overview_has_a_picture_for_each_transport_and_number_of_ranks(self):
        rows = [row(library, "tcp" if library == "gloo" else transport, size, size + 5, ranks=ranks, collective=collective, limit_us=1)
                for transport, ranks in (("shm", 2), ("tcp", 2), ("shm", 4))
                for collective, sizes in (("allreduce", (8, 4096)), ("barrier", (0,)))
                for size in sizes for library in ("kolo", "gloo")]
        names = [f"{page}_{what}.png" for page in ("shm_2_ranks", "shm_4_ranks", "tcp_2_ranks") for what in ("bandwidth", "time")]
        self.assertEqual(sorted(self.files(rows, "--overview")), names)


if __name__ == "__main__":
    BENCH = sys.argv.pop(1)
    unittest.main(verbosity=2)
