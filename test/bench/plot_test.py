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

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))
from rows import BANDWIDTHS, CAN_BE_NULL, NEEDED, NUMBER, OF_RUN, OPTIONAL, what_is_wrong  # noqa: E402  # pylint: disable=wrong-import-position

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

    def complaint(self, rows):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "rows"
            path.write_text("".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in rows))
            done = subprocess.run([BENCH, "plot", str(path), "--out", folder + "/plots"], capture_output=True, text=True,
                                  timeout=PATIENCE_S, check=False)
            self.assertEqual((done.returncode, len(done.stderr.splitlines())), (1, 1), done.stderr)
            self.assertTrue(done.stderr.startswith(f"kolo-bench plot: {path}:{len(rows)}: "), done.stderr)
            self.assertFalse((Path(folder) / "plots").exists())
            return done.stderr

    def test_a_field_of_an_odd_type_is_named_with_its_file_and_line(self):
        right = row("kolo", "shm", 8, 5)
        for name, value, about in (("median_us", "fast", "'median_us' is \"fast\", where a number above 0 belongs"),
                                   ("bytes", [8], "'bytes' is [8], where a whole number from 0 belongs"),
                                   ("ranks", None, "'ranks' is null, where a whole number from 0 belongs"),
                                   ("run", 7, "'run' is 7, where an object belongs"),
                                   ("type", {"a": 1}, "'type' is {\"a\": 1}, where a text belongs")):
            self.assertIn(about, self.complaint([right, {**right, name: value}]))
        self.assertIn("is no JSON line", self.complaint([right, "[" * 100000]))
        self.assertIn("'median_us' is Infinity", self.complaint([json.dumps(right).replace('"median_us": 5', '"median_us": 1e999')]))

    def test_no_field_of_a_row_takes_what_is_not_its_own(self):
        right = row("kolo", "shm", 8, 5, peer="", limit_us=1, type="float32", op="sum", form="blocking", memory="allocated",
                    reproducibility="fast", progress="nobody", network="", segment_bytes=0, servers=0, window=1, in_place=True,
                    run={"machine": "M", "cores": 2, "kernel": "K", "commit": "c"})
        self.assertEqual(what_is_wrong(right), "")
        read = set(NEEDED) | set(BANDWIDTHS) | set(OPTIONAL)
        self.assertGreaterEqual(read | {"iterations"}, set(right))
        for name in read:
            for odd in ("odd", [], {}, None, True, -1, 1.5, float("nan"), 10**400):
                fits, _ = {**NEEDED, **OPTIONAL, **dict.fromkeys(BANDWIDTHS, NUMBER)}[name]
                if not fits(odd) and not (odd is None and name in CAN_BE_NULL):
                    self.assertIn(f"'{name}' is ", what_is_wrong({**right, name: odd}))
        for name in OF_RUN:
            self.assertIn(f"'run.{name}' is [1]", what_is_wrong({**right, "run": {name: [1]}}))
        for name in (*NEEDED, *BANDWIDTHS):
            self.assertIn(f"lacks '{name}'", what_is_wrong({key: value for key, value in right.items() if key != name}))

    def test_what_moves_nothing_has_no_bandwidth(self):
        alone = [row("kolo", "inproc", size, 5, ranks=1, algbw_GBps=None, busbw_GBps=None) for size in (8, 64)]
        self.assertEqual(set(self.plot(alone)), {"allreduce_1_ranks_time.svg", "allreduce_1_ranks_bars.svg"})
        self.assertEqual(set(self.files(alone, "--overview")), {"inproc_1_ranks_time.png"})


if __name__ == "__main__":
    BENCH = sys.argv.pop(1)
    unittest.main(verbosity=2)
