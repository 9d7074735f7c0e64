#!/usr/bin/env python3
"""All-reduce and training over the backends kolo and gloo of torch.distributed, in turn in one run.

  torch_backends.py all_reduce [--ranks 2 4] [--rounds 3] [--longest BYTES]
  torch_backends.py training [--ranks 2] [--rounds 3] [--iterations 5]

Needs torch and kolo_torch (collectives/python/torch). Each round runs both backends, one after the other, in the same
processes. Prints Markdown: the median over the rounds of each round's median, on rank 0, and the ratio of the rounds (median,
lowest, highest). The training is ResNet-50's bottleneck blocks on small pictures, with DistributedDataParallel.
"""

import argparse
import multiprocessing
import os
import statistics
import tempfile
import time

BACKENDS = ("kolo", "gloo")


def repetitions(size_bytes):
    return max(5, min(200, 32 * 1024 * 1024 // max(size_bytes, 1)))


def time_all_reduce(dist, torch, group, size_bytes):
    """Median time of one call in seconds."""
    data = torch.ones(max(size_bytes // 4, 1))
    times = []
    for index in range(repetitions(size_bytes) + 3):
        dist.barrier(group)
        began = time.perf_counter()
        dist.all_reduce(data, group=group)
        if index >= 3:
            times.append(time.perf_counter() - began)
        data.fill_(1)
    return statistics.median(times)


def bottleneck(torch, inputs, width, stride):
    nn = torch.nn

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Sequential(
                nn.Conv2d(inputs, width, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(),
                nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(),
                nn.Conv2d(width, 4 * width, 1, bias=False), nn.BatchNorm2d(4 * width))
            self.shortcut = nn.Sequential(nn.Conv2d(inputs, 4 * width, 1, stride, bias=False), nn.BatchNorm2d(4 * width))

        def forward(self, x):
            return torch.relu(self.body(x) + self.shortcut(x))

    return Block()


def resnet50(torch):
    """ResNet-50 with a short stem, for pictures of 32 x 32."""
    layers = [torch.nn.Conv2d(3, 64, 3, 1, 1, bias=False), torch.nn.BatchNorm2d(64), torch.nn.ReLU()]
    inputs = 64
    for width, blocks, stride in ((64, 3, 2), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for index in range(blocks):
            layers.append(bottleneck(torch, inputs, width, stride if index == 0 else 1))
            inputs = 4 * width
    return torch.nn.Sequential(*layers, torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(inputs, 10))


def time_training(dist, torch, group, iterations):
    """Median time of an iteration in seconds, and the last loss."""
    torch.manual_seed(1)
    net = torch.nn.parallel.DistributedDataParallel(resnet50(torch), process_group=group)
    optimizer = torch.optim.SGD(net.parameters(), 0.01, momentum=0.9)
    pictures = torch.randn(4, 3, 32, 32)
    labels = torch.arange(4)
    times = []
    for index in range(iterations + 1):
        dist.barrier(group)
        began = time.perf_counter()
        loss = torch.nn.functional.cross_entropy(net(pictures), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if index > 0:
            times.append(time.perf_counter() - began)
    return statistics.median(times), loss.item()


def rank_of_job(rank, size, store, given, results):
    import torch
    import torch.distributed as dist

    import kolo_torch  # noqa: F401

    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=size)
    groups = {backend: dist.new_group(backend=backend) for backend in BACKENDS}
    for _ in range(given.rounds):
        if given.what == "training":
            rows = {"iteration": {backend: time_training(dist, torch, groups[backend], given.iterations)[0]
                                  for backend in BACKENDS}}
        else:
            sizes = [8 * 8**power for power in range(9) if 8 * 8**power <= given.longest] + [given.longest]
            rows = {size_bytes: {backend: time_all_reduce(dist, torch, groups[backend], size_bytes) for backend in BACKENDS}
                    for size_bytes in dict.fromkeys(sizes)}
        if rank == 0:
            results.put(rows)
    dist.destroy_process_group()


def measure(size, given):
    spawn = multiprocessing.get_context("spawn")
    results = spawn.Queue()
    with tempfile.TemporaryDirectory() as folder:
        ranks = [spawn.Process(target=rank_of_job, args=(rank, size, os.path.join(folder, "store"), given, results))
                 for rank in range(size)]
        for process in ranks:
            process.start()
        rounds = [results.get(timeout=1800) for _ in range(given.rounds)]
        for process in ranks:
            process.join()
    return rounds


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["all_reduce", "training"])
    parser.add_argument("--ranks", type=int, nargs="+", default=[2])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--longest", type=int, default=256 * 1024 * 1024, help="bytes")
    parser.add_argument("--iterations", type=int, default=5)
    given = parser.parse_args()
    print("| ranks | bytes | kolo, us | gloo, us | gloo / kolo |\n|---|---|---|---|---|")
    for size in given.ranks:
        rounds = measure(size, given)
        for row in rounds[0]:
            times = {backend: statistics.median(one[row][backend] for one in rounds) for backend in BACKENDS}
            ratios = sorted(one[row]["gloo"] / one[row]["kolo"] for one in rounds)
            print(f"| {size} | {row} | {times['kolo'] * 1e6:.1f} | {times['gloo'] * 1e6:.1f} | "
                  f"{statistics.median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f}) |", flush=True)


if __name__ == "__main__":
    main()
