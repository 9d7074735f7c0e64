#!/usr/bin/env python3
"""Modes of kolo-bench: p2p, --form, --overlap, --profile and timeline.

  modes_test.py KOLO_BENCH [test...]
"""
import json
import os
import resource
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

BENCH = sys.argv.pop(1) if len(sys.argv) > 1 else "kolo-bench"
PATIENCE_S = 300
FEW = ["--iterations", "4", "--passes", "2", "--warmup", "1"]


def run(*words, **environment):
    done = subprocess.run([BENCH, *words], capture_output=True, text=True, timeout=PATIENCE_S, check=False,
                          env={**os.environ, **environment})
    return done.returncode, done.stdout, done.stderr


def lines_of(case, *words):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "lines.jsonl"
        code, output, errors = run(*words, *FEW, "--json", str(path))
        case.assertEqual(code, 0, output + errors)
        return [json.loads(line) for line in path.read_text().splitlines()], output


class Pairs(unittest.TestCase):
    def check(self, kind, transport, *more):
        lines, _ = lines_of(self, "p2p", kind, "--transport", transport, "--min-bytes", "1", "--max-bytes", "70K",
                            "--factor", "300", *more)
        for line in lines:
            self.assertEqual((line["wrong"], line["transport"], line["collective"]), (0, transport, "p2p_" + kind))
            self.assertGreater(line["median_us"], 0)
            self.assertLessEqual(line["p90_us"], line["p99_us"])
            self.assertIn("limit_us", line)
            if transport == "inproc":
                self.assertIsNone(line["limit_us"])
        return lines

    def test_every_kind_works_over_every_transport(self):
        for transport in ("inproc", "shm", "tcp"):
            for kind in ("latency", "bandwidth", "bidirectional", "message-rate"):
                with self.subTest(transport=transport, kind=kind):
                    lines = self.check(kind, transport)
                    self.assertEqual([line["bytes"] for line in lines], [1, 300, 71680])

    def test_segments_and_messages_run_in_turn(self):
        lines = self.check("latency", "shm", "--level", "both", "--window", "3")
        self.assertEqual([line["algorithm"] for line in lines], 3 * ["segments", "messages"])
        self.assertEqual({line["window"] for line in lines}, {3})
        lines = self.check("bidirectional", "tcp", "--level", "both")
        self.assertEqual([line["algorithm"] for line in lines], 3 * ["segments", "messages"])

    def test_impossible_arguments_print_one_message(self):
        for words, said in ((["p2p"], "needs latency, bandwidth"), (["p2p", "speed"], "expected one of latency, bandwidth"),
                            (["p2p", "latency", "--level", "bytes"], "expected one of segments, messages, both"),
                            (["p2p", "latency", "--min-bytes", "0"], "at least 1 byte"),
                            (["p2p", "latency", "--window", "-1"], "expected 0 to")):
            code, output, errors = run(*words)
            self.assertEqual((code, output, len(errors.splitlines())), (2, "", 1), words)
            self.assertIn(said, errors)


class Forms(unittest.TestCase):
    def test_every_form_is_right_and_named(self):
        for form in ("blocking", "async", "persistent", "event-loop"):
            lines, output = lines_of(self, "allreduce", "--transport", "shm", "--max-bytes", "4K", "--form", form)
            self.assertEqual({(line["form"], line["wrong"]) for line in lines}, {(form, 0)})
            self.assertEqual(form in output, form != "blocking")

    def test_an_operation_overlaps_with_a_computation(self):
        for transport in ("shm", "tcp"):
            lines, _ = lines_of(self, "allreduce", "--transport", transport, "--min-bytes", "64K", "--max-bytes", "64K",
                                "--overlap")
            self.assertEqual([line["progress"] for line in lines], ["none", "polling", "thread"])
            for line in lines:
                self.assertEqual(line["wrong"], 0)
                self.assertGreater(line["compute_us"], 0)
                both = line["alone_us"] + line["compute_us"]
                self.assertAlmostEqual(line["hidden"], (both - line["median_us"]) / min(line["alone_us"], line["compute_us"]), places=6)

    def test_overlap_compares_kolo_with_itself_only(self):
        for more in (["--against", "gloo"], ["--algorithm", "all"]):
            code, _, errors = run("allreduce", "--overlap", *more)
            self.assertEqual((code, len(errors.splitlines())), (2, 1))
            self.assertIn("--overlap", errors)


class Profiles(unittest.TestCase):
    def profile_of(self, transport, ranks):
        """The words of the table's lines, and the profile in the JSON line of a ring all-reduce."""
        lines, output = lines_of(self, "allreduce", "--transport", transport, "--algorithm", "ring", "--ranks", str(ranks),
                                 "--min-bytes", "300K", "--max-bytes", "300K", "--profile")
        (line,) = lines
        return [row.split()[1:] for row in output.splitlines() if row.startswith("# ")], line["profile"]

    def test_the_json_line_has_steps_and_channels_of_every_rank(self):
        for transport in ("inproc", "shm", "tcp"):
            _, profile = self.profile_of(transport, 3)
            self.assertEqual([rank["rank"] for rank in profile], [0, 1, 2])
            for rank in profile:
                self.assertIn("receive-reduce-copy-send", [step["kind"] for step in rank["steps"]])
                for step in rank["steps"]:
                    self.assertEqual(list(step), ["kind", "segments", "bytes", "work_us", "wait_us"])
                    self.assertGreater(step["segments"], 0)
                neighbours = [other for other in range(3) if other != rank["rank"]]
                self.assertEqual([channel["peer"] for channel in rank["channels"]], neighbours)
            for rank in profile:  # in a ring, the next rank receives what this rank sends
                after = profile[(rank["rank"] + 1) % 3]
                sent = next(one for one in rank["channels"] if one["peer"] == after["rank"])
                received = next(one for one in after["channels"] if one["peer"] == rank["rank"])
                self.assertGreater(sent["segments_sent"], 0)
                self.assertEqual((sent["segments_sent"], sent["bytes_sent"]),
                                 (received["segments_received"], received["bytes_received"]))

    def test_the_table_has_a_line_for_every_rank_and_the_steps_of_three(self):
        for ranks in (1, 2, 3, 5, 17):
            rows, profile = self.profile_of("inproc", ranks)
            self.assertEqual(len(profile), ranks)
            start = next(i for i, row in enumerate(rows) if row[:3] == ["rank", "work", "us"])
            by_rank = [row for row in rows[start + 1:] if row and row[0].isdigit()]
            told = {int(row[0]): row[-1] for row in by_rank}
            self.assertEqual(len(told), ranks if ranks <= 16 else 3)
            if ranks > 2:
                self.assertEqual(sorted(word for word in told.values() if word.isalpha()), ["awaited", "median", "waiting"])
                delays = dict.fromkeys(range(ranks), 0)
                for rank in profile:
                    for channel in rank["channels"]:
                        delays[channel["peer"]] += channel["waited_ns"]
                        delays[rank["rank"]] -= channel["waited_ns"]
                awaited = next(rank for rank, word in told.items() if word == "awaited")
                self.assertEqual(delays[awaited], max(delays.values()))
            if ranks > 1:
                kinds = {step["kind"] for step in profile[0]["steps"]}
                of_steps = {int(row[1]) for row in rows if row and row[0] in kinds}
                of_channels = {int(row[1]) for row in rows if row[:1] == ["rank"] and row[2:3] == ["to"]}
                self.assertEqual((len(of_steps), of_channels), (min(ranks, 3), of_steps))
                self.assertLessEqual(of_steps, set(told))

    def test_no_json_line_has_a_profile_of_several_algorithms(self):
        lines, output = lines_of(self, "allreduce", "--transport", "inproc", "--algorithm", "all", "--max-bytes", "8", "--profile")
        self.assertIn("work us", output)
        self.assertFalse([line for line in lines if "profile" in line])

    def test_timelines_of_ranks_are_merged(self):
        with tempfile.TemporaryDirectory() as folder:
            name = str(Path(folder) / "t.json")
            code, _, errors = run("allreduce", "--transport", "shm", "--min-bytes", "1M", "--max-bytes", "1M", *FEW,
                                  KOLO_TIMELINE=name)
            self.assertEqual(code, 0, errors)
            parts = [str(Path(folder) / f"t.bench-1.{rank}.json") for rank in range(2)]
            self.assertEqual(sorted(str(path) for path in Path(folder).iterdir()), parts)
            code, output, errors = run("timeline", *parts, "--out", name)
            self.assertEqual(code, 0, errors)
            events = json.loads(Path(name).read_text())["traceEvents"]
            self.assertIn(str(len(events)), output)
            self.assertRegex(output, r"\nrank [01] began last in [0-9]+ of [0-9]+ operations, by [0-9.]+ [mu]s\n$")
            self.assertEqual({event["pid"] for event in events}, {0, 1})
            for rank in range(2):
                calls = [event for event in events if event["pid"] == rank and event["name"] == "all_reduce"]
                self.assertGreaterEqual(len(calls), 4)

    def test_timelines_of_different_clocks_are_aligned_and_the_late_rank_is_named(self):
        """Host 1's clock began 1e11 us earlier. Rank 2, on host 1, begins each call 20.9 ms after the others."""
        with tempfile.TemporaryDirectory() as folder:
            parts = []
            for rank in range(3):
                ahead_us = 1e11 if rank == 2 else 0
                late_us = 20900 if rank == 2 else 10 * rank
                events = [{"name": "all_reduce", "ph": "X", "pid": rank, "tid": 1, "ts": ahead_us + 1e6 * call + late_us, "dur": 5,
                           "args": {"operation": f"all_reduce #{call} of {100 + rank} float32 sum", "algorithm": "ring"}}
                          for call in range(10)]
                about = {"communicator": "world/1/", "clock": f"host{rank // 2}", "wall_minus_clock_us": 2e11 - ahead_us}
                parts.append(Path(folder) / f"t.{rank}.json")
                parts[-1].write_text(json.dumps({"traceEvents": events, "otherData": about}))
            code, output, errors = run("timeline", *map(str, parts), "--out", str(Path(folder) / "all.json"))
            self.assertEqual(code, 0, errors)
            self.assertIn("the files have 2 clocks, aligned by the hosts' wall clocks", output)
            self.assertIn("rank 2 began last in 10 of 10 operations, by 20.9 ms\n", output)
            merged = json.loads((Path(folder) / "all.json").read_text())["traceEvents"]
            self.assertLess(max(event["ts"] for event in merged), 1e7)
            code, output, errors = run("timeline", *map(str, parts[:2]), "--out", str(Path(folder) / "all.json"))
            self.assertNotIn("clocks", output)

    def test_a_timeline_does_not_overwrite_its_inputs(self):
        with tempfile.TemporaryDirectory() as folder:
            part = Path(folder) / "t.json"
            part.write_text('{"traceEvents": []}')
            code, output, errors = run("timeline", str(part), "--out", folder + "/./t.json")
            self.assertEqual((code, output, len(errors.splitlines())), (2, "", 1), errors)
            self.assertIn("it is one of the files to be read; name another", errors)
            self.assertEqual(part.read_text(), '{"traceEvents": []}')

    def test_an_error_names_a_file_that_is_no_timeline(self):
        for words in (["/no/such/file"], [__file__], ["/tmp"]):
            code, output, errors = run("timeline", *words, "--out", "/dev/null")
            self.assertEqual((code, output, len(errors.splitlines())), (2, "", 1))
            self.assertIn(words[0], errors)
        self.assertEqual(run("timeline")[0], 2)
        for again in (__file__, os.path.relpath(__file__)):
            code, output, errors = run("timeline", __file__, again, "--out", "/dev/null")
            self.assertEqual((code, output, len(errors.splitlines())), (2, "", 1), errors)
            self.assertIn(f"timeline {again}: it is given twice", errors)

    def test_a_timeline_that_cannot_be_written_is_reported_at_the_start(self):
        code, _, errors = run("allreduce", "--transport", "inproc", "--max-bytes", "1K", *FEW,
                              KOLO_TIMELINE="/no/such/folder/t.json")
        self.assertEqual(code, 2, errors)
        self.assertEqual(errors, "kolo-bench: KOLO_TIMELINE /no/such/folder/t.json: cannot be written: No such file or directory\n")

    def test_a_file_that_cannot_be_written_at_the_end_fails_the_job(self):
        """The limit on the file length is enough for the ranks' startup, but not for the timeline of thousands of steps."""
        if b"libtsan" in Path(BENCH).read_bytes():
            self.skipTest("skipped: the thread sanitizer itself writes more than ulimit -f allows")
        limit = 1 << 20
        many = ["--max-bytes", "8", "--iterations", "6000", "--passes", "1", "--timeout", "100"]
        for words in (["allreduce", "--transport", "inproc"], ["allreduce", "--transport", "tcp"],
                      ["p2p", "latency", "--transport", "inproc", "--level", "both"]):
            for name in ("KOLO_TIMELINE", "KOLO_TRACE"):
                if words[0] == "p2p" and name == "KOLO_TIMELINE":
                    words = [*words, "--level", "messages"]
                with self.subTest(words=words, name=name), tempfile.TemporaryDirectory() as folder:
                    done = subprocess.run([BENCH, *words, *many], capture_output=True, text=True, timeout=PATIENCE_S, check=False,
                                          env={**os.environ, name: str(Path(folder) / "t")},
                                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
                    said = [line for line in done.stderr.splitlines() if "kolo-bench: " in line]
                    self.assertEqual((done.returncode, len(said)), (1, 1), done.stdout + done.stderr)
                    self.assertRegex(said[0], f"rank [01]: .*cannot write {folder}/t.*: File too large")
                    self.assertEqual(list(Path(folder).iterdir()), [])


if __name__ == "__main__":
    os.environ.pop("RANK", None)
    unittest.main()
