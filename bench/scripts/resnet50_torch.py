#!/usr/bin/env python3
"""Training speed of ResNet-50 in PyTorch, as a peer of `kolo-train --model resnet50`.

The same work: torchvision's ResNet-50 with 10 classes and its ImageNet stem, square RGB images, float32, SGD with
momentum 0.9 and weight decay 1e-4, one process. Images are random and made once: loading is not measured.

  resnet50_torch.py --batch 64 --side 32 --threads 2 --steps 8 [--channels-last] [--bfloat16] [--json]
"""

import argparse
import json
import resource
import statistics
import sys
import time

CLASSES = 10
WARM_UP = 2  # uncounted steps, which allocate memory and choose kernels


def parse_arguments():
    parser = argparse.ArgumentParser(description="Images per second of ResNet-50 in PyTorch.")
    parser.add_argument("--batch", type=int, default=64, help="images per step [64]")
    parser.add_argument("--side", type=int, default=32, help="height and width of the images [32]")
    parser.add_argument("--threads", type=int, default=2, help="compute threads [2]")
    parser.add_argument("--steps", type=int, default=8, help=f"steps, of which the first {WARM_UP} do not count [8]")
    parser.add_argument("--seed", type=int, default=1, help="of weights and images [1]")
    parser.add_argument("--channels-last", action="store_true", help="PyTorch's other memory layout")
    parser.add_argument("--bfloat16", action="store_true", help="torch.autocast to bfloat16 around the forward pass")
    parser.add_argument("--json", action="store_true", help="one JSON line instead of a sentence")
    arguments = parser.parse_args()
    if arguments.batch < 2 or arguments.threads < 1:
        parser.error("--batch: 2 or more (batch normalization); --threads: 1 or more")
    if arguments.steps <= WARM_UP:
        parser.error(f"--steps {arguments.steps}: more than the {WARM_UP} that do not count")
    return arguments


def import_torch():
    try:
        import torch
        import torchvision
    except ImportError as error:
        sys.exit(f"resnet50_torch.py: {error.name} is missing in {sys.executable}: apt-get install python3-torch "
                 "python3-torchvision (Debian's are for /usr/bin/python3)")
    return torch, torchvision


def step_seconds(arguments, torch, torchvision):
    """Seconds of each step: zero gradients, forward, backward, optimizer."""
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(arguments.seed)
    model = torchvision.models.resnet50(num_classes=CLASSES).train()
    images = torch.randn(arguments.batch, 3, arguments.side, arguments.side)
    labels = torch.arange(arguments.batch) % CLASSES
    if arguments.channels_last:
        model = model.to(memory_format=torch.channels_last)
        images = images.to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4)
    loss_of = torch.nn.CrossEntropyLoss()
    seconds = []
    for _ in range(arguments.steps):
        begin = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", torch.bfloat16, enabled=arguments.bfloat16):
            loss = loss_of(model(images), labels)
        loss.backward()
        optimizer.step()
        seconds.append(time.perf_counter() - begin)
    return seconds


def main():
    arguments = parse_arguments()
    torch, torchvision = import_torch()
    median = statistics.median(step_seconds(arguments, torch, torchvision)[WARM_UP:])
    peak_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    speed = arguments.batch / median
    if arguments.json:
        print(json.dumps({"library": f"torch {torch.__version__}", "batch": arguments.batch, "threads": arguments.threads,
                          "channels_last": arguments.channels_last, "bfloat16": arguments.bfloat16, "images_per_second": speed, "peak_mib": peak_mib}))
    else:
        print(f"torch {torch.__version__}, batch {arguments.batch}, threads {arguments.threads}: median step "
              f"{1e3 * median:.1f} ms, {speed:.1f} images/s, peak {peak_mib:.0f} MiB")


if __name__ == "__main__":
    main()
