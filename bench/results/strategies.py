#!/usr/bin/env python3
"""Trains with all arms of kolo and all options for gradients, over shared memory and two shaped networks, and makes one table of them.

  strategies.py --dataset mnist:DIR [--cifar cifar10:DIR] [--svhn svhn:DIR] [--out DIR] [--train PROGRAM] [--quick]

  --dataset   of the CNN that all arms train
  --cifar     also: batch normalisation over all workers, ResNet-18
  --svhn      also: data parallelism beside a pipeline, ResNet-50
  --out       folder of the results; else bench/results/DATE-options. Points that it has are not measured again
  --train     a kolo-train; else build/release/bin/kolo-train of this tree
  --quick     one seed, few samples: to see that it works; no figures to quote

In DIR: table.md, runs.jsonl (a line per arm, option, network and seed), and a plot of an iteration's parts per network. The seeds are
the outer loop, so a slow minute of the machine changes one seed of a few rows. Exit code 1 if a run failed.
"""

import argparse
import datetime
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NETWORKS = {  # name in the table: name in files, flags, epochs, part of the samples
    "shm": ("shm", [], 2, 1.0),
    "1 Gbit/s, 100 us": ("1Gbit", ["--shape", "1Gbit,100us"], 1, 1.0),
    "250 Mbit/s, 2 ms": ("250Mbit", ["--shape", "250Mbit,2ms"], 1, 0.25),
}
ALL_ARMS = ("ring,ring:sync=naive,ring:sync=flat,ring:sync=overlap,ring:sync=prioritized,ring:sync=fusion,tree,hierarchical,auto,ps,ps:servers=2,"
            "ps:everywhere,ps:split,ps:optimizer=server,ps:async,ps:ssp=3,ps:backup=1,sharded,local-sgd:8,dataparallel")
CNN = ["--ranks", "3", "--model", "cnn", "--test-size", "2000", "--lr", "0.1", "--warmup-epochs", "0.2"]
RESNET18 = ["--ranks", "3", "--model", "resnet18", "--batch-size", "8", "--test-size", "1000", "--lr", "0.2", "--warmup-epochs", "1"]
RESNET50 = ["--ranks", "2", "--model", "resnet50", "--batch-size", "32", "--test-size", "128", "--epochs", "1"]
SMALL_SET, FEW_SAMPLES = 1920, 512
# What is set, the arms, and the flags.
OPTIONS = (
    ("", ALL_ARMS, []),
    ("micro-batch 16", "ring,ps:everywhere,sharded,pipeline:3", ["--micro-batch", "16"]),
    ("bfloat16", "ring,ps,ps:everywhere,sharded", ["--compress", "bfloat16"]),
    ("float16", "ring,ps:everywhere,sharded", ["--compress", "float16"]),
    ("topk:0.1", "ring", ["--compress", "topk:0.1"]),
    ("topk:0.01", "ring", ["--compress", "topk:0.01"]),
    ("clip-norm 1", "ring,ps:everywhere,sharded", ["--clip-norm", "1"]),
)
OF_ITERATIONS = ("step_losses", "step_seconds", "layers")  # not kept
EXPOSED = 3  # of an iteration's parts: data, forward, backward, exposed communication, optimizer, other
DEADLINE = 1800  # s, of a comparison


def points_of(arguments):
    """Seed, group, network, option and command of each comparison, in the order in which they run."""
    seeds, scale = (1, 0.1) if arguments.quick else (3, 1.0)
    for seed in range(1, seeds + 1):
        for network, (_, shape, epochs, part) in NETWORKS.items():
            samples = str(int(9600 * part * scale))
            for option, arms, flags in OPTIONS:
                yield seed, "cnn", network, option, ["--dataset", arguments.dataset, *CNN, "--train-size", samples, "--epochs", str(epochs),
                                                     "--strategies", arms, *flags, *shape]
            if arguments.cifar and network != "250 Mbit/s, 2 ms":
                samples, epochs = (int(SMALL_SET * scale), "3") if network == "shm" else (240, "1")
                for option in ("", "sync-batch-norm"):
                    flags = ["--sync-batch-norm"] if option else []
                    yield seed, "resnet18", network, option, ["--dataset", arguments.cifar, *RESNET18, "--train-size", str(samples), "--epochs",
                                                              epochs, "--strategies", "ring", *flags, *shape]
            if arguments.svhn:
                for option, arms, flags in (("", "ring", []), ("micro-batch 8", "ring,pipeline:2", ["--micro-batch", "8"])):
                    samples = str(max(64, int(FEW_SAMPLES * scale)))
                    yield seed, "resnet50", network, option, ["--dataset", arguments.svhn, *RESNET50, "--train-size", samples,
                                                              "--strategies", arms, *flags, *shape]


def is_whole(folder):
    """Whether all arms of a comparison have finished there."""
    path = folder / "report.json"
    return path.exists() and "incomplete" not in json.loads(path.read_text(encoding="utf-8"))


def measure(arguments):
    """All rows, and what failed."""
    rows, failed = [], []
    for seed, group, network, option, words in points_of(arguments):
        name = "-".join([*(["quick"] if arguments.quick else []), f"seed{seed}", group, NETWORKS[network][0], option.replace(" ", "").replace(":", "") or "plain"])
        folder = arguments.out / "runs" / name
        command = [str(arguments.train), "compare", *words, "--seed", str(seed), "--threads", "1", "--report", str(folder)]
        if not is_whole(folder):
            print(f"strategies.py: {name}", file=sys.stderr, flush=True)
            done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE, check=False)
            if done.returncode != 0:
                failed.append(f"{name}: exit code {done.returncode}: {(done.stderr.strip().splitlines() or ['no error output'])[-1]}")
                print(f"strategies.py: {failed[-1]}", file=sys.stderr, flush=True)
                continue
        report = json.loads((folder / "report.json").read_text(encoding="utf-8"))
        rows += [{"group": group, "network": network, "option": option, "seed": seed, **run} for run in report["runs"]]
    return rows, failed


def text_of(values, digits):
    deviation = statistics.stdev(values) if len(values) > 1 else 0
    return f"{statistics.mean(values):.{digits}f} ± {deviation:.{digits}f}"


def cells_of(rows):
    """Speed and exposed communication of an arm with an option over one network."""
    def exposed(run):
        return 1000 * statistics.mean(rank["parts"][EXPOSED] for rank in run["ranks"] if rank["is_worker"])
    return [text_of([run["images_per_second"] for run in rows], 0), text_of([exposed(run) for run in rows], 1)] if rows else ["-", "-"]


def table_of(rows, group, file):
    rows = [row for row in rows if row["group"] == group]
    networks = list(dict.fromkeys(row["network"] for row in rows))
    head = ["arm", "option", "MiB sent by a worker", *(f"{network}: {what}" for network in networks for what in ("images/s", "exposed, ms")), "shm: accuracy, %", "shm: test loss"]
    file.write(f"\n## {group}\n\n| {' | '.join(head)} |\n|---|---|{'---:|' * (len(head) - 2)}\n")
    for arm, option in dict.fromkeys((row["arm"], row["option"]) for row in rows):
        mine = [row for row in rows if (row["arm"], row["option"]) == (arm, option)]
        sent = statistics.mean(rank["bytes_sent"] for run in mine for rank in run["ranks"] if rank["is_worker"]) / 2**20
        cells = [cell for network in networks for cell in cells_of([run for run in mine if run["network"] == network])]
        last = [run["epochs"][-1] for run in mine if run["network"] == "shm"]
        learned = [text_of([100 * one["test_accuracy"] for one in last], 1), text_of([one["test_loss"] for one in last], 3)] if last else ["-", "-"]
        file.write(f"| {' | '.join([arm, option or '-', f'{sent:.2f}', *cells, *learned])} |\n")


def draw(arguments, rows):
    """The iteration of each arm and option, per network, by the plots of kolo-train's reports."""
    for network, (short, *_) in NETWORKS.items():
        mine = [dict(row, arm=row["arm"] + (f", {row['option']}" if row["option"] else "")) for row in rows
                if row["group"] == "cnn" and row["network"] == network]
        if not mine:
            continue
        folder = arguments.out / "runs" / f"plot-{short}"
        folder.mkdir(parents=True, exist_ok=True)
        some = next((arguments.out / "runs").glob("*/report.json"))
        report = dict(json.loads(some.read_text(encoding="utf-8")), runs=mine, findings=[])
        (folder / "report.json").write_text(json.dumps(report), encoding="utf-8")
        subprocess.run([sys.executable, ROOT / "train/report/plot_report.py", folder], check=True, timeout=300)
        (folder / "iteration.png").replace(arguments.out / f"iteration-{short}.png")


def main(words):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dataset", required=True)
    parser.add_argument("--cifar")
    parser.add_argument("--svhn")
    parser.add_argument("--out", type=Path, default=ROOT / f"bench/results/{datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d}-options")
    parser.add_argument("--train", type=Path, default=ROOT / "build/release/bin/kolo-train")
    parser.add_argument("--quick", action="store_true")
    arguments = parser.parse_args(words)
    if not os.access(arguments.train, os.X_OK):
        parser.error(f"--train {arguments.train}: not a program that can be started")
    arguments.train = arguments.train.resolve()
    arguments.out.mkdir(parents=True, exist_ok=True)
    rows, failed = measure(arguments)
    with (arguments.out / "runs.jsonl").open("w", encoding="utf-8") as file:
        for row in rows:
            file.write(json.dumps({name: value for name, value in row.items() if name not in OF_ITERATIONS}) + "\n")
    with (arguments.out / "table.md").open("w", encoding="utf-8") as file:
        for group in dict.fromkeys(row["group"] for row in rows):
            table_of(rows, group, file)
    draw(arguments, rows)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
