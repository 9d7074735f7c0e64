"""Reference values of models, computed with torch in float64, for make_*_reference.py.

Weights, statistics and images are not stored. They follow from a formula of (ordinal, index) that
the test repeats bit for bit (see `uniform`). The results are computed in float64 from these float32
values, so they do not contain the rounding of another library. The errors of torch itself in
float32 are stored too, as a scale for tolerances.

Lines: a word, a name, numbers. `gradient NAME norm sum entries...`: entries at indices
(j * count / 8 + j) mod count. `case NAME batch side channels ordinal words...`: the images of one
batch, and the ordinal of their pixels.
"""
import sys
from dataclasses import dataclass

import numpy as np
import torch

ENTRIES = 8


@dataclass
class Case:
    name: str
    batch: int
    side: int
    channels: int
    ordinal: int  # of the images
    words: tuple = ()  # of the model: its stem

    def images(self, dtype):
        shape = (self.batch, self.channels, self.side, self.side)
        return torch.from_numpy(uniform(self.ordinal, int(np.prod(shape))).reshape(shape)).to(dtype)


def uniform(ordinal, count):
    """`count` numbers in [-1, 1), 24 bits: SplitMix64's finaliser of (ordinal << 32) + index."""
    z = (np.uint64(ordinal) << np.uint64(32)) + np.arange(count, dtype=np.uint64)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = z ^ (z >> np.uint64(31))
    top = (z >> np.uint64(40)).astype(np.int64)
    return (top - (1 << 23)).astype(np.float32) / np.float32(1 << 23)


def parameter_values(ordinal, name, shape):
    values = uniform(1 + ordinal, int(np.prod(shape))).reshape(shape)
    if len(shape) == 4:  # convolution: variance 2 / fan_in
        return values * np.float32(np.sqrt(6.0 / (shape[1] * shape[2] * shape[3])))
    if len(shape) == 2:
        return values * np.float32(np.sqrt(1.0 / shape[1]))
    if name.startswith(("conv", "fc")):  # bias of a convolution or linear layer
        return values * np.float32(0.125)
    # Batch norm. The last one of a block has a small scale, so that activations stay near 1 also in
    # evaluation. The bias is 2.5 times the scale, with either sign, so that few inputs of a ReLU are
    # near zero.
    middle = np.float32(0.25 if "bn3" in name else 0.75)
    if name.endswith(".bias"):
        signs = np.where(values < 0, np.float32(-2.5), np.float32(2.5))
        return signs * middle + np.float32(0.125) * values
    return middle + np.float32(0.125) * values


def fill(model):
    """Sets the parameters, and the statistics of batch norms."""
    with torch.no_grad():
        for ordinal, (name, parameter) in enumerate(model.named_parameters()):
            values = parameter_values(ordinal, name, tuple(parameter.shape))
            parameter.copy_(torch.from_numpy(values))
        norms = [m for m in model.modules() if isinstance(m, torch.nn.BatchNorm2d)]
        for ordinal, norm in enumerate(norms):
            count = norm.running_mean.numel()
            mean = np.float32(0.125) * uniform(1001 + ordinal, count)
            variance = np.float32(1) + np.float32(0.5) * uniform(2001 + ordinal, count)
            norm.running_mean.copy_(torch.from_numpy(mean))
            norm.running_var.copy_(torch.from_numpy(variance))
    return model


def numbers(values):
    return " ".join("%.9g" % float(v) for v in values)


def entries(tensor):
    flat = tensor.detach().reshape(-1)
    return [flat[(j * flat.numel() // ENTRIES + j) % flat.numel()] for j in range(ENTRIES)]


def answers(model, case, dtype):
    """Evaluation, then one training pass: {(word, name): (tensor, numbers to store)}."""
    model = model.to(dtype)
    images = case.images(dtype)
    labels = torch.tensor([(3 * n + 1) % 10 for n in range(case.batch)])
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


def print_parameters(model):
    print("total", sum(p.numel() for p in model.parameters()))
    for name, parameter in model.named_parameters():
        print("parameter", name, " ".join(map(str, parameter.shape)))
    for name, buffer in model.named_buffers():
        print(" ".join(["state", name] + list(map(str, buffer.shape))))


def print_case(case, make_model):
    print("case", case.name, case.batch, case.side, case.channels, case.ordinal, *case.words)
    truth = answers(make_model(case), case, torch.float64)
    rounded = answers(make_model(case), case, torch.float32)
    for (word, name), (tensor, stored) in truth.items():
        print(word, name, numbers(stored))
    # The largest |difference| / |tensor|, as vectors.
    for word in ("logits", "loss", "gradient", "buffer"):
        errors = [float((rounded[key][0].double() - tensor).norm() / tensor.norm())
                  for key, (tensor, _) in truth.items() if key[0] == word]
        if errors:
            print("float32", word, "%.3g" % max(errors))
            print(case.name, word, "%.3g" % max(errors), file=sys.stderr)
