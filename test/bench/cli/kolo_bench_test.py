#!/usr/bin/env python3
"""Command line of kolo-bench: every collective over every transport, the JSON lines, and the errors.

  kolo_bench_test.py KOLO_BENCH [test...]
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import unittest
from xml.etree import ElementTree
from pathlib import Path

BENCH = ""
PATIENCE_S = 300
COLLECTIVES = ["allreduce", "broadcast", "reduce_scatter", "allgather", "barrier", "push_pull", "push", "pull", "reduce", "gather",
               "scatter", "alltoall", "scan", "exclusive_scan"]
ALGORITHMS = {"allreduce": "ring", "broadcast": "binomial_tree", "reduce_scatter": "ring", "allgather": "ring",
              "barrier": "dissemination", "push_pull": "parameter_server", "push": "parameter_server", "pull": "parameter_server", "reduce": "binomial_tree",
              "gather": "binomial_tree", "scatter": "binomial_tree", "alltoall": "pairwise", "scan": "chain",
              "exclusive_scan": "chain"}
HAVE_SERVERS = ("push_pull", "push", "pull")
HAVE_NO_OPERATION = ("barrier", "broadcast", "pull", "allgather", "gather", "scatter", "alltoall")
TRANSPORTS = ["inproc", "shm", "tcp"]
FIELDS = ["library", "transport", "collective", "algorithm", "ranks", "bytes", "iterations", "median_us", "p10_us", "p90_us",
          "algbw_GBps", "busbw_GBps", "wrong"]
FEW = ["--iterations", "2", "--passes", "2", "--warmup", "1"]


def run(*words, **environment):
    done = subprocess.run([BENCH, *words], capture_output=True, text=True, timeout=PATIENCE_S, check=False,
                          env={**os.environ, **environment})
    return done.returncode, done.stdout, done.stderr


class Collectives(unittest.TestCase):
    def lines_of(self, *words):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "lines.jsonl"
            code, output, errors = run(*words, *FEW, "--json", str(path))
            self.assertEqual(code, 0, output + errors)
            return [json.loads(line) for line in path.read_text().splitlines()]

    def check(self, collective, transport, ranks, *more, all_sizes=False):
        sizes = ["--max-bytes", "64K", "--factor", "16"] if all_sizes else ["--bytes", "8,64K"]
        lines = self.lines_of(collective, "--ranks", str(ranks), "--transport", transport, *([] if collective == "barrier" else sizes), *more)
        self.assertTrue(lines)
        for line in lines:
            self.assertEqual(list(line)[:len(FIELDS)], FIELDS)
            self.assertEqual((line["library"], line["transport"], line["collective"], line["ranks"], line["wrong"]),
                             ("kolo", transport, collective, ranks, 0))
            self.assertGreater(line["median_us"], 0)
        if collective != "barrier":
            share = 4 * ranks if collective == "alltoall" else 1  # alltoall rounds to a multiple of this
            self.assertEqual([line["bytes"] for line in lines],
                             [max(share, size // share * share) for size in ((8, 128, 2048, 32768, 65536) if all_sizes else (8, 65536))])

    def test_every_collective_is_right_on_every_transport_and_with_all_sizes_over_shm(self):
        for transport in TRANSPORTS:
            for collective in COLLECTIVES:
                with self.subTest(collective=collective, transport=transport):
                    self.check(collective, transport, 2, all_sizes=transport == "shm")

    def test_more_ranks_than_cores_and_uneven_chunks_are_right(self):
        for collective in COLLECTIVES:
            with self.subTest(collective=collective):
                self.check(collective, "shm", 3, *(["--servers", "1"] if collective in HAVE_SERVERS else []))

    def test_ps_commands_equal_the_collectives(self):
        for kind, collective in (("push", "push"), ("pull", "pull"), ("push-pull", "push_pull")):
            with self.subTest(kind=kind):
                for servers in ("0", "1", "2"):
                    lines = self.lines_of("ps", kind, "--ranks", "4", "--transport", "shm", "--servers", servers, "--bytes", "8,4K")
                    self.assertEqual({(line["collective"], line["ranks"], line["wrong"]) for line in lines}, {(collective, 4, 0)})
        self.check("push", "inproc", 3, "--out-of-place", "--type", "int64", "--op", "average")
        self.check("pull", "inproc", 3, "--out-of-place", "--form", "persistent")
        code, output, errors = run("ps")
        self.assertEqual((code, output, len(errors.splitlines())), (2, "", 1), errors)

    def test_types_operations_and_out_of_place_buffers_are_right(self):
        self.check("allreduce", "shm", 2, "--type", "bfloat16", "--op", "max")
        self.check("allreduce", "inproc", 3, "--type", "int64", "--op", "average", "--out-of-place")
        self.check("reduce_scatter", "inproc", 3, "--type", "float64", "--out-of-place")
        self.check("allgather", "tcp", 2, "--type", "int32", "--out-of-place")
        self.check("scan", "inproc", 3, "--type", "bfloat16", "--op", "min", "--out-of-place")
        self.check("gather", "shm", 3, "--algorithm", "direct", "--out-of-place")
        self.check("scatter", "shm", 3, "--algorithm", "direct")

    def test_all_commands_take_the_same_options_and_json_has_standard_output_alone(self):
        for collective in COLLECTIVES:
            code, output, errors = run(collective, "--min-bytes", "8", "--max-bytes", "8", "--factor", "2", "--type", "int32",
                                       "--op", "max", "--out-of-place", "--algorithm", ALGORITHMS[collective], "--json", "-", *FEW)
            self.assertEqual(code, 0, errors)
            self.assertEqual([json.loads(line)["algorithm"] for line in output.splitlines()], [ALGORITHMS[collective]])
            self.assertEqual("has no use for" in errors, collective in HAVE_NO_OPERATION, errors)

    def test_all_algorithms_run_in_turn(self):
        lines = self.lines_of("allreduce", "--algorithm", "all", "--ranks", "3", "--max-bytes", "8K", "--factor", "32")
        by_size = {}
        for line in lines:
            self.assertEqual((line["library"], line["wrong"]), ("kolo", 0))
            by_size.setdefault(line["bytes"], set()).add(line["algorithm"])
        self.assertEqual(sorted(by_size), [8, 256, 8192])
        for algorithms in by_size.values():
            self.assertLessEqual({"ring", "recursive_doubling", "halving_doubling", "one_shot"}, algorithms)
        code, output, _ = run("allreduce", "--algorithm", "all", "--ranks", "2", "--max-bytes", "8", *FEW)
        self.assertEqual((code, [line.endswith("  fastest") for line in output.splitlines()].count(True)), (0, 1))
        code, _, errors = run("allreduce", "--algorithm", "all", "--against", "gloo", *FEW)
        self.assertEqual(code, 2)

    def test_the_peer_is_measured_beside_kolo(self):
        code, output, errors = run("allreduce", "--ranks", "2", "--max-bytes", "8", "--against", "gloo", *FEW)
        if "not among the peers" in errors:
            self.skipTest("gloo is not in this build")
        self.assertEqual(code, 0, errors)
        self.assertIn("gloo", output)
        self.assertEqual("in each other's way" in output, len(os.sched_getaffinity(0)) < 4, output)
        lines = self.lines_of("allreduce", "--max-bytes", "2K", "--factor", "16", "--against", "gloo")
        self.assertEqual([(line["library"], line["wrong"]) for line in lines], [("kolo", 0), ("gloo", 0)] * 3)

    def test_each_library_names_the_algorithm_that_ran(self):
        if "not among the peers" in run("allreduce", "--max-bytes", "8", "--against", "gloo", *FEW)[2]:
            self.skipTest("gloo is not in this build")
        for collective, peer, algorithm in (("allreduce", "gloo", "ring"), ("allreduce", "gloo:bcube", "bcube"),
                                            ("allgather", "gloo", "ring"), ("broadcast", "gloo", "binomial_tree"),
                                            ("barrier", "gloo", "dissemination")):
            with self.subTest(collective=collective, peer=peer):
                lines = self.lines_of(collective, "--algorithm", ALGORITHMS[collective], "--max-bytes", "8", "--against", peer)
                self.assertEqual([line["algorithm"] for line in lines], [ALGORITHMS[collective], algorithm])


class WhatGoesWrong(unittest.TestCase):
    def assert_complains(self, code, about, *words):
        found, _, errors = run(*words)
        self.assertEqual(found, code, errors)
        self.assertEqual(len(errors.splitlines()), 1, errors)
        self.assertIn(about, errors)

    def test_bad_arguments_print_one_clear_line(self):
        self.assert_complains(2, "--transport pigeon", "allreduce", "--transport", "pigeon")
        self.assert_complains(2, "--algorithm guess", "allreduce", "--algorithm", "guess")
        self.assert_complains(2, "'many'", "allreduce", "--max-bytes", "many")
        self.assert_complains(2, "cannot write", "allreduce", "--max-bytes", "8", "--json", "/no/such/folder/file")
        self.assert_complains(2, "float32 has 4 bytes", "allreduce", "--min-bytes", "3", "--max-bytes", "3")
        self.assert_complains(2, "no option '--max-size'; see kolo-bench allreduce --help", "allreduce", "--max-size", "64", "--ranks", "2")
        self.assert_complains(2, "sum of 300 ranks", "allreduce", "--ranks", "300", "--type", "bfloat16")

    def test_ranks_that_contradict_the_launcher_are_refused(self):
        done = subprocess.run([BENCH, "allreduce", "--ranks", "3"], capture_output=True, text=True, timeout=PATIENCE_S, check=False,
                              env={**os.environ, "RANK": "0", "WORLD_SIZE": "2", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "2"})
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("--ranks 3 contradicts the launcher, which started 2", done.stderr)


class Planner(unittest.TestCase):
    """The commands explain and tune, and tables that overrule the planner."""

    GRID = ["--collectives", "allreduce,broadcast", "--ranks", "2,3", "--transport", "inproc,shm", "--max-bytes", "2K"]

    def explain(self, *words, **environment):
        code, output, errors = run("explain", *words, *FEW, "--json", "-", **environment)
        self.assertEqual(code, 0, output + errors)
        return [json.loads(line) for line in output.splitlines()], errors

    def tune(self, *words, code=0):
        """Runs tune; returns the lines of the table, the printed lines, and the names of the files left in the folder."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "table"
            found, output, errors = run("tune", *words, *FEW, "--out", str(path))
            self.assertEqual(found, code, output + errors)
            left = os.listdir(folder)
            return (path.read_text().splitlines() if path.exists() else []), output.splitlines(), left

    def test_every_collective_is_explained(self):
        for collective in COLLECTIVES:
            with self.subTest(collective=collective):
                lines, table = self.explain(collective, "--bytes", "8,4K", "--ranks", "2")
                sizes = [0] if collective == "barrier" else [8, 4096]
                self.assertEqual(sorted({line["bytes"] for line in lines}), sizes)
                for size in sizes:
                    of_size = [line for line in lines if line["bytes"] == size]
                    for mark in ("is_chosen", "is_fastest"):
                        self.assertEqual(sum(line[mark] for line in of_size), 1)
                    self.assertEqual(table.count("  chosen"), len(sizes))
                    has_price = collective not in HAVE_SERVERS
                    self.assertTrue(all((line["predicted_us"] > 0) == has_price and line["wrong"] == 0 for line in of_size))
                    reason = next(line["reason"] for line in of_size if line["is_chosen"])
                    prices = ["the cheapest price", "the price, and fewer waits for ranks that share cores"]
                    expected = prices if has_price else ["the first; these have no price"]
                    self.assertIn(reason, ["the only one"] if len(of_size) == 1 else expected)
                self.assertIn("within a host", table)
                self.assertIn("a pass over memory", table)

    def test_a_table_takes_precedence_over_the_price(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "table"
            path.write_text("all_reduce 2 shm 64 double_tree\nall_reduce 2 shm 65536 hierarchical\n")
            lines, table = self.explain("allreduce", "--bytes", "8,1M", "--transport", "shm", KOLO_TUNING=str(path))
            self.assertIn("table (KOLO_TUNING)", table)
        self.assertEqual([(line["algorithm"], line["reason"]) for line in lines if line["is_chosen"]],
                         [("double_tree", "the table says so"), ("hierarchical", "the table says so")])

    def test_measured_costs_do_not_influence_ordered_results(self):
        _, table = self.explain("allreduce", "--bytes", "8", "--reproducibility", "ordered")
        self.assertIn("# costs, as the transport declares them", table)
        self.assertIn("results that are ordered", table)

    def test_invariant_results_use_only_algorithms_that_keep_the_order(self):
        lines, table = self.explain("allreduce", "--bytes", "4K", "--ranks", "3", "--reproducibility", "invariant")
        self.assertIn("# costs, measured as the job began", table)
        self.assertEqual({line["algorithm"] for line in lines}, {"one_shot", "two_shot"})
        lines, _ = self.explain("allreduce", "--bytes", "4K", "--reproducibility", "invariant", "--type", "int32")
        self.assertIn("ring", {line["algorithm"] for line in lines})
        words = ["--ranks", "3", "--reproducibility", "invariant", "--max-bytes", "8", *FEW]
        code, output, errors = run("allreduce", *words)
        self.assertEqual(code, 0, errors)
        self.assertIn("results that are invariant", output.splitlines()[0])
        code, output, errors = run("allreduce", *words, "--algorithm", "ring")
        self.assertEqual((code, output), (2, ""))
        self.assertEqual(errors, "kolo-bench: --algorithm ring: does not combine in the order of ranks, which --reproducibility "
                                 "invariant needs; these do: two_shot, one_shot\n")
        self.assertEqual(run("allreduce", *words, "--algorithm", "ring", "--type", "int32")[0], 0)
        self.assertEqual(run("allreduce", *words, "--algorithm", "ring", "--ranks", "2")[0], 0)

    def test_tune_writes_a_table_that_the_planner_follows(self):
        table, output, left = self.tune(*self.GRID)
        self.assertEqual(left, ["table"])
        self.assertTrue(table[0].startswith("# kolo-bench tune --collectives allreduce,broadcast --ranks 2,3"), table[0])
        points = [line.split() for line in table if not line.startswith("#")]
        self.assertEqual({tuple(point[:4]) for point in points},
                         {(collective, ranks, transport, size) for collective in ("all_reduce", "broadcast") for ranks in "23"
                          for transport in ("inproc", "shm") for size in ("8", "128", "2048")})
        self.assertEqual(len(points), 24)
        self.assertRegex("\n".join(output), r"the planner's choice is within 10 % of the best candidate on \d+ of 24 points \(\d+\.\d %\)")
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "table"
            path.write_text("\n".join(table) + "\n")
            lines, _ = self.explain("broadcast", "--bytes", "8,128,2K", "--transport", "shm", "--ranks", "3", KOLO_TUNING=str(path))
        chosen = {str(line["bytes"]): line["algorithm"] for line in lines if line["is_chosen"]}
        self.assertEqual(chosen, {size: name for collective, ranks, transport, size, name in points
                                  if (collective, ranks, transport) == ("broadcast", "3", "shm")})

    def test_a_tune_that_fails_leaves_nothing(self):
        _, _, left = self.tune(*self.GRID, "--json", "/dev/full", code=1)
        self.assertEqual(left, [])

    def test_a_tune_that_is_killed_leaves_nothing(self):
        with tempfile.TemporaryDirectory() as folder:
            words = [BENCH, "tune", *self.GRID, *FEW, "--out", str(Path(folder) / "table")]
            with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env={**os.environ, "TMPDIR": folder}) as tune:
                points = [line for line in tune.stdout if tune.poll() is None and "allreduce " in line and tune.kill() is None]
            self.assertTrue(points)
            self.assertEqual((tune.returncode, os.listdir(folder)), (-signal.SIGKILL, []))

    def test_impossible_tune_and_explain_are_refused_before_any_measurement(self):
        out = ["--out", os.devnull + "/x"]
        for words, about in ((["tune"], "--out FILE is missing"), (["tune", "--out", "/no/such/folder/table"], "/no/such/folder/table: cannot"),
                             (["tune", "--out", tempfile.gettempdir()], "Is a directory"),
                             (["tune", "--ranks", "0", *out], "--ranks 0: expected"), (["tune", "--ranks", "2,x", *out], "--ranks x: expected"),
                             (["tune", "--ranks", "", *out], "--ranks"), (["tune", "--transport", "pigeon", *out], "--transport pigeon"),
                             (["tune", "--collectives", "zoo", *out], "--collectives zoo: expected one of"),
                             (["tune", "--collectives", "scan", *out], "does not choose its algorithm"),
                             (["explain"], "explain needs a collective"), (["explain", "zoo"], "explain zoo: expected one of allgather"),
                             (["explain", "scan", "--bytes", "4K,"], "--bytes"), (["explain", "scan", "--bytes", "3"], "less than one element"),
                             (["explain", "scan", "--reproducibility", "sometimes"], "expected one of fast, ordered, invariant")):
            with self.subTest(words=words):
                code, output, errors = run(*words)
                self.assertEqual((code, output, len(errors.splitlines())), (2, "", 1), errors)
                self.assertIn(about, errors)
        for command in ("allreduce", "explain"):
            code, output, errors = run(*(["explain", "scan"] if command == "explain" else ["scan"]), KOLO_TUNING="/no/such/table")
            self.assertEqual((code, output, len(errors.splitlines())), (2, "", 1), errors)
            self.assertIn("KOLO_TUNING: the tuning table '/no/such/table' cannot be read", errors)

    def test_tune_under_a_launcher_is_refused(self):
        code, _, errors = run("tune", "--out", "/tmp/x", RANK="0", WORLD_SIZE="2", LOCAL_RANK="0", LOCAL_WORLD_SIZE="2")
        self.assertEqual(code, 2)
        self.assertIn("without a launcher", errors)


class Drawing(unittest.TestCase):
    def draw(self, *words):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "picture.svg"
            code, output, errors = run("draw", *words, "--out", str(path))
            self.assertEqual(code, 0, errors)
            self.assertEqual(os.listdir(folder), ["picture.svg"])
            return ElementTree.parse(path).getroot(), output

    def test_every_collective_has_a_picture_and_a_table(self):
        for collective in COLLECTIVES:
            with self.subTest(collective=collective):
                picture, table = self.draw(collective, "--ranks", "5")
                boxes = picture.findall("{*}rect/{*}title")
                self.assertTrue(all(box.text.startswith("rank ") for box in boxes))
                self.assertEqual({box.text[:6] for box in boxes}, {f"rank {rank}" for rank in range(5)})
                for rank in range(5):
                    self.assertIn(f"{ALGORITHMS[collective]} ", table)
                    self.assertIn(f": rank {rank} of 5", table)

    def test_every_segment_of_a_ring_has_a_box(self):
        picture, _ = self.draw("allreduce", "--algorithm", "ring", "--ranks", "6", "--bytes", "96K", "--segment-bytes", "16K")
        self.assertEqual(len(picture.findall("{*}rect/{*}title")), 6 * 11)

    def test_the_commands_of_the_readme_draw_its_pictures(self):
        folder = Path(__file__).resolve().parents[3] / "collectives"
        lines = [line.split() for line in (folder / "README.md").read_text().splitlines()
                 if line.startswith("    kolo-bench draw") and "--out collectives/" in line]
        self.assertEqual({Path(words[-1]).name for words in lines}, {path.name for path in (folder / "pictures").iterdir()})
        for words in lines:
            with self.subTest(command=" ".join(words)), tempfile.TemporaryDirectory() as scratch:
                drawn = Path(scratch) / "picture.svg"
                self.assertEqual(run(*words[1:-1], str(drawn))[0], 0)
                self.assertTrue(drawn.read_bytes() == (folder.parent / words[-1]).read_bytes(),
                                "the picture is another one now: run the command at the root of the repository, look at what "
                                "it draws, and commit it")

    def test_boxes_name_the_step_and_the_legend_its_parts(self):
        def texts(*words):
            return [text.text for text in self.draw(*words)[0].findall("{*}text")]
        ring = texts("allreduce", "--algorithm", "ring", "--ranks", "4", "--bytes", "64K")
        self.assertLess({"send 0", "reduce 1", "pass on 2", "receive 3", "number: chunk; arrow: a message on its way"}, set(ring))
        self.assertFalse({"copy", "update"} & set(ring))
        servers = texts("push_pull", "--servers", "1", "--update", "--ranks", "3", "--bytes", "48K")
        self.assertLess({"rank 0, server", "rank 1", "send 0", "update", "number: segment; arrow: a message on its way"},
                        set(servers))
        answers = texts("allreduce", "--algorithm", "ring", "--ranks", "2", "--answers", "--bytes", "64K")
        self.assertIn("number: chunk.segment; arrow: a message on its way, dashed: an answer in place", answers)

    def test_ranks_are_drawn_on_their_hosts(self):
        picture, table = self.draw("allreduce", "--algorithm", "hierarchical", "--ranks", "6", "--hosts", "2", "--bytes", "12K",
                                   "--segment-bytes", "4K")
        words = [text.text for text in picture.findall("{*}text")]
        self.assertIn("allreduce by hierarchical, 6 ranks on 2 hosts", words)
        self.assertEqual([word for word in words if word.startswith("host ")], ["host 0", "host 1"])
        self.assertIn("receive-reduce-copy-send chunk 0   stage 1 from 1 to 3", table)
        crossing = [line for line in picture.findall("{*}line") if line.get("stroke-width") == "2.2"]
        self.assertEqual(len(crossing), 6)  # every rank sends its host's sum of one chunk to the other host
        picture, _ = self.draw("allreduce", "--algorithm", "hierarchical", "--ranks", "5", "--hosts", "7,7,3,3,7")
        words = [text.text for text in picture.findall("{*}text")]
        self.assertEqual([word for word in words if word.startswith("host ")], ["host 0", "host 1", "host 0"])

    def test_an_output_file_keeps_its_link_and_permissions_and_a_device_stays_a_device(self):
        with tempfile.TemporaryDirectory() as folder:
            real, link = Path(folder) / "real", Path(folder) / "link"
            real.write_text("before")
            real.chmod(0o600)
            link.symlink_to(real)
            self.assertEqual(run("draw", "scan", "--ranks", "2", "--out", str(link))[0], 0)
            self.assertTrue(link.is_symlink())
            self.assertIn("<svg", real.read_text())
            self.assertEqual(real.stat().st_mode & 0o777, 0o600)
            self.assertEqual(sorted(path.name for path in Path(folder).iterdir()), ["link", "real"])
        self.assertEqual(run("draw", "scan", "--ranks", "2", "--out", "/dev/null")[0], 0)
        self.assertTrue(Path("/dev/null").is_char_device())

    def test_impossible_pictures_are_refused(self):
        for words, about in ((["scan", "--servers", "1"], "for push_pull"), (["push_pull", "--servers", "6"], "--servers 6"),
                             (["pigeon"], "draw pigeon: expected one of allgather,"), (["scan", "--bytes", "1G"], "boxes"),
                             (["allreduce", "--bytes", "1G", "--segment-bytes", "64"], "boxes"),
                             (["scan", "--ranks", "65"], "1 to 64"), (["reduce", "--root", "6"], "--root 6: expected 0 to 5"),
                             (["scan", "--algorithm", "ring"], "scan --algorithm ring: expected one of chain"),
                             (["scan", "--hosts", "7"], "--hosts 7: expected"), (["scan", "--hosts", "0,1"], "--hosts 0,1"),
                             (["scan", "--latency", "-1"], "--latency"), (["scan", "--segment-bytes", "1"], "--segment-bytes")):
            with self.subTest(words=words), tempfile.TemporaryDirectory() as folder:
                code, output, errors = run("draw", *words, "--out", folder + "/x.svg")
                self.assertEqual((code, output, len(errors.splitlines()), os.listdir(folder)), (2, "", 1, []), errors)
                self.assertIn(about, errors)


class Others(unittest.TestCase):
    def test_only_the_named_limits_are_measured(self):
        code, output, errors = run("limits", "--quick", "--only", "tcp")
        self.assertEqual(code, 0, errors)
        self.assertIn("tcp round trip", output)
        self.assertNotIn("memory L2", output)
        self.assertNotIn("allreduce", output)

    def test_the_interpreter_is_compared_with_manual_loops_and_each_line_with_its_limit(self):
        code, output, errors = run("interpreter", "--quick", "--ranks", "3")
        self.assertEqual(code, 0, output + errors)  # its sums were right
        for what, lines in (("ring of 3 in threads", 2), ("ring of 2 in one thread", 2), ("8 bytes ", 2), ("cached plan", 8)):
            self.assertEqual(len([line for line in output.splitlines() if line.startswith(what)]), lines, output)
        plans = [line.split() for line in output.splitlines() if " no more " in line]
        self.assertLess({"ring", "bruck", "parameter_server", "dissemination"}, {plan[1] for plan in plans})
        self.assertEqual({plan[2] for plan in plans}, {"2", "16", "128", "1024"})
        self.assertEqual({plan[-1] for plan in plans}, {"ok"})  # a plan's memory does not grow with the message
        code, _, errors = run("interpreter", "--ranks", "1")
        self.assertEqual((code, len(errors.splitlines())), (2, 1))

    def test_plots_are_drawn_from_json_lines(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "lines.jsonl"
            self.assertEqual(run("allreduce", "--max-bytes", "2K", *FEW, "--json", str(path))[0], 0)
            code, _, errors = run("plot", str(path), "--out", str(Path(folder) / "plots"))
            if "matplotlib is missing" in errors:
                self.skipTest("matplotlib is not installed")
            self.assertEqual(code, 0, errors)
            names = sorted(entry.name for entry in (Path(folder) / "plots").iterdir())
            self.assertIn("allreduce_2_ranks_time.png", names)
            self.assertIn("allreduce_2_ranks_bandwidth.svg", names)

    def test_the_topology_has_a_row_for_every_pair_of_ranks(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "lines.jsonl"
            code, output, errors = run("topology", "--ranks", "3", "--transport", "inproc", "--json", str(path))
            self.assertEqual(code, 0, errors)
            lines = [json.loads(line) for line in path.read_text().splitlines()]
        self.assertEqual([(line["from"], line["to"], line["transport"]) for line in lines],
                         [(0, 1, "inproc"), (0, 2, "inproc"), (1, 2, "inproc")])
        slowest = min(lines, key=lambda line: line["bandwidth_GBps"])
        self.assertIn(f"# the slowest link: ranks {slowest['from']} and {slowest['to']} over inproc, ", output)
        for line in lines:
            self.assertGreater(min(line["latency_us"], line["bandwidth_GBps"]), 0)
        for words, expected in ((["--ranks", "1"], "expected 2 to 1024"), (["--transport", "all"], "one at a time"),
                                (["--transport", "shm+shm"], "two joined by +"), (["--transport", "tcp+shm"], "two joined by +")):
            code, output, errors = run("topology", *words)
            self.assertEqual((code, output, len(errors.splitlines())), (2, "", 1), errors)
            self.assertIn(expected, errors)

    def test_an_error_names_a_file_that_is_not_json(self):
        code, _, errors = run("plot", __file__, "--out", "/tmp")
        self.assertNotEqual(code, 0)
        self.assertIn(Path(__file__).name, errors)


if __name__ == "__main__":
    BENCH = sys.argv.pop(1)
    unittest.main(verbosity=2)
