"""kolo-train's arms that train in PyTorch: the same losses as kolo's arms, iteration by iteration."""

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

PROGRAM = os.environ.get("TRAIN_PROGRAM", str(Path(__file__).resolve().parents[2] / "build/release/bin/kolo-train"))
ARMS = "ring,torch-ddp,torch-ps" + (",torch-ddp-kolo" if importlib.util.find_spec("kolo_torch") else "")
WORK = ("--ranks=2", "--threads=1", "--train-size=60", "--test-size=21", "--batch-size=8", "--epochs=2", "--timeout=60",
        "--lr=0.05", "--reproducibility=invariant")  # the last batch of an epoch has 12 samples


def train(folder, *words):
    ended = subprocess.run([PROGRAM, "versus", f"--python={sys.executable}", f"--strategies={ARMS}", f"--report={folder}", *WORK,
                            *words], capture_output=True, text=True, timeout=300, check=False)
    if ended.returncode != 0:
        raise AssertionError(f"exit code {ended.returncode}\n{ended.stdout}\n{ended.stderr}")
    return json.loads((Path(folder) / "report.json").read_text())


@unittest.skipUnless(os.access(PROGRAM, os.X_OK), f"{PROGRAM} is not built; TRAIN_PROGRAM names another one")
class VersusTest(unittest.TestCase):
    def check(self, *words, digits):
        with tempfile.TemporaryDirectory() as folder:
            report = train(Path(folder) / "report", *words)
        own, *others = report["runs"]
        self.assertEqual([run["arm"] for run in others], ARMS.split(",")[1:])
        for run in others:
            self.assertTrue(run["program"].startswith("torch "))
            self.assertEqual(len(run["step_losses"]), len(own["step_losses"]))
            for mine, theirs in zip(own["step_losses"], run["step_losses"]):
                self.assertAlmostEqual(mine, theirs, digits, msg=run["arm"])
            for mine, theirs in zip(own["epochs"], run["epochs"]):
                self.assertAlmostEqual(mine["train_loss"], theirs["train_loss"], digits)
                # After an update, relative: normalisation of few values enlarges rounding.
                self.assertAlmostEqual(mine["test_loss"], theirs["test_loss"], delta=0.01 * mine["test_loss"])
                self.assertAlmostEqual(mine["test_accuracy"], theirs["test_accuracy"], 1)
                self.assertAlmostEqual(mine["learning_rate"], theirs["learning_rate"], 7)
            self.assertTrue(all(rank["peak_mib"] > 0 and rank["step_seconds"] > 0 for rank in run["ranks"]))
        self.assertIn("PyTorch began with the same weights and samples", " ".join(report["findings"]))

    def test_networks_without_normalisation(self):
        self.check("--model=cnn", "--nesterov", "--label-smoothing=0.1", digits=4)
        self.check("--model=mlp", "--optimizer=adamw", "--lr-schedule=step", digits=3)

    def test_networks_with_normalisation(self):
        self.check("--model=small", "--lr-schedule=polynomial", digits=3)
        self.check("--model=resnet18", "--stem=cifar", "--steps=3", digits=2)
        self.check("--model=resnet50", "--steps=1", digits=4)


if __name__ == "__main__":
    unittest.main()
