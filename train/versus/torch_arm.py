#!/usr/bin/env python3
"""One rank of an arm of kolo-train that trains in PyTorch, over torch.distributed.

  torch_arm.py FOLDER ARM SEED EVENTS_FD TURNS_FD         started by kolo-train, with RANK and WORLD_SIZE
  torch_arm.py --check ARM...                             prints what is missing on this machine; exit code 1 if anything is

    torch-ddp        DistributedDataParallel over gloo
    torch-ddp-kolo   the same over kolo's backend (package kolo_torch)
    torch-ps         a parameter server: reduce the gradients to it, step there, broadcast the parameters

FOLDER has the initial state of kolo's arms (initial_state.h): the weights, the samples, their order, and the learning rate
of each iteration. The gradient is the same, too: the sum over all samples of the iteration, divided by their number.
Results go to kolo-train as lines of JSON (events.h).
"""

import datetime
import hashlib
import json
import math
import os
import re
import resource
import signal
import sys
import time
import warnings
from pathlib import Path

PARTS = ("data", "forward", "backward", "exposed", "optimizer", "other")
NOTE_SECONDS = 0.2  # between two progress notes
RECENT = 5  # iterations, for the speed shown during training
BACKENDS = {"torch-ddp": "gloo", "torch-ddp-kolo": "kolo", "torch-ps": "gloo"}


class Failure(Exception):
    """An error with a message for the user."""


def what_is_missing(arms):
    try:
        import numpy
        import torch
        import torch.distributed
    except ImportError as error:
        return f"{sys.executable} has no {error.name}; give --python of an environment with torch and numpy"
    del numpy
    if not torch.distributed.is_available() or not torch.distributed.is_gloo_available():
        return f"torch {torch.__version__} of {sys.executable} has no torch.distributed with gloo"
    if "torch-ddp-kolo" in arms:
        try:
            import kolo_torch  # noqa: F401  (registers the backend)
        except Exception as error:
            return (f"{sys.executable} cannot import kolo_torch ({error}); "
                    "see collectives/python/torch/README.md")
    return ""


def read_tensors(path):
    """Name to array, mapped into memory. A file of the safetensors format with F32 and I64 alone."""
    import numpy
    with open(path, "rb") as file:
        length = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(length))
    tensors = {}
    for name, entry in header.items():
        if name != "__metadata__":
            kind = {"F32": "<f4", "I64": "<i8"}[entry["dtype"]]
            tensors[name] = numpy.memmap(path, kind, "r", 8 + length + entry["data_offsets"][0], tuple(entry["shape"]))
    return tensors


class Events:
    """Writes events to kolo-train, if it has a descriptor. As EventWriter, it ignores a closed reader."""

    def __init__(self, descriptor):
        self.descriptor = descriptor

    def write(self, **event):
        line = (json.dumps(event) + "\n").encode()
        try:
            while line and self.descriptor >= 0:
                line = line[os.write(self.descriptor, line):]
        except OSError:
            pass


def share_of(begin, count, rank, ranks):
    """As batch_plan.h: adjacent parts, in rank order."""
    return begin + count * rank // ranks, begin + count * (rank + 1) // ranks


class Exchange:
    """Exchange of gradients and update of parameters. This is what differs between the arms."""

    def __init__(self, torch, setup, model):
        self.model, self.seconds = model, 0.0
        self.workers = setup["workers"]
        self.optimizer = make_optimizer(torch, setup, list(model.parameters()))

    def scale(self, global_count):
        """The factor for the sum of the losses of a worker's samples."""
        return 1.0 / global_count

    def begin(self):
        self.seconds = 0.0
        self.optimizer.zero_grad()

    def step(self, rate):
        """Updates the parameters. Returns the seconds of the optimizer; `seconds` grows by those of the exchange."""
        begin = time.perf_counter()
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.optimizer.step()
        return time.perf_counter() - begin


class Ddp(Exchange):
    """DistributedDataParallel exchanges during backward, so the time of backward after the last gradient is waiting.

    As in kolo, its buffers (running statistics) are not broadcast before each forward. Evaluations use those of rank 0.
    """

    def __init__(self, torch, setup, model):
        super().__init__(torch, setup, model)
        self.last_gradient = 0.0
        for parameter in model.parameters():
            parameter.register_hook(self.note_gradient)
        self.run = torch.nn.parallel.DistributedDataParallel(model, broadcast_buffers=False)

    def note_gradient(self, _):
        self.last_gradient = time.perf_counter()

    def scale(self, global_count):
        return self.workers / global_count  # DDP divides by the number of workers

    def backward(self, loss):
        loss.backward()
        self.seconds += time.perf_counter() - self.last_gradient


class ParameterServer(Exchange):
    """The last rank is the server. All parameters are one buffer, and all gradients another: an exchange is two collectives."""

    def __init__(self, torch, setup, model):
        self.distributed, self.server = torch.distributed, setup["workers"]
        self.is_server = int(os.environ["RANK"]) == self.server
        parameters = list(model.parameters())
        self.values = torch.empty(sum(p.numel() for p in parameters))
        self.gradients = torch.zeros_like(self.values)
        offset = 0
        for parameter in parameters:
            end = offset + parameter.numel()
            self.values[offset:end] = parameter.detach().reshape(-1)
            parameter.data = self.values[offset:end].view_as(parameter)
            parameter.grad = self.gradients[offset:end].view_as(parameter)
            offset = end
        super().__init__(torch, setup, model)
        self.run = model

    def begin(self):
        self.seconds = 0.0
        self.gradients.zero_()

    def backward(self, loss):
        loss.backward()

    def step(self, rate):
        begin = time.perf_counter()
        self.distributed.reduce(self.gradients, self.server)
        middle = time.perf_counter()
        optimizer = super().step(rate) if self.is_server else 0.0
        ready = time.perf_counter()
        self.distributed.broadcast(self.values, self.server)
        self.seconds += middle - begin + time.perf_counter() - ready
        return optimizer


def make_optimizer(torch, setup, parameters):
    settings = setup["optimizer"]
    if settings["kind"] == "adamw":
        return torch.optim.AdamW(parameters, lr=0.0, betas=(settings["beta1"], settings["beta2"]), eps=settings["epsilon"],
                                 weight_decay=settings["weight_decay"])
    return torch.optim.SGD(parameters, lr=1.0, momentum=settings["momentum"], weight_decay=settings["weight_decay"],
                           nesterov=settings["nesterov"])


class Rank:
    def __init__(self, torch, folder, arm, seed, events, turns):
        from torch_models import make_model
        self.torch, self.arm, self.turns = torch, arm, turns
        self.rank, self.size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        self.events = Events(events if self.rank == 0 else -1)
        folder = Path(folder) / f"seed-{seed}"
        self.setup = setup = json.loads((folder / "setup.json").read_text())
        self.data = read_tensors(folder / "data.safetensors")
        self.is_worker = self.rank < setup["workers"]
        torch.set_num_threads(setup["threads"])
        self.model = make_model(setup["model"], setup["stem"], setup["image"], setup["classes"])
        weights = {name: torch.from_numpy(array.copy()) for name, array in read_tensors(folder / "weights.safetensors").items()}
        self.model.load_state_dict(weights)
        torch.distributed.init_process_group(BACKENDS[arm], init_method=f"file://{folder.resolve()}/store-{arm}", rank=self.rank,
                                             world_size=self.size, timeout=datetime.timedelta(seconds=setup["timeout_s"]))
        self.exchange = (ParameterServer if arm == "torch-ps" else Ddp)(torch, setup, self.model)
        self.loss_of = torch.nn.CrossEntropyLoss(reduction="sum", label_smoothing=setup["label_smoothing"])
        self.steps, self.losses, self.samples, self.correct, self.parts = [], [], [], [], []
        self.global_losses, self.epochs = [], []
        self.training = self.evaluation = self.checking = self.cpu = 0.0
        self.checks = 0
        self.noted, self.accuracy = 0.0, -1.0

    # Progress

    def note(self, activity, epoch):
        self.noted = time.perf_counter()
        recent = slice(-RECENT, None)
        seconds, workers = sum(self.steps[recent]), self.setup["workers"]
        self.events.write(progress={
            "activity": activity, "epoch": epoch, "epochs": self.setup["epochs"], "iteration": len(self.steps),
            "iterations": self.setup["iterations"],
            "loss": workers * sum(self.losses[recent]) / max(1, len(self.losses[recent])),
            "images_per_second": workers * sum(self.samples[recent]) / seconds if seconds > 0 else 0.0,
            "test_accuracy": self.accuracy})

    def wait_for_turn(self, epoch):
        if self.turns < 0:
            return 0.0
        begin = time.perf_counter()
        self.note("waiting", epoch)
        os.read(self.turns, 1)
        return time.perf_counter() - begin

    # Training

    def run(self):
        begin, waited = time.perf_counter(), 0.0
        self.note("starting", 0)
        for epoch in range(1, self.setup["epochs"] + 1):
            waited += self.wait_for_turn(epoch)
            self.train_epoch(epoch)
            self.check_replicas(epoch)
            self.finish_epoch(epoch)
        self.finish(time.perf_counter() - begin - waited)

    def train_epoch(self, epoch):
        order = self.data["order"][epoch - 1].astype("int64")
        per_epoch = -(-len(order) // self.setup["global_batch"])
        self.model.train()
        cpu = time.process_time()
        for place in range(per_epoch):
            if len(self.steps) == self.setup["iterations"]:
                break
            first = place * self.setup["global_batch"]
            count = min(self.setup["global_batch"], len(order) - first)
            self.iterate(order, first, count)
            if len(self.steps) == 1 or time.perf_counter() - self.noted > NOTE_SECONDS:
                self.note("training", epoch)
        self.cpu += time.process_time() - cpu

    def iterate(self, order, first, count):
        exchange = self.exchange
        rate = float(self.data["learning_rates"][len(self.steps)])
        times = dict.fromkeys(PARTS, 0.0)
        begin = now = time.perf_counter()
        loss, correct, samples = 0.0, 0, 0
        exchange.begin()
        if self.is_worker:
            low, high = share_of(first, count, self.rank, self.setup["workers"])
            images, labels = self.batch("train", order[low:high])
            times["data"], now = time.perf_counter() - now, time.perf_counter()
            logits = exchange.run(images)
            scaled = self.loss_of(logits, labels) * exchange.scale(count)
            times["forward"], now = time.perf_counter() - now, time.perf_counter()
            exchange.backward(scaled)
            times["backward"], now = time.perf_counter() - now - exchange.seconds, time.perf_counter()
            loss, samples = scaled.item() / (exchange.scale(count) * count), high - low
            correct = int((logits.detach().argmax(1) == labels).sum())
            if not math.isfinite(loss):
                raise Failure(f"the training loss is {loss} at iteration {len(self.steps) + 1}, training has diverged; lower --lr")
        times["optimizer"] = exchange.step(rate)
        times["exposed"] = exchange.seconds
        wall = time.perf_counter() - begin
        times["other"] = max(0.0, wall - sum(times.values()))
        self.training += wall
        self.steps.append(wall)
        self.parts.append([times[part] for part in PARTS])
        self.losses.append(loss)
        self.samples.append(samples)
        self.correct.append(correct)

    def batch(self, split, indices):
        images = self.torch.from_numpy(self.data[split + "/images"][indices])
        return images, self.torch.from_numpy(self.data[split + "/labels"][indices].astype("int64"))

    def check_replicas(self, epoch):
        begin = time.perf_counter()
        digest = hashlib.sha256()
        for parameter in self.model.parameters():
            digest.update(parameter.detach().numpy().tobytes())
        mine = self.torch.tensor([int.from_bytes(digest.digest()[:7], "little")])
        found = [self.torch.zeros_like(mine) for _ in range(self.size)]
        self.torch.distributed.all_gather(found, mine)
        for rank, theirs in enumerate(found):
            if int(theirs) != int(found[0]):
                raise Failure(f"the parameters of rank {rank} differ from those of rank 0 after epoch {epoch}")
        self.checks += 1
        self.checking += time.perf_counter() - begin

    def summed(self, values):
        total = self.torch.tensor(values, dtype=self.torch.float64)
        self.torch.distributed.all_reduce(total)
        return total.tolist()

    def finish_epoch(self, epoch):
        setup, done = self.setup, len(self.steps)
        first = (epoch - 1) * setup["iterations_per_epoch"]
        sums = self.summed([*self.losses[first:], sum(self.correct[first:]), sum(self.samples[first:])])
        losses, correct, samples = sums[:-2], sums[-2], sums[-1]
        batch, train = setup["global_batch"], setup["train_samples"]
        weights = [min(batch, train - place * batch) for place in range(len(losses))]
        record = {"epoch": epoch, "iterations": done, "is_evaluated": False, "test_loss": 0.0, "test_accuracy": 0.0,
                  "test_note": "", "train_loss": sum(l * w for l, w in zip(losses, weights)) / samples,
                  "train_accuracy": correct / samples, "training_seconds": self.training,
                  "learning_rate": float(self.data["learning_rates"][done - 1])}
        self.global_losses += losses
        if epoch == setup["epochs"] or epoch % setup["eval_every"] == 0:
            self.evaluate(epoch, record)
        self.epochs.append(record)
        self.events.write(epoch=record)

    def evaluate(self, epoch, record):
        """With rank 0's running statistics, as kolo does."""
        torch = self.torch
        self.note("evaluating", epoch)
        begin = time.perf_counter()
        for buffer in self.model.buffers():
            torch.distributed.broadcast(buffer, 0)
        self.model.eval()
        loss, correct, count = 0.0, 0, len(self.data["test/labels"])
        with torch.no_grad():
            for first in range(0, count if self.is_worker else 0, self.setup["global_batch"]):
                low, high = share_of(first, min(self.setup["global_batch"], count - first), self.rank, self.setup["workers"])
                if low == high:
                    continue
                images, labels = self.batch("test", list(range(low, high)))
                logits = self.model(images)
                loss += torch.nn.functional.cross_entropy(logits, labels, reduction="sum").item()
                correct += int((logits.argmax(1) == labels).sum())
        loss, correct = self.summed([loss, correct])
        self.accuracy = correct / count
        record.update(is_evaluated=True, test_loss=loss / count, test_accuracy=self.accuracy)
        if not math.isfinite(loss):
            record.update(test_loss=None, test_note="the running statistics of batch normalisation are too large or too few")
        self.evaluation += time.perf_counter() - begin

    # Results

    def rank_record(self):
        counted = max(min(len(self.steps), 1), len(self.steps) - self.setup["skip_steps"])
        steps, parts = self.steps[-counted:], self.parts[-counted:]
        forward = sorted(row[PARTS.index("forward")] for row in parts)
        middle = counted // 2
        record = dict.fromkeys(("exposed_in_backward", "in_flight", "waiting_for_stages", "bytes_sent", "bytes_received", "formula_sent",
                                "formula_received", "first_full", "hops", "last_bytes", "last_hops"), 0.0)
        record.update(
            rank=self.rank, is_worker=self.is_worker, images_per_second=sum(self.samples[-counted:]) / sum(steps),
            step_seconds=sum(steps) / counted, parts=[sum(column) / counted for column in zip(*parts)],
            forward_median=forward[middle] if counted % 2 else (forward[middle - 1] + forward[middle]) / 2,
            optimizer_mib=self.optimizer_mib(), busy_cores=self.cpu / self.training, peak_mib=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
        return record

    def optimizer_mib(self):
        states = self.exchange.optimizer.state.values()
        tensors = [one for state in states for one in state.values() if self.torch.is_tensor(one)]
        return sum(one.numel() * one.element_size() for one in tensors) / 2**20

    def finish(self, seconds):
        ranks = [None] * self.size
        self.torch.distributed.all_gather_object(ranks, self.rank_record())
        setup = self.setup
        self.events.write(finished={
            "arm": self.arm, "program": f"torch {self.torch.__version__}", "seed": setup["seed"], "formula": "", "difference": "",
            "terms": setup["terms"], "transport": BACKENDS[self.arm], "workers": setup["workers"],
            "servers": self.size - setup["workers"], "classes": setup["classes"], "allowed_byte_difference": 0.0,
            "counted_iterations": max(min(len(self.steps), 1), len(self.steps) - setup["skip_steps"]), "epochs": self.epochs,
            "ranks": ranks, "step_seconds": self.steps, "step_losses": self.global_losses, "layers": [],
            "timeline": [], "staleness": [],
            "stages": 0, "micro_batches": 1, "gradients_applied": 0.0, "gradients_dropped": 0.0, "updates_clipped": 0.0, "updates_skipped": 0.0,
            "final_hash": "", "replica_checks": self.checks,
            "training_seconds": self.training, "evaluation_seconds": self.evaluation, "checking_seconds": self.checking,
            "total_seconds": seconds, "predicted_step_seconds": -1.0, "predicted_exposed": -1.0})


def run_rank(folder, arm, seed, events, turns):
    warnings.simplefilter("ignore")  # of torch's coming versions; the terminal shows kolo-train's progress
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")  # all ranks are on this host, whatever its name resolves to
    missing = what_is_missing([arm])
    if missing:
        raise Failure(missing)
    import torch
    rank = Rank(torch, folder, arm, seed, int(events), int(turns))
    rank.run()
    torch.distributed.barrier()  # so that no peer takes this rank's exit for a failure
    torch.distributed.destroy_process_group()


def reason_of(error):
    """The first line, without gloo's source file and advice: the rank that ended first says why it did."""
    first = (str(error).strip().splitlines() or [type(error).__name__])[0]
    gloo = re.match(r"\[\S*gloo/\S+\] *(.*?)\.?(?: This is typically .*)?$", first)
    return f"the exchange with another rank failed: {gloo[1]} (gloo)" if gloo else first


def main(words):
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # end at once and in silence; kolo-train says why
    if words[:1] == ["--check"]:
        missing = what_is_missing(words[1:])
        print(missing)
        return 1 if missing else 0
    if len(words) != 5:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        run_rank(*words)
    except Exception as error:  # the last line has the reason; torch's has the whole stack
        print(f"kolo-train: {words[1]}, rank {os.environ.get('RANK', '?')}: {reason_of(error)}", file=sys.stderr, flush=True)
        os._exit(1)  # torch's threads must not keep it
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
