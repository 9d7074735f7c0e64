"""Runs a function in the processes of a job, and returns what it returned on each rank."""

import multiprocessing
import os
import pickle
import tempfile
import traceback
from datetime import timedelta
from importlib.metadata import version

TORCH = tuple(int(part) for part in version("torch").split(".")[:2])


def _rank(function, rank, size, backend, store, seconds, arguments, results):
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    try:
        if backend == "kolo":
            import kolo_torch  # noqa: F401
        dist.init_process_group(backend, init_method=f"file://{store}", rank=rank, world_size=size,
                                timeout=timedelta(seconds=seconds))
        results.put((rank, True, pickle.dumps(function(rank, size, *arguments))))  # else tensors need this process later
        if dist.is_initialized():
            dist.destroy_process_group()
    except Exception:
        results.put((rank, False, traceback.format_exc()))
    results.close()
    results.join_thread()


def run(function, size, *arguments, backend="kolo", seconds=60, lost=()):
    """`lost`: ranks that end their process without a result. The values of the other ranks, in order."""
    spawn = multiprocessing.get_context("spawn")
    results = spawn.Queue()
    with tempfile.TemporaryDirectory() as folder:
        ranks = [spawn.Process(target=_rank, args=(function, rank, size, backend, os.path.join(folder, "store"), seconds,
                                                   arguments, results)) for rank in range(size)]
        for process in ranks:
            process.start()
        found = {}
        while len(found) < size - len(lost):
            rank, is_good, value = results.get(timeout=seconds + 120)
            if not is_good:
                for process in ranks:
                    process.terminate()
                raise AssertionError(f"rank {rank} of {size} over {backend}:\n{value}")
            found[rank] = pickle.loads(value)
        for process in ranks:
            process.join()
    for rank, process in enumerate(ranks):
        assert rank in lost or process.exitcode == 0, f"rank {rank} ended with {process.exitcode}"
    return [found[rank] for rank in sorted(found)]
