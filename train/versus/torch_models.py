"""kolo's models in PyTorch: the same layers, names and order of parameters as train/models/*.cpp.

The residual networks are torchvision's, written here so that torch alone is enough.
"""

import torch
from torch import nn

BLOCKS = {"resnet18": (2, 2, 2, 2), "resnet34": (3, 4, 6, 3), "resnet50": (3, 4, 6, 3), "resnet101": (3, 4, 23, 3)}


def convolution(inputs, outputs, kernel, stride=1):
    return nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False)


class Block(nn.Module):
    """A residual block: `sizes` has the kernel, the outputs and the stride of each convolution."""

    def __init__(self, inputs, sizes):
        super().__init__()
        self.count = len(sizes)
        stride, outputs, width = 1, sizes[-1][1], inputs
        for number, (kernel, channels, step) in enumerate(sizes, 1):
            setattr(self, f"conv{number}", convolution(width, channels, kernel, step))
            setattr(self, f"bn{number}", nn.BatchNorm2d(channels))
            width, stride = channels, stride * step
        self.downsample = None
        if stride != 1 or inputs != outputs:
            self.downsample = nn.Sequential(convolution(inputs, outputs, 1, stride), nn.BatchNorm2d(outputs))

    def forward(self, x):
        shortcut = x if self.downsample is None else self.downsample(x)
        for number in range(1, self.count + 1):
            x = getattr(self, f"bn{number}")(getattr(self, f"conv{number}")(x))
            if number < self.count:
                x = torch.relu(x)
        return torch.relu(x + shortcut)


class ResNet(nn.Module):
    def __init__(self, name, stem, channels, classes):
        super().__init__()
        is_imagenet = stem == "imagenet"
        self.conv1 = convolution(channels, 64, 7, 2) if is_imagenet else convolution(channels, 64, 3)
        self.bn1 = nn.BatchNorm2d(64)
        self.pool = nn.MaxPool2d(3, 2, 1) if is_imagenet else nn.Identity()
        inputs = 64
        for layer, blocks in enumerate(BLOCKS[name]):
            made = []
            for block in range(blocks):
                width, stride = 64 << layer, 2 if layer > 0 and block == 0 else 1
                if name in ("resnet18", "resnet34"):
                    sizes = ((3, width, stride), (3, width, 1))
                else:
                    sizes = ((1, width, 1), (3, width, stride), (1, 4 * width, 1))
                made.append(Block(inputs, sizes))
                inputs = sizes[-1][1]
            setattr(self, f"layer{layer + 1}", nn.Sequential(*made))
        self.fc = nn.Linear(inputs, classes)

    def forward(self, x):
        x = self.pool(torch.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(x.mean((2, 3)))


class Cnn(nn.Module):
    def __init__(self, height, width, channels, classes):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, 32, 3, padding=1)
        self.conv2 = nn.Conv2d(32, 64, 3, padding=1)
        self.fc1 = nn.Linear(64 * (height // 2 // 2) * (width // 2 // 2), 128)
        self.fc2 = nn.Linear(128, classes)

    def forward(self, x):
        x = nn.functional.max_pool2d(torch.relu(self.conv1(x)), 2)
        x = nn.functional.max_pool2d(torch.relu(self.conv2(x)), 2)
        return self.fc2(torch.relu(self.fc1(x.flatten(1))))


class Mlp(nn.Module):
    def __init__(self, height, width, channels, classes):
        super().__init__()
        self.fc1 = nn.Linear(height * width * channels, 512)
        self.fc2 = nn.Linear(512, 512)
        self.fc3 = nn.Linear(512, classes)

    def forward(self, x):
        return self.fc3(torch.relu(self.fc2(torch.relu(self.fc1(x.flatten(1))))))


class Small(nn.Module):
    def __init__(self, height, width, channels, classes):
        super().__init__()
        self.conv1, self.bn1 = convolution(channels, 16, 3, 2), nn.BatchNorm2d(16)
        self.conv2, self.bn2 = convolution(16, 32, 3, 2), nn.BatchNorm2d(32)
        height, width = (((side + 1) // 2 + 1) // 2 // 2 for side in (height, width))
        self.fc = nn.Linear(32 * height * width, classes)

    def forward(self, x):
        x = torch.relu(self.bn1(self.conv1(x)))
        x = torch.relu(self.bn2(self.conv2(x)))
        return self.fc(nn.functional.max_pool2d(x, 2).flatten(1))


def make_model(name, stem, shape, classes):
    """`shape`: height, width and channels of the images."""
    if name in BLOCKS:
        return ResNet(name, stem, shape[2], classes)
    return {"cnn": Cnn, "mlp": Mlp, "small": Small}[name](*shape, classes)
