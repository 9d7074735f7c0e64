#!/usr/bin/env python3
"""Makes resnet50_reference.txt: the results of torchvision's ResNet-50, used by resnet50_test.cpp.

  ./make_resnet50_reference.py > resnet50_reference.txt       needs torch and torchvision (python3-torchvision)

Weights, statistics and images are not stored. They follow from a formula of (ordinal, index) that the test repeats bit for
bit (see `uniform`). The results are computed in float64 from these float32 values, so they do not contain the rounding of
another library. The errors of torch itself in float32 are stored too, as a scale for tolerances.

The cases are chosen so that the comparison is meaningful. A batch norm with very few values per channel (4 images of 32x32,
whose last stage is 1x1) has channels with a variance near zero, and their gradients explode. If the input of a ReLU is within
rounding of zero, one program passes its gradient and the other does not, which changes whole tensors by a percent. So batches
are small, and the biases of batch norms keep most inputs away from zero. Of eight ordinals of the images, the script uses the
one whose ReLU input nearest to zero is farthest from it, relative to the rounding error of its layer.

Lines: a word, a name, numbers. `gradient NAME norm sum entries...`: entries at indices (j * count / 8 + j) mod count.
"""
import sys

import numpy as np
import torch
import torchvision

ENTRIES = 8
CASES = [  # name, stem, batch, side, ordinal of the images
    ("imagenet_16", "imagenet", 16, 16, 3003),
    ("imagenet_32", "imagenet", 8, 32, 3008),
    ("cifar_16", "cifar", 4, 16, 3008),
]


def uniform(ordinal, count):
    """`count` numbers in [-1, 1), 24 bits each: the finaliser of SplitMix64 on (ordinal << 32) + index."""
    z = (np.uint64(ordinal) << np.uint64(32)) + np.arange(count, dtype=np.uint64)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = z ^ (z >> np.uint64(31))
    return ((z >> np.uint64(40)).astype(np.int64) - (1 << 23)).astype(np.float32) / np.float32(1 << 23)


def parameter_values(ordinal, name, shape):
    values = uniform(1 + ordinal, int(np.prod(shape))).reshape(shape)
    if len(shape) == 4:  # convolution: variance 2 / fan_in
        return values * np.float32(np.sqrt(6.0 / (shape[1] * shape[2] * shape[3])))
    if len(shape) == 2:
        return values * np.float32(np.sqrt(1.0 / shape[1]))
    if name == "fc.bias":
        return values * np.float32(0.125)
    # Batch norm. The last one of a block has a small scale, so that activations stay near 1 also in evaluation. The bias is 2.5
    # times the scale, with either sign, so that few inputs of a ReLU are near zero.
    middle = np.float32(0.25 if "bn3" in name else 0.75)
    if name.endswith(".bias"):
        return np.where(values < 0, np.float32(-2.5), np.float32(2.5)) * middle + np.float32(0.125) * values
    return middle + np.float32(0.125) * values


def make_model(stem, classes):
    model = torchvision.models.resnet50(num_classes=classes)
    if stem == "cifar":
        model.conv1 = torch.nn.Conv2d(3, 64, 3, 1, 1, bias=False)
        model.maxpool = torch.nn.Identity()
    with torch.no_grad():
        for ordinal, (name, parameter) in enumerate(model.named_parameters()):
            parameter.copy_(torch.from_numpy(parameter_values(ordinal, name, tuple(parameter.shape))))
        norms = [m for m in model.modules() if isinstance(m, torch.nn.BatchNorm2d)]
        for ordinal, norm in enumerate(norms):
            count = norm.running_mean.numel()
            norm.running_mean.copy_(torch.from_numpy(np.float32(0.125) * uniform(1001 + ordinal, count)))
            norm.running_var.copy_(torch.from_numpy(np.float32(1) + np.float32(0.5) * uniform(2001 + ordinal, count)))
    return model


def numbers(values):
    return " ".join("%.9g" % float(v) for v in values)


def entries(tensor):
    flat = tensor.detach().reshape(-1)
    return [flat[(j * flat.numel() // ENTRIES + j) % flat.numel()] for j in range(ENTRIES)]


def answers(stem, batch, side, ordinal, dtype):
    """Evaluation, then one training pass: {(word, name): (tensor, numbers to store)}."""
    model = make_model(stem, 10).to(dtype)
    images = torch.from_numpy(uniform(ordinal, batch * 3 * side * side).reshape(batch, 3, side, side)).to(dtype)
    labels = torch.tensor([(3 * n + 1) % 10 for n in range(batch)])
    found = {}
    for mode in ("evaluation", "training"):
        model.train(mode == "training")
        logits = model(images)
        loss = torch.nn.functional.cross_entropy(logits, labels)
        found["logits", mode] = (logits.detach(), logits.detach().reshape(-1))
        found["loss", mode] = (loss.detach().reshape(1), loss.detach().reshape(1))
    loss.backward()
    for name, parameter in model.named_parameters():
        gradient = parameter.grad
        found["gradient", name] = (gradient, [gradient.norm(), gradient.sum()] + entries(gradient))
    for name, buffer in model.named_buffers():
        if not name.endswith("num_batches_tracked"):
            found["buffer", name] = (buffer, [buffer.norm(), buffer.sum()] + entries(buffer))
    return found


def main():
    torch.set_num_threads(2)
    print("# Made by make_resnet50_reference.py with torch %s, torchvision %s, in float64."
          % (torch.__version__, torchvision.__version__))
    model = torchvision.models.resnet50(num_classes=1000)
    print("total", sum(p.numel() for p in model.parameters()))
    for name, parameter in model.named_parameters():
        print("parameter", name, " ".join(map(str, parameter.shape)))
    for name, buffer in model.named_buffers():
        print(" ".join(["state", name] + list(map(str, buffer.shape))))
    for case, stem, batch, side, ordinal in CASES:
        print("case", case, stem, batch, side, ordinal)
        truth = answers(stem, batch, side, ordinal, torch.float64)
        rounded = answers(stem, batch, side, ordinal, torch.float32)
        for (word, name), (tensor, stored) in truth.items():
            print(word, name, numbers(stored))
        for word in ("logits", "loss", "gradient", "buffer"):  # the largest |difference| / |tensor|, as vectors
            worst = max(float((rounded[key][0].double() - tensor).norm() / tensor.norm())
                        for key, (tensor, _) in truth.items() if key[0] == word)
            print("float32", word, "%.3g" % worst)
            print(case, word, "%.3g" % worst, file=sys.stderr)


if __name__ == "__main__":
    main()
