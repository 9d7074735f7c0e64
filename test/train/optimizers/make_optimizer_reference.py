#!/usr/bin/env python3
"""Makes optimizer_reference.txt: parameters after a few steps of an optimizer, used by optimizer_test.cpp.

  ./make_optimizer_reference.py > optimizer_reference.txt       needs torch (python3-torch)

Parameter i starts at (i mod 7 - 3) / 4; in step s its gradient is ((5 i + 3 s) mod 11 - 5) / 8, and the learning rate 0.1 / (s + 1).
All values are exact in float32. Lines, then the parameters after the last step:

  sgd MOMENTUM WEIGHT_DECAY NESTEROV(0 or 1)     by torch.optim.SGD
  adamw WEIGHT_DECAY BETA1 BETA2                 by torch.optim.AdamW, in float64
  lars MOMENTUM WEIGHT_DECAY TRUST               the paper's formula in float64; the layers are elements 0 to 8 (a matrix) and 8 to 13
"""
import torch

COUNT, STEPS, FIRST_LAYER = 13, 5, 8
SGD_CASES = [(0.0, 0.0, 0), (0.9, 0.0, 0), (0.9, 1e-4, 0), (0.5, 0.1, 0), (0.9, 0.01, 1)]
ADAMW_CASES = [(0.0, 0.9, 0.999), (0.01, 0.9, 0.999), (0.1, 0.5, 0.9)]
LARS_CASES = [(0.0, 0.0, 1e-3), (0.9, 1e-4, 1e-3), (0.9, 0.1, 0.02)]


def start(dtype):
    return torch.tensor([(i % 7 - 3) / 4 for i in range(COUNT)], dtype=dtype)


def gradient(step, dtype):
    return torch.tensor([((5 * i + 3 * step) % 11 - 5) / 8 for i in range(COUNT)], dtype=dtype)


def train(make_optimizer, dtype):
    parameter = start(dtype).requires_grad_()
    optimizer = make_optimizer([parameter])
    for step in range(STEPS):
        parameter.grad = gradient(step, dtype)
        optimizer.param_groups[0]["lr"] = 0.1 / (step + 1)
        optimizer.step()
    return parameter.detach()


def train_lars(momentum, decay, trust):
    w = start(torch.float64)
    v = torch.zeros_like(w)
    for step in range(STEPS):
        g = gradient(step, torch.float64)
        rate = 0.1 / (step + 1)
        matrix, rest = slice(0, FIRST_LAYER), slice(FIRST_LAYER, COUNT)
        local = trust * w[matrix].norm() / (g[matrix].norm() + decay * w[matrix].norm())
        v[matrix] = momentum * v[matrix] + rate * local * (g[matrix] + decay * w[matrix])
        v[rest] = momentum * v[rest] + rate * g[rest]
        w -= v
    return w


def show(name, case, values):
    print(name, "%g %g %g" % case, " ".join("%.9g" % float(value) for value in values))


print("# Made by make_optimizer_reference.py with torch %s." % torch.__version__)
for momentum, decay, nesterov in SGD_CASES:
    show("sgd", (momentum, decay, nesterov), train(
        lambda p: torch.optim.SGD(p, lr=0.1, momentum=momentum, weight_decay=decay, nesterov=bool(nesterov)), torch.float32))
for decay, beta1, beta2 in ADAMW_CASES:
    show("adamw", (decay, beta1, beta2), train(
        lambda p: torch.optim.AdamW(p, lr=0.1, weight_decay=decay, betas=(beta1, beta2)), torch.float64))
for case in LARS_CASES:
    show("lars", case, train_lars(*case))
