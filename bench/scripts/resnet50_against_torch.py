#!/usr/bin/env python3
"""kolo's ResNet-50 against PyTorch's: the same training step in turn (A B A B ...), so that drift affects all alike.

  resnet50_against_torch.py [--kolo-train PROGRAM] [--python PROGRAM]... [--batches 16,64,128] [--sides 32] [--threads 1,2]
                            [--channels-last] [--bfloat16] [--steps 8] [--turns 3]

One rank trains alone: communication is not measured. Prints a Markdown table: a row for each side, number of threads and
batch, with the median images/s and the peak memory of each program, and kolo's ratio to each of PyTorch's.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

WARM_UP = 2  # uncounted steps, as in resnet50_torch.py
PEER = Path(__file__).resolve().with_name("resnet50_torch.py")
BUILT = Path(__file__).resolve().parents[2] / "build" / "release" / "bin" / "kolo-train"


def numbers(text):
    return [int(word) for word in text.split(",")]


def parse_arguments():
    parser = argparse.ArgumentParser(description="kolo's ResNet-50 against PyTorch's, in turn.")
    parser.add_argument("--kolo-train", default=str(BUILT), help=f"the program [{BUILT}]")
    parser.add_argument("--python", action="append", help=f"that has torch and torchvision; may be repeated [{sys.executable}]")
    parser.add_argument("--batches", type=numbers, default=[64], help="images per step [64]")
    parser.add_argument("--sides", type=numbers, default=[32], help="height and width of the images [32]")
    parser.add_argument("--threads", type=numbers, default=[2], help="compute threads [2]")
    parser.add_argument("--channels-last", action="store_true", help="PyTorch's other memory layout, in addition")
    parser.add_argument("--bfloat16", action="store_true", help="kolo's --precision bfloat16 beside torch.autocast")
    parser.add_argument("--steps", type=int, default=8, help=f"steps of a turn; the first {WARM_UP} do not count [8]")
    parser.add_argument("--turns", type=int, default=3, help="how often each has its turn [3]")
    parser.add_argument("--timeout", type=float, default=1800, help="seconds, of one turn [1800]")
    arguments = parser.parse_args()
    if arguments.turns < 1 or arguments.steps <= WARM_UP:
        parser.error(f"--turns: 1 or more; --steps: more than {WARM_UP}")
    arguments.python = arguments.python or [sys.executable]
    return arguments


def run(words, timeout_s):
    """Runs a program and returns its standard output; if it fails, ends this script with one line."""
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=timeout_s, check=False)
    except OSError as error:
        sys.exit(f"resnet50_against_torch.py: cannot start {words[0]}: {error.strerror}")
    except subprocess.TimeoutExpired:
        sys.exit(f"resnet50_against_torch.py: {words[0]} took more than {timeout_s:g} s; see --timeout")
    if done.returncode != 0:
        sys.exit(f"resnet50_against_torch.py: {' '.join(words)}: exit code {done.returncode}\n{done.stderr.strip()}")
    return done.stdout


class Kolo:
    name = "kolo"

    def measure(self, arguments, side, threads, batch):
        """Images per second by the median step, and peak memory in MiB."""
        with tempfile.TemporaryDirectory() as folder:
            run([arguments.kolo_train, "train", "--ranks", "1", "--threads", str(threads), "--global-batch", str(batch), "--dataset",
                 f"synthetic:{side}x{side}x3", "--model", "resnet50", "--steps", str(arguments.steps), "--skip-steps", str(WARM_UP),
                 "--train-size", str(batch * arguments.steps), "--test-size", "2", "--report", folder,
                 *(["--precision", "bfloat16"] if arguments.bfloat16 else [])], arguments.timeout)
            training = json.loads((Path(folder) / "report.json").read_text())["runs"][0]
        return batch / training["step_seconds_median"], max(rank["peak_mib"] for rank in training["ranks"])


class Torch:
    def __init__(self, python, words):
        version = run([python, "-c", "import torch; print(torch.__version__)"], 300).strip()
        self.name = " ".join(["torch", version, *(word.removeprefix("--") for word in words)])
        self.command = [python, str(PEER), "--json", *words]

    def measure(self, arguments, side, threads, batch):
        line = json.loads(run([*self.command, "--batch", str(batch), "--side", str(side), "--threads", str(threads), "--steps",
                               str(arguments.steps)], arguments.timeout))
        return line["images_per_second"], line["peak_mib"]


def measure_row(arguments, programs, point):
    turns = {one.name: [] for one in programs}
    for turn in range(arguments.turns):
        for one in programs:
            turns[one.name].append(one.measure(arguments, *point))
            speed, peak = turns[one.name][-1]
            print(f"{point} turn {turn + 1}  {one.name}: {speed:.1f} images/s, {peak:.0f} MiB", file=sys.stderr, flush=True)
    return [tuple(statistics.median(column) for column in zip(*turns[one.name])) for one in programs]


def main():
    arguments = parse_arguments()
    programs = [Kolo()]
    for python in arguments.python:
        format_words = ["--bfloat16"] if arguments.bfloat16 else []
        programs += [Torch(python, layout + format_words) for layout in ([], ["--channels-last"])[:1 + arguments.channels_last]]
    heads = ["side", "threads", "batch", *(f"{one.name}, images/s (MiB)" for one in programs),
             *(f"kolo / {one.name}" for one in programs[1:])]
    print(f"| {' | '.join(heads)} |\n|{'---:|' * len(heads)}")
    for side in arguments.sides:
        for threads in arguments.threads:
            for batch in arguments.batches:
                row = measure_row(arguments, programs, (side, threads, batch))
                cells = [side, threads, batch, *(f"{speed:.1f} ({peak:.0f})" for speed, peak in row),
                         *(f"{row[0][0] / speed:.2f}" for speed, _ in row[1:])]
                print(f"| {' | '.join(map(str, cells))} |", flush=True)


if __name__ == "__main__":
    main()
