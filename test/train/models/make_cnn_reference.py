#!/usr/bin/env python3
"""Makes cnn_reference.txt: the results of torch for the model `cnn`, used by cnn_test.cpp.

  ./make_cnn_reference.py > cnn_reference.txt       needs torch (python3-torch)

The formulas and the form of the file are in model_reference.py. If the input of a ReLU is within
rounding of zero, or two pixels of a pooling window are within rounding of each other, two programs
may send a gradient along different ways. So of eight ordinals of the images, the script uses the
one whose smallest such distance is the largest.
"""
import torch

import model_reference
from model_reference import Case

CASES = [("grey", 2, 28, 1), ("rgb", 2, 32, 3)]
ORDINALS = range(3001, 3009)


class Cnn(torch.nn.Module):
    def __init__(self, channels, side):
        super().__init__()
        self.conv1 = torch.nn.Conv2d(channels, 32, 3, padding=1)
        self.conv2 = torch.nn.Conv2d(32, 64, 3, padding=1)
        self.fc1 = torch.nn.Linear(64 * (side // 4) ** 2, 128)
        self.fc2 = torch.nn.Linear(128, 10)
        self.distances = []

    def forward(self, x):
        self.distances = []
        x = self.pool(self.relu(self.conv1(x)))
        x = self.pool(self.relu(self.conv2(x)))
        x = self.relu(self.fc1(torch.flatten(x, 1)))
        return self.fc2(x)

    def relu(self, x):
        self.distances.append(float(x.detach().abs().min()))
        return torch.relu(x)

    def pool(self, x):
        windows = x.detach().unfold(2, 2, 2).unfold(3, 2, 2).flatten(4)
        largest = windows.topk(2).values
        has_gradient = largest[..., 0] > 0
        apart = (largest[..., 0] - largest[..., 1])[has_gradient]
        self.distances.append(float(apart.min()))
        return torch.nn.functional.max_pool2d(x, 2)


def make_model(case):
    return model_reference.fill(Cnn(case.channels, case.side))


def smallest_distance(case):
    model = make_model(case).double()
    model(case.images(torch.float64))
    return min(model.distances)


def main():
    torch.set_num_threads(2)
    print("# Made by make_cnn_reference.py with torch %s, in float64." % torch.__version__)
    model_reference.print_parameters(Cnn(1, 28))
    for words in CASES:
        case = max((Case(*words, ordinal) for ordinal in ORDINALS), key=smallest_distance)
        print("# The smallest distance is %.3g." % smallest_distance(case))
        model_reference.print_case(case, make_model)


if __name__ == "__main__":
    main()
