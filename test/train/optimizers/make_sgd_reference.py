#!/usr/bin/env python3
"""Makes sgd_reference.txt: parameters after a few steps of torch.optim.SGD, used by sgd_test.cpp.

  ./make_sgd_reference.py > sgd_reference.txt       needs torch (python3-torch)

Parameter i starts at (i mod 7 - 3) / 4; in step s its gradient is ((5 i + 3 s) mod 11 - 5) / 8, and the learning rate 0.1 / (s + 1).
All values are exact in float32. Lines: momentum, weight decay, nesterov (0 or 1), then the parameters after the last step.
"""
import torch

COUNT, STEPS = 13, 5
CASES = [(0.0, 0.0, 0), (0.9, 0.0, 0), (0.9, 1e-4, 0), (0.5, 0.1, 0), (0.9, 0.01, 1)]


def train(momentum, weight_decay, nesterov):
    parameter = torch.tensor([(i % 7 - 3) / 4 for i in range(COUNT)], requires_grad=True)
    sgd = torch.optim.SGD([parameter], lr=0.1, momentum=momentum, weight_decay=weight_decay, nesterov=bool(nesterov))
    for step in range(STEPS):
        parameter.grad = torch.tensor([((5 * i + 3 * step) % 11 - 5) / 8 for i in range(COUNT)])
        sgd.param_groups[0]["lr"] = 0.1 / (step + 1)
        sgd.step()
    return parameter.detach()


print("# Made by make_sgd_reference.py with torch %s." % torch.__version__)
for case in CASES:
    print("%g %g %d" % case, " ".join("%.9g" % float(value) for value in train(*case)))
