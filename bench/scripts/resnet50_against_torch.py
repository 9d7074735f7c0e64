#!/usr/bin/env python3
"""kolo's ResNet-50 against PyTorch's: the same training step in turn (A B A B ...), so that drift affects both alike.

  resnet50_against_torch.py [--kolo-train PROGRAM] [--batch 64] [--threads 2] [--steps 8] [--turns 3] [--python PROGRAM]

One rank trains alone: communication is not measured. Prints each turn, then both medians and their ratio.
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


def parse_arguments():
    parser = argparse.ArgumentParser(description="kolo's ResNet-50 against PyTorch's, in turn.")
    parser.add_argument("--kolo-train", default=str(BUILT), help=f"the program [{BUILT}]")
    parser.add_argument("--python", default=sys.executable, help=f"that has torch and torchvision [{sys.executable}]")
    parser.add_argument("--batch", type=int, default=64, help="images per step [64]")
    parser.add_argument("--threads", type=int, default=2, help="compute threads [2]")
    parser.add_argument("--steps", type=int, default=8, help=f"steps of a turn; the first {WARM_UP} do not count [8]")
    parser.add_argument("--turns", type=int, default=3, help="how often each has its turn [3]")
    parser.add_argument("--timeout", type=float, default=1800, help="seconds, of one turn [1800]")
    arguments = parser.parse_args()
    if arguments.turns < 1 or arguments.steps <= WARM_UP:
        parser.error(f"--turns: 1 or more; --steps: more than {WARM_UP}")
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


def measure_kolo(arguments):
    """Images per second by the median step, and peak memory in MiB."""
    with tempfile.TemporaryDirectory() as folder:
        run([arguments.kolo_train, "train", "--ranks", "1", "--threads", str(arguments.threads), "--global-batch",
             str(arguments.batch), "--model", "resnet50", "--steps", str(arguments.steps), "--skip-steps", str(WARM_UP),
             "--train-size", str(arguments.batch * arguments.steps), "--test-size", str(arguments.batch), "--report", folder],
            arguments.timeout)
        training = json.loads((Path(folder) / "report.json").read_text())["runs"][0]
    return arguments.batch / training["step_seconds_median"], max(rank["peak_mib"] for rank in training["ranks"])


def measure_torch(arguments):
    output = run([arguments.python, str(PEER), "--batch", str(arguments.batch), "--threads", str(arguments.threads), "--steps",
                  str(arguments.steps), "--json"], arguments.timeout)
    line = json.loads(output)
    return line["images_per_second"], line["peak_mib"]


def main():
    arguments = parse_arguments()
    measures = {"kolo": measure_kolo, "torch": measure_torch}
    found = {name: [] for name in measures}
    print(f"# ResNet-50, batch {arguments.batch}, {arguments.threads} threads, 3 x 32 x 32, float32, SGD with momentum")
    for turn in range(arguments.turns):
        for name, measure in measures.items():
            found[name].append(measure(arguments))
            speed, peak_mib = found[name][-1]
            print(f"turn {turn + 1}  {name:<6} {speed:8.1f} images/s  peak {peak_mib:6.0f} MiB", flush=True)
    medians = {name: statistics.median(speed for speed, _ in turns) for name, turns in found.items()}
    peaks = {name: statistics.median(peak for _, peak in turns) for name, turns in found.items()}
    for name in measures:
        print(f"median  {name:<6} {medians[name]:8.1f} images/s  peak {peaks[name]:6.0f} MiB")
    print(f"kolo / torch: speed {medians['kolo'] / medians['torch']:.2f}, memory {peaks['kolo'] / peaks['torch']:.2f}")


if __name__ == "__main__":
    main()
