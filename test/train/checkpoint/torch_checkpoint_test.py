#!/usr/bin/env python3
"""Tests that PyTorch and kolo-train read each other's weights and then compute the same.

  torch_checkpoint_test.py KOLO_TRAIN        skipped without the packages torch, torchvision and safetensors
"""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

try:
    import torch
    import torchvision
    from safetensors import safe_open
    from safetensors.torch import load_file, save_file
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(0)

SIDE = 32


class TorchCheckpoint(unittest.TestCase):
    program = ""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        torch.manual_seed(1)
        self.images = torch.randint(0, 256, (3, SIDE, SIDE, 3), dtype=torch.uint8)
        for i, image in enumerate(self.images):
            (self.folder / f"{i}.ppm").write_bytes(f"P6 {SIDE} {SIDE} 255\n".encode() + image.numpy().tobytes())

    def run_program(self, *words):
        ended = subprocess.run([self.program, *words], cwd=self.folder, text=True, capture_output=True, timeout=200, check=False)
        self.assertEqual(ended.returncode, 0, ended.stderr)
        return ended.stdout

    def assert_predicts(self, words, model, mean, deviation):
        """The classes and probabilities that kolo-train prints are those of the model in PyTorch."""
        shown = self.run_program("predict", *words, *(f"{i}.ppm" for i in range(len(self.images)))).splitlines()
        values = (self.images.float() - torch.tensor(mean)) / torch.tensor(deviation)
        with torch.no_grad():
            expected = 100 * torch.softmax(model.eval()(values.permute(0, 3, 1, 2)).double(), dim=1)
        for line, row in zip(shown, expected, strict=True):
            classes = line.split(": ", 1)[1].split(", ")
            self.assertEqual(len(classes), 3)
            for text in classes:
                words = text.replace(":", "").split()
                self.assertAlmostEqual(float(words[2]), row[int(words[1])].item(), delta=0.02)
            self.assertAlmostEqual(float(classes[0].split()[2]), row.max().item(), delta=0.02)

    def test_weights_of_torchvision_give_the_same_output_in_kolo_train(self):
        model = torchvision.models.resnet18(num_classes=10)
        for name, buffer in model.named_buffers():
            if name.endswith("running_mean"):
                torch.nn.init.normal_(buffer, std=0.1)
            elif name.endswith("running_var"):
                torch.nn.init.uniform_(buffer, 0.5, 1.5)
        save_file(model.state_dict(), self.folder / "torch.safetensors")
        self.assert_predicts(["--load=torch.safetensors", "--model=resnet18"], model,
                             [123.675, 116.28, 103.53], [58.395, 57.12, 57.375])
        self.run_program("train", "--load=torch.safetensors", "--model=resnet18", "--train-size=16", "--test-size=8",
                         "--batch-size=8", "--epochs=1", "--ranks=1", "--no-report")

    def test_a_checkpoint_of_kolo_train_gives_the_same_output_in_torch(self):
        self.run_program("train", "--model=resnet18", "--train-size=64", "--test-size=8", "--batch-size=16", "--epochs=1",
                         "--save=saved", "--no-report")
        (path,) = (self.folder / "saved").glob("*.safetensors")
        tensors = load_file(path)
        weights = {name: tensor for name, tensor in tensors.items() if not name.startswith("optimizer.")}
        model = torchvision.models.resnet18(num_classes=10)
        self.assertEqual(set(weights), set(model.state_dict()))
        model.load_state_dict(weights)
        for name, parameter in model.named_parameters():
            self.assertEqual(tensors[f"optimizer.momentum.{name}"].shape, parameter.shape)
        self.assertEqual(tensors["bn1.num_batches_tracked"].dtype, torch.int64)
        self.assertEqual(tensors["bn1.num_batches_tracked"].item(), 2)
        with safe_open(path, "pt") as file:
            facts = file.metadata()
        self.assertEqual((facts["model"], facts["iteration"], facts["epoch"]), ("resnet18", "2", "1"))
        self.assert_predicts(["--load=saved"], model, *([float(x) for x in facts[name].split(",")] for name in ("mean", "deviation")))


if __name__ == "__main__":
    TorchCheckpoint.program = str(Path(sys.argv.pop(1)).resolve())
    unittest.main()
