#!/usr/bin/env python3
"""Tests plot_report.py: complete files, contents of the plots. Usage: plot_report_test.py KOLO_TRAIN SCRIPT.

kolo-train draws in a process of its own. All other plots are drawn in this process, which imports matplotlib once.
"""

import importlib
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest
from importlib.util import find_spec
from pathlib import Path
from unittest import mock

KOLO_TRAIN, SCRIPT = sys.argv[1:3]
SYSTEM_PYTHON = "/usr/bin/python3"  # kolo-train tries it first
FIGURES = ("throughput", "iteration", "learning", "bytes")
PLOTS = sorted(f"{name}.{kind}" for name in FIGURES for kind in ("png", "svg"))
OTHERS = ["manifest.json", "metrics.csv", "metrics.jsonl", "report.json", "report.md", "tensorboard"]
# Loaded at every start of Python: prints the name of a plot that is about to be renamed, then waits forever.
HOLD = """
import os, signal
def hold(part, whole):
    print(part, flush=True)
    while True:
        signal.pause()
os.replace = hold
"""


def use_matplotlib():
    """Restarts under the system's Python if that is the one with matplotlib, as kolo-train chooses it."""
    if find_spec("matplotlib") is None and sys.executable != SYSTEM_PYTHON and os.path.exists(SYSTEM_PYTHON):
        os.execv(SYSTEM_PYTHON, [SYSTEM_PYTHON, "-B", *sys.argv])


@unittest.skipUnless(find_spec("matplotlib"), "skipped: no python3 with matplotlib")
class PlotReport(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.made = tempfile.TemporaryDirectory(prefix="kolo-plot-report-")
        cls.addClassCleanup(cls.made.cleanup)
        subprocess.run([KOLO_TRAIN, "train", "--model", "small", "--ranks", "1", "--train-size", "16", "--test-size", "8", "--epochs", "1",
                        "--batch-size", "8", "--report", cls.made.name], check=True, capture_output=True, timeout=120)
        sys.path.insert(0, str(Path(SCRIPT).parent))
        cls.script = importlib.import_module("plot_report")

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="kolo-plot-report-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def report(self, plots=True):
        """The folder of a run of the small model, with or without its plots."""
        ignored = () if plots else PLOTS
        return Path(shutil.copytree(self.made.name, self.folder / "report", ignore=shutil.ignore_patterns(*ignored)))

    def draw(self, folder):
        """Runs the script in this process, because a new process takes a second to import matplotlib. Returns how it ended: as an
        exit code, or an error of exit code 1."""
        before = signal.getsignal(signal.SIGTERM)
        self.addCleanup(signal.signal, signal.SIGTERM, before)
        with mock.patch.object(sys, "argv", [SCRIPT, str(folder)]):
            try:
                self.script.main()
            except SystemExit as end:
                return end.code
        return 0

    def pictures(self, report, *figures):
        """{name: SVG} of these figures of the report."""
        folder = Path(tempfile.mkdtemp(dir=self.folder))
        with mock.patch.object(self.script, "KINDS", ("svg",)):
            for name in figures:
                getattr(self.script, f"draw_{name}")(report, folder)
        self.assertEqual(self.names(folder), sorted(f"{name}.svg" for name in figures))
        return {path.stem: path.read_text(encoding="utf-8") for path in folder.iterdir()}

    def read(self):
        return json.loads((Path(self.made.name) / "report.json").read_text(encoding="utf-8"))

    def names(self, folder):
        return sorted(path.name for path in folder.iterdir())

    def test_all_plots_are_drawn_and_no_other_file_is_left(self):
        self.assertEqual(self.names(self.report()), sorted([*PLOTS, *OTHERS]))

    def test_the_data_and_the_warnings_of_the_report_are_below_every_picture(self):
        warning = "WARNING: speeds and times come from 0 counted iterations, too few for a comparison."
        report = self.read()
        self.assertIn("too few for a comparison.", report["findings"][0])
        for findings, shown in (([warning, "Every rank moved the bytes."], 1), ([], 0)):
            for name, picture in self.pictures({**report, "findings": findings}, *FIGURES).items():
                self.assertRegex(picture, "<!-- digits.*: 16 training samples", name)
                self.assertEqual((picture.count(f"<!-- {warning} -->"), picture.count("moved the bytes")), (shown, 0), name)

    def plots_of_arms(self, *arms, figures, parts_ms=()):
        """{name: SVG} of a report in which all arms have equal data; `parts_ms` replaces the times."""
        report = self.read()
        run = report["runs"][0]
        for rank in run["ranks"]:
            rank["parts"][:len(parts_ms)] = [part / 1e3 for part in parts_ms]
        report["runs"] = [{**run, "arm": arm} for arm in arms]
        return self.pictures(report, *figures)

    def test_legends_are_below_the_axes(self):
        plots = self.plots_of_arms("ring", "ps", "ps:sharded", "ps:everywhere:optimizer=server", figures=("learning", "bytes"))
        for plot, key, lowest in (("learning", "ring", "seconds of training"), ("bytes", "formula", "optimizer=server")):
            heights = {text: [float(height) for height in re.findall(rf'<!-- {text} -->\s*<g [^>]*translate\([-\d.]+ ([-\d.]+)\)', plots[plot])]
                       for text in (key, lowest)}
            self.assertGreater(heights[key][-1], max(heights[lowest]), plot)

    def test_arms_have_distinct_colours_that_nothing_else_uses(self):
        plots = self.plots_of_arms("ring", "ps", figures=FIGURES, parts_ms=(1, 1, 1, 1, 1, 1))
        arms = ("#0072b2", "#d55e00")  # in the order of the arms
        self.assertTrue(all(colour in plots[name] for colour in arms for name in ("throughput", "learning")))
        for name in ("iteration", "bytes"):
            self.assertNotRegex(plots[name], "|".join(arms), name)
        # Both arms have the same values, so their markers must have different shapes.
        shapes = [re.findall(rf'<path id="m[^"]*" d="([^"]*)" style="[^"]*stroke: {arm}', plots["learning"]) for arm in arms]
        self.assertTrue(all(shapes))
        self.assertFalse(set(shapes[0]) & set(shapes[1]))

    def test_a_report_of_pytorch_alone_has_no_counted_bytes(self):
        report = self.read()
        report["runs"] = [{**report["runs"][0], "arm": "torch-ddp", "program": "torch 9"}]
        self.assertIn("<!-- not counted: PyTorch has no count of bytes -->", self.pictures(report, *FIGURES)["bytes"])

    def test_a_crossover_has_a_line_for_each_arm_and_a_point_for_each_measurement(self):
        points = [{"arm": arm, "servers": servers, "predicted_seconds": 0.1, **measured}
                  for arm, servers, measured in (("ring", 0, {"measured_seconds": 0.11}), ("ps", 1, {"measured_seconds": 0.2}),
                                                 ("ps", 2, {"measured_seconds": 0.1}), ("split", 1, {}), ("split", 2, {}))]
        report = {"format": "kolo-crossover-1", "ranks": 2, "bytes": 4, "transport": "shm,1Gbit", "findings": ["Found."], "points": points}
        folder = self.folder / "crossover"
        folder.mkdir()
        (folder / "report.json").write_text(json.dumps(report), encoding="utf-8")
        self.assertEqual(self.draw(folder), 0)
        self.assertEqual(self.names(folder), ["crossover.png", "crossover.svg", "report.json"])
        picture = (folder / "crossover.svg").read_text(encoding="utf-8")
        for text in ("ring", "ps", "split", "Found."):
            self.assertIn(f"<!-- {text} -->", picture)

    def test_times_have_one_decimal_as_in_the_table(self):
        picture = self.plots_of_arms("ring", figures=("iteration",), parts_ms=(20, 15.04, 1002.42, 0, 0, 0))["iteration"]
        self.assertLessEqual({"15.0", "1,002.4", "1,037.5 ms"}, {text.strip() for text in re.findall("<!-- (.*) -->", picture)})

    def test_long_times_are_whole_numbers_and_short_ones_have_three_digits(self):
        self.assertEqual([self.script.short_number(value) for value in (0.30712, 9.756, 99.96, 1369.6)], ["0.307", "9.76", "100", "1,370"])

    def test_names_of_files_have_no_folders(self):
        self.assertEqual(self.script.without_folders("svhn (/some/where/train_32x32.mat): 4434 samples; digits (rendered)"),
                         "svhn (train_32x32.mat): 4434 samples; digits (rendered)")

    def test_numbers_on_light_bars_are_black_and_on_dark_ones_white(self):
        picture = self.plots_of_arms(*(f"arm {index}" for index in range(8)), figures=("throughput",))["throughput"]
        self.assertEqual(len(re.findall(r'<!-- [\d.]+ -->\s*<g style="fill: #ffffff"', picture)), 2)  # on blue and on black

    def test_a_full_disk_leaves_no_partial_plot(self):
        folder = self.report(plots=False)
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, before[1]))
        try:
            end = self.draw(folder)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        self.assertEqual(end, f"plot_report: {folder}: File too large")
        self.assertEqual(self.names(folder), OTHERS)

    def test_a_script_that_gets_sigterm_leaves_no_partial_plot(self):
        folder = self.report(plots=False)
        left = []

        def end_before_rename(part, _):
            left.append(part.exists())
            signal.raise_signal(signal.SIGTERM)

        with mock.patch.object(os, "replace", end_before_rename), mock.patch.object(os, "_exit", sys.exit):
            self.assertEqual(self.draw(folder), 128 + signal.SIGTERM)
        self.assertEqual(left, [True])
        self.assertEqual(self.names(folder), OTHERS)

    def test_a_killed_run_ends_its_script(self):
        folder = self.folder / "killed"
        (self.folder / "sitecustomize.py").write_text(HOLD, encoding="utf-8")
        run = subprocess.Popen([KOLO_TRAIN, "train", "--model", "small", "--ranks", "1", "--train-size", "16", "--test-size", "8", "--epochs", "1",
                                "--batch-size", "8", "--report", folder], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                               env={**os.environ, "PYTHONPATH": str(self.folder)})
        part = None
        for line in run.stdout:
            if line.strip().endswith(".part"):
                part = Path(line.strip())
                break
        self.assertTrue(part and part.exists(), part)
        run.kill()
        run.wait(timeout=60)
        run.stdout.read()  # read to the end: the script, which has it open, has ended then
        run.stdout.close()
        self.assertEqual(self.names(folder), OTHERS)


if __name__ == "__main__":
    use_matplotlib()
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
