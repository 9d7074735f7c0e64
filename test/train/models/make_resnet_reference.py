#!/usr/bin/env python3
"""Makes resnet18_reference.txt and resnet50_reference.txt: torchvision's results, used by resnet_test.cpp.

  ./make_resnet_reference.py resnet50 > resnet50_reference.txt       needs torch and torchvision (python3-torchvision)

The formulas and the form of the file are in model_reference.py.

The cases are chosen so that the comparison is meaningful. A batch norm with very few values per channel (4 images of 32x32,
whose last stage is 1x1) has channels with a variance near zero, and their gradients explode. If the input of a ReLU is within
rounding of zero, one program passes its gradient and the other does not, which changes whole tensors by a percent. So batches
are small, and the biases of batch norms keep most inputs away from zero. Of eight ordinals of the images, the script uses the
one whose ReLU input nearest to zero is farthest from it, relative to the rounding error of its layer.
"""
import sys

import torch
import torchvision

import model_reference
from model_reference import Case

CASES = {
    "resnet18": [
        Case("imagenet_32", 8, 32, 3, 3006, ("imagenet",)),
    ],
    "resnet50": [
        Case("imagenet_16", 16, 16, 3, 3003, ("imagenet",)),
        Case("imagenet_32", 8, 32, 3, 3008, ("imagenet",)),
        Case("cifar_16", 4, 16, 3, 3008, ("cifar",)),
    ],
}


def make_model(name, case):
    model = getattr(torchvision.models, name)(num_classes=10)
    if "cifar" in case.words:
        model.conv1 = torch.nn.Conv2d(3, 64, 3, 1, 1, bias=False)
        model.maxpool = torch.nn.Identity()
    return model_reference.fill(model)


def main(name):
    torch.set_num_threads(2)
    print("# Made by make_resnet_reference.py with torch %s, torchvision %s, in float64."
          % (torch.__version__, torchvision.__version__))
    model_reference.print_parameters(getattr(torchvision.models, name)(num_classes=1000))
    for case in CASES[name]:
        model_reference.print_case(case, lambda one: make_model(name, one))


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] not in CASES:
        sys.exit("usage: make_resnet_reference.py %s" % "|".join(CASES))
    main(sys.argv[1])
