#!/usr/bin/env python3
"""Scripts of bench/results. make.sh makes tables and plots from a kolo-bench, fabrics.py compares ucx and ofi with their
libraries, and settings.py measures the effect of settings.

  results_test.py KOLO_BENCH [test...]
"""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

BENCH = ""
PATIENCE_S = 1000
MAKE = Path(__file__).resolve().parents[3] / "bench/results/make.sh"
TABLES = MAKE.with_name("tables.py")
FABRICS = MAKE.with_name("fabrics.py")
SETTINGS = MAKE.with_name("settings.py")
COLLECTIVES = ["allreduce", "reduce_scatter", "allgather", "alltoall", "broadcast", "barrier", "reduce", "gather", "scatter", "scan",
               "exclusive_scan", "push", "pull", "push_pull"]
FORMS = ["persistent", "async", *(f"async, progress by {what}" for what in ("none", "polling", "thread"))]
MESSAGES = ["p2p_latency", "p2p_bandwidth", "p2p_bidirectional", "p2p_message-rate"]


def run(*words):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    return done.returncode, done.stdout, done.stderr


def row(library, size, median, **more):
    return {"library": library, "transport": "shm", "collective": "allreduce", "algorithm": "ring", "ranks": 2, "bytes": size,
            "median_us": median, "p10_us": median, "p90_us": median, "wrong": 0, "regime": "near", "version": "1.0", "limit_us": 1,
            "run": {"machine": "M", "cores": 2, "kernel": "K", "kolo": "0", "commit": "c", "command": "kolo-bench x", "date": "2026-01-01"},
            **more}


class Results(unittest.TestCase):
    def check_limits(self, lines, output):
        """The limits of the machine, and the floors of two ranks."""
        for what in ("memory L2", "memory DRAM", "tcp round trip"):
            self.assertIn(what, output)
        floors = [line for line in lines if line.get("library") == "floor"]
        if os.cpu_count() > 1:
            there = {(line["transport"], line["collective"], line["ranks"]) for line in floors}
            for transport in ("shm", "tcp"):
                for collective in ("allreduce", "reduce_scatter", "allgather", "alltoall", "broadcast", "barrier"):
                    self.assertIn((transport, collective, 2), there)
            self.assertEqual({line["wrong"] for line in floors}, {0, None})  # over tcp most floors reduce nothing
            self.assertTrue(any(line["algorithm"].startswith("both ways and added") for line in floors))
        for line in lines:
            self.assertGreater(line["median_us"], 0)

    # The only test of `kolo-bench limits` with all its parts, which take 20 s of CPU.
    def test_one_command_makes_rows_tables_pictures_and_limits(self):
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "out"
            code, _, errors = run(MAKE, "--quick", "--bench", BENCH, "--out", out)
            has_plots = "matplotlib is missing" not in errors
            log = (out / "output.txt").read_text()
            self.assertEqual(code, 0 if has_plots else 1, errors + log)
            tables = (out / "README.md").read_text()
            for transport in ("shm", "tcp"):
                for ranks in (2, 4, 8, 16):
                    rows = self.rows_of(out / f"{transport}-{ranks}-ranks.jsonl")
                    self.assertEqual(list(dict.fromkeys(line["collective"] for line in rows)),
                                     COLLECTIVES if (transport, ranks) == ("shm", 2) else ["allreduce"])
                    self.assertEqual({(line["library"], line["transport"], line["ranks"], line["wrong"]) for line in rows},
                                     {("kolo", transport, ranks, 0)})
                    self.assertIn(f"## {transport}, {ranks} ranks", tables)
                    for what in ("time", "bandwidth") if has_plots else ():
                        picture = f"{transport}_{ranks}_ranks_{what}.png"
                        self.assertTrue((out / picture).read_bytes().startswith(b"\x89PNG"))
                        self.assertIn(f"({picture})", tables)
            self.assertIn(f"Made by `bench/results/make.sh --quick --bench {BENCH} --out {out}` in ", tables)
            self.assertIn("**A trial of the program: no figures to quote.**", tables)
            self.assertEqual({(line["collective"], line["memory"], line["wrong"]) for line in self.rows_of(out / "shm-2-ranks-allocated.jsonl")},
                             {(name, "allocated", 0) for name in ("allreduce", "allgather", "alltoall", "broadcast")})
            self.assertIn("## shm, 2 ranks, allocated", tables)
            for transport in ("shm", "tcp"):
                rows = self.rows_of(out / f"{transport}-messages.jsonl")
                self.assertEqual(list(dict.fromkeys(line["collective"] for line in rows)), MESSAGES)
                self.assertEqual({line["wrong"] for line in rows}, {0})
                self.assertIn(f"## {transport}, 2 ranks, messages", tables)
                rows = self.rows_of(out / f"{transport}-2-ranks-forms.jsonl")
                self.assertEqual({(line["collective"], line["library"], line["wrong"]) for line in rows}, {("allreduce", "kolo", 0)})
                for form in FORMS:
                    self.assertIn(f"## {transport}, 2 ranks, {form}\n", tables)
            self.assertEqual(tables.count("| bytes | by |"), len(COLLECTIVES) + 11 + 2 * len(MESSAGES) + 2 * len(FORMS))
            self.check_limits(self.rows_of(out / "limits.jsonl"), log)
            code, _, errors = run(MAKE, "--quick", "--bench", BENCH, "--out", out)  # existing rows are kept
            self.assertEqual((code, len(errors.splitlines())), (2, 1), errors)
            self.assertIn("is there already", errors)
            self.assertEqual((out / "README.md").read_text(), tables)

    def rows_of(self, file):
        return [json.loads(line) for line in file.read_text().splitlines()]

    def test_a_failed_measurement_is_reported_and_the_others_are_made(self):
        with tempfile.TemporaryDirectory() as folder:
            out, bench = Path(folder) / "out", Path(folder) / "kolo-bench"
            bench.write_text(f'#!/bin/sh\ncase $1 in limits | plot) ;; *) exec "{BENCH}" "$@" ;; esac\n')  # these take 30 s of CPU
            bench.chmod(0o755)
            code, _, errors = run(MAKE, "--quick", "--bench", bench, "--against", "nobody", "--out", out)
            self.assertEqual(code, 1, errors)
            self.assertIn("nobody is not among the peers", errors)
            tables = (out / "README.md").read_text()  # measurements without a peer: shared buffers and other forms of calls
            self.assertEqual([line for line in tables.splitlines() if line.startswith("## ")],
                             ["## shm, 2 ranks, allocated", *(f"## {transport}, 2 ranks, {form}" for transport in ("shm", "tcp") for form in FORMS)])

    def test_mistakes_are_refused(self):
        for words, about in ((["--fast"], "unknown option '--fast'"), (["--out"], "--out needs a value"),
                             (["--bench", "/no/such/program", "--out", tempfile.gettempdir() + "/kolo-make-nothing"], "no such program")):
            with self.subTest(words=words):
                code, _, errors = run(MAKE, "--quick", *words)
                self.assertEqual((code, len(errors.splitlines())), (2, 1), errors)
                self.assertIn(about, errors)
        code, output, _ = run(MAKE, "--help")
        self.assertEqual(code, 0)
        self.assertIn("--quick", output)

    def test_tables_mark_slower_libraries_and_wrong_results(self):
        rows = [row("kolo", 1024, 10), row("openmpi", 1024, 5), row("gloo", 1024, 2, wrong=7),
                row("kolo", 2048, 10), row("openmpi", 2048, 25), row("gloo", 2048, 400)]
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "rows"
            path.write_text("".join(json.dumps(line) + "\n" for line in rows))
            code, output, errors = run(sys.executable, TABLES, path)
        self.assertEqual(code, 0, errors)
        self.assertIn("| bytes | allreduce |\n|---|---|\n| 1 KiB | **0.50** |\n| 2 KiB | 2.50 |\n", output)
        self.assertIn("kolo's time over the limit's:\n\n| bytes | allreduce |\n|---|---|\n| 1 KiB | 10.00 |\n", output)
        self.assertNotIn("Made by", output)
        self.assertIn("| 1 KiB | ring | 10 (10 - 10) | - | 1 | 0.10 | 5, **0.50** | wrong (7 elements) | near |", output)
        self.assertIn("| 2 KiB | ring | 10 (10 - 10) | - | 1 | 0.10 | 25, 2.50 | 400, 40.00 | near |", output)

    def test_messages_have_a_section_with_their_speeds(self):
        code, output, errors = self.tables([
            row("kolo", 1024, 10, first_us=70),
            row("kolo", 1024, 64, collective="p2p_bandwidth", algorithm="messages", algbw_GBps=1.024, messages_per_s=1e6),
            row("openmpi", 1024, 96, collective="p2p_bandwidth", algorithm="messages", algbw_GBps=0.7, messages_per_s=7e5)])
        self.assertEqual((code, errors), (0, ""))
        self.assertIn("| 1 KiB | ring | 10 (10 - 10) | 70 | 1 | 0.10 | near |", output)
        self.assertIn("## shm, 2 ranks, messages", output)
        self.assertIn("Time of a window of messages.", output)
        self.assertIn("| 1 KiB | messages | 64 (64 - 64) | 1.02 | 1 | 1 | 0.02 | 96, 1.50 | near |", output)

    def test_overlapped_operations_show_the_hidden_share(self):
        beside = {"form": "async", "progress": "thread", "alone_us": 6, "compute_us": 5.5, "hidden": 0.75}
        code, output, errors = self.tables([row("kolo", 1024, 7, **beside)])
        self.assertEqual((code, errors), (0, ""))
        self.assertIn("| alone | computation | hidden of it | cores |", output)
        self.assertIn("| 1 KiB | ring | 7 (7 - 7) | 6 | 5.5 | 75% | near |", output)

    def test_rows_of_several_settings_have_sections_and_peers_of_one_library_columns(self):
        rows = [row("kolo", 1024, 10), row("openmpi", 1024, 20, peer="openmpi"), row("openmpi", 1024, 5, peer="openmpi:ring"),
                row("kolo", 1024, 8, memory="allocated"), row("kolo", 1024, 7, transport="tcp", regime="moved"),
                row("gloo", 1024, 9, transport="tcp"), row("kolo", 1024, 6, transport="tcp"), row("gloo", 1024, 12, transport="tcp")]
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "rows"
            path.write_text("".join(json.dumps(line) + "\n" for line in rows))
            code, output, errors = run(sys.executable, TABLES, path, "--made-by", "hand")
        self.assertEqual(code, 0, errors)
        self.assertIn("Made by hand.", output)
        self.assertNotIn("A trial", output)
        self.assertEqual([line for line in output.splitlines() if line.startswith("## ")],
                         ["## shm, 2 ranks", "## shm, 2 ranks, allocated", "## tcp, 2 ranks"])
        self.assertIn("| openmpi, over kolo | openmpi:ring, over kolo |", output)
        self.assertIn("| 20, 2.00 | 5, **0.50** | near |", output)
        self.assertIn("| 1 KiB | ring | 6 (6 - 6) | - | 1 | 0.17 | 12, 2.00 | near |", output)  # the last of two rows
        self.assertNotIn("moved |", output)
        code, output, errors = self.tables([row("kolo", 1024, 7, regime="moved"), row("kolo", 2048, 7)])
        self.assertEqual(code, 0, errors)
        self.assertIn("In 1 of 2 rows the cores moved so often", output)
        self.assertIn("| moved |", output)

    def test_old_rows_without_their_run_have_tables_too(self):
        rows = [{name: value for name, value in line.items() if name not in ("run", "version")}
                for line in (row("kolo", 1024, 10), row("gloo", 1024, 20))]
        code, output, errors = self.tables(rows)
        self.assertEqual((code, errors), (0, ""))
        self.assertEqual(output.splitlines()[0], "# A machine that the rows do not name")
        self.assertIn("A kolo of an unknown version; peers: gloo.", output)
        self.assertIn("| 1 KiB | ring | 10 (10 - 10) | - | 1 | 0.10 | 20, 2.00 | near |", output)

    def tables(self, rows):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "rows"
            path.write_text("".join(json.dumps(line) + "\n" for line in rows))
            return run(sys.executable, TABLES, path)


# A fake kolo-bench of a few lines. openmpi:ucx takes twice as long, a bare library 9 tenths; {more} adds faults.
PLAYED_BENCH = """#!{python}
import json, os, sys
words = sys.argv[1:]
if words == ["peers"]:
    print("openmpi:ucx")
    sys.exit()
transport = words[words.index("--transport") + 1]
{more}
row = {row}
row.update(transport=transport, busbw_GBps=1, algbw_GBps=1)
if "p2p" in words:
    row.update(bytes=int(words[words.index("--min-bytes") + 1]), collective="p2p_" + words[1], algorithm="segments")
else:
    row.update(ranks=int(words[words.index("--ranks") + 1]))
print(json.dumps(row))
if "p2p" in words:
    row.update(algorithm="library", median_us=9)
    print(json.dumps(row))
elif "--against" in words:
    row.update(library="openmpi", peer=words[words.index("--against") + 1], median_us=20)
    print(json.dumps(row))
"""
PLAYED_ROW = "| 64 B | ring | 10 (10 - 10) | - | 1 | 0.10 | 20, 2.00 | near |"


class Fabrics(unittest.TestCase):
    def measure(self, folder, more=""):
        bench = Path(folder) / "kolo-bench"
        bench.write_text(PLAYED_BENCH.format(python=sys.executable, more=more, row=repr(row("kolo", 64, 10))))
        bench.chmod(0o755)
        self.words = [sys.executable, FABRICS, "--quick", "--bench", bench, "--out", Path(folder) / "out"]
        done = subprocess.run(self.words, capture_output=True, text=True, timeout=PATIENCE_S, check=False,
                              env={**os.environ, "PATH": folder})  # no ucx_perftest
        return done.returncode, (Path(folder) / "out/README.md").read_text(), done.stderr

    def test_every_network_is_compared_with_its_library_and_its_peer(self):
        with tempfile.TemporaryDirectory() as folder:
            code, page, errors = self.measure(folder)
            self.assertEqual(code, 0, errors)
            for network, transport in (("UCX_TLS=posix,sysv,self", "ucx"), ("UCX_TLS=tcp", "ucx"), ("KOLO_OFI_PROVIDER=shm", "ofi"),
                                       ("KOLO_OFI_PROVIDER=tcp", "ofi")):
                self.assertIn(f"| {transport} | {network} | latency | 8 B | 9 | 10 | 0.90 | 1.00 | near |", page)
                for ranks in (2, 4):
                    self.assertIn(f"## {transport}, {network}, {ranks} ranks", page)
            self.assertEqual(page.count(PLAYED_ROW), 4)
            self.assertEqual(page.count("mpich_ofi is not in this build"), 4)
            self.assertIn("ucx_perftest was not there", page)
            self.assertEqual(len(list((Path(folder) / "out").glob("*.jsonl"))), 13)
            code, _, errors = run(*self.words)  # existing rows are kept
            self.assertEqual(code, 2)
            self.assertIn("is there already", errors)

    def test_failures_are_named_and_the_rest_is_made(self):
        with tempfile.TemporaryDirectory() as folder:
            code, page, errors = self.measure(folder, "if transport == 'ofi': sys.exit('no provider')")
            self.assertEqual(code, 1)
            for text in (errors, page):
                self.assertIn("all-reduce over ofi-tcp, 4 ranks: exit code 1: no provider", text)
            self.assertEqual(page.count(PLAYED_ROW), 4)

    def test_another_libfabric_is_checked(self):
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "libfabric.so.1").write_text("no library")
            code, _, errors = run(sys.executable, FABRICS, "--bench", BENCH, "--out", Path(folder) / "out", "--libfabric", folder)
            self.assertEqual(code, 2)
            self.assertIn(f"--libfabric {folder}: no libfabric.so.1 that can be loaded", errors)

    def test_wrong_results_are_reported(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(self.measure(folder, "import atexit; atexit.register(lambda: (sys.stdout.flush(), os._exit(3)))")[0], 3)


# A fake kolo-bench whose times depend on the settings in the environment. It takes 10 us, and 8 with two lanes. Its cores move
# with segments of 64 KiB, and its results are wrong where @wrong@ says so.
PLAYED_SETTINGS = """#!/bin/sh
for file; do :; done
time=10 line=0.1 code=0
[ "$KOLO_TCP_LANES" != 2 ] || time=8
[ "$KOLO_TCP_LANES" != 4 ] || code=@wrong@
[ "$KOLO_SEGMENT_BYTES" != 65536 ] || line=0.5
[ "$KOLO_WAIT" != block ] || time=20
echo "${KOLO_TCP_LANES-}" >> "$0.lanes"
echo "${KOLO_SEGMENT_BYTES-}" >> "$0.segments"
cat > "$file" <<END
@row@
END
exit $code
"""


class SettingsPage(unittest.TestCase):
    def measure(self, folder, wrong=False):
        bench = Path(folder) / "kolo-bench"
        line = json.dumps({**row("kolo", 2048, 10), "median_us": "TIME", "cache_line_us": "LINE"})
        line = line.replace('"TIME"', "$time").replace('"LINE"', "$line")
        bench.write_text(PLAYED_SETTINGS.replace("@wrong@", "3" if wrong else "0").replace("@row@", line))
        bench.chmod(0o755)
        return run(SETTINGS, "--bench", bench, "--rounds", 2, "--out", Path(folder) / "page.md")

    def test_every_setting_is_compared_with_the_default(self):
        with tempfile.TemporaryDirectory() as folder:
            code, _, errors = self.measure(folder)
            self.assertEqual(code, 0, errors)
            page = (Path(folder) / "page.md").read_text()
            titles = [f"{transport}, {ranks} ranks" for transport in ("tcp", "shm") for ranks in (2, 4, 8, 16)]
            cores = len(os.sched_getaffinity(0))
            titles += [f"{transport}, 2 ranks, beside {cores} programs that compute" for transport in ("tcp", "shm")]
            for title in titles:
                self.assertIn(f"## {title}\n\n| |2 KiB|\n|---|---|\n| default, us |10|\n", page)
            self.assertEqual(page.count("| KOLO_TCP_LANES=2 |1.25|"), 2)
            self.assertEqual(page.count("| KOLO_SEGMENT_BYTES=65536 |(1.00)|"), 2)  # on other cores than the default
            self.assertEqual(page.count("| KOLO_SHM_SINGLE_COPY=65536 |1.00|"), 2)
            self.assertEqual(page.count("| KOLO_WAIT=block |0.50|"), len(titles))
            # A setting that could not be compared is measured as many times again; the others are not.
            self.assertEqual((Path(folder) / "kolo-bench.lanes").read_text().split().count("2"), 2 * 2)
            self.assertEqual((Path(folder) / "kolo-bench.segments").read_text().split().count("65536"), 2 * 2 * 2)
            code, _, errors = self.measure(folder)  # existing rows are kept
            self.assertEqual(code, 2)
            self.assertIn("is there already", errors)

    def test_wrong_results_end_it_and_leave_no_page(self):
        with tempfile.TemporaryDirectory() as folder:
            code, _, errors = self.measure(folder, wrong=True)
            self.assertEqual(code, 3)
            self.assertIn("KOLO_TCP_LANES=4: exit code 3", errors)
            self.assertEqual(list(Path(folder).glob("*.md*")), [])


if __name__ == "__main__":
    BENCH = sys.argv.pop(1)
    unittest.main(verbosity=2)
