#!/usr/bin/env python3
"""Tests that TensorBoard reads the event files of kolo-train.

  tensorboard_test.py KOLO_TRAIN        skipped without the package tensorboard
"""

import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

try:
    from tensorboard.backend.event_processing.event_file_loader import EventFileLoader
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(0)


class EventFiles(unittest.TestCase):
    program = ""

    def test_the_scalars_are_those_of_the_report(self):
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([self.program, "train", "--model=small", "--train-size=101", "--test-size=33", "--batch-size=16",
                            "--epochs=3", "--eval-every=2", "--report=out"], cwd=folder, check=True, capture_output=True, timeout=200)
            out = Path(folder, "out")
            (file,) = out.glob("tensorboard/ring seed 1/events.out.tfevents.*")
            read = {}
            for event in EventFileLoader(str(file)).Load():
                for value in event.summary.value:
                    read[value.tag, event.step] = value.tensor.float_val[0]
            (run,) = json.loads((out / "report.json").read_text())["runs"]
        written = {}
        for epoch in run["epochs"]:
            written["loss/train", epoch["iterations"]] = epoch["train_loss"]
            written["accuracy/train", epoch["iterations"]] = epoch["train_accuracy"]
            written["learning rate", epoch["iterations"]] = epoch["learning_rate"]
            if epoch["is_evaluated"]:
                written["loss/test", epoch["iterations"]] = epoch["test_loss"]
                written["accuracy/test", epoch["iterations"]] = epoch["test_accuracy"]
        self.assertEqual(len(written), 13)
        self.assertEqual(read.keys(), written.keys())
        for name, value in written.items():
            self.assertAlmostEqual(read[name], value, places=6)


if __name__ == "__main__":
    EventFiles.program = str(Path(sys.argv.pop(1)).resolve())
    unittest.main()
