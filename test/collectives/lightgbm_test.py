#!/usr/bin/env python3
"""LightGBM trains over kolo (collectives/examples/lightgbm.cpp) as over its own sockets. Ranks are threads, or processes where
one dies.

  lightgbm_test.py PATH/example_lightgbm.so
"""

import contextlib
import ctypes
import logging
import os
import socket
import subprocess
import sys
import tempfile
import threading
import unittest
from pathlib import Path

try:
    import lightgbm
    import numpy
except ModuleNotFoundError as missing:
    print(f"skipped: {sys.executable} has no package {missing.name} (pip install lightgbm)")
    sys.exit(0)
from lightgbm.basic import _LIB as lgbm

PATIENCE_S = 60
quiet = logging.Logger("lightgbm")
quiet.addHandler(logging.NullHandler())
lightgbm.register_logger(quiet)

kolo = ctypes.CDLL(sys.argv[1])  # and libkolo.so, which it links
kolo.kolo_lightgbm_failure.restype = ctypes.c_char_p


def require(result):
    if result != 0:
        raise RuntimeError(lgbm.LGBM_GetLastError().decode())


def samples():
    random = numpy.random.RandomState(7)
    inputs = random.rand(2000, 12)
    return inputs, 3 * inputs[:, 0] + numpy.sin(6 * inputs[:, 1]) + inputs[:, 2] * inputs[:, 3] + 0.1 * random.rand(2000)


def train(rank, size, callbacks=None, **options):
    """The model of the rank that has every size-th sample."""
    inputs, labels = samples()
    options = {"objective": "regression", "num_leaves": 15, "num_threads": 1, "verbose": -1, "tree_learner": "data",
               "num_machines": size, "pre_partition": True, **options}
    data = lightgbm.Dataset(inputs[rank::size], labels[rank::size], params=options)
    return lightgbm.train(options, data, 12, callbacks=callbacks)


def begin_kolo(rank, size, store):
    world = ctypes.c_void_p()
    assert kolo.kolo_create(None, rank, size, store, ctypes.byref(world)) == 0
    kolo.kolo_lightgbm_use(world)
    require(lgbm.LGBM_NetworkInitWithFunctions(size, rank, kolo.kolo_lightgbm_reduce_scatter, kolo.kolo_lightgbm_all_gather))
    return world


def over_kolo(size, **options):
    store = ctypes.c_void_p()
    assert kolo.kolo_store_local(ctypes.byref(store)) == 0

    def run(rank):
        world = begin_kolo(rank, size, store)
        try:
            return train(rank, size, **options)
        finally:
            lgbm.LGBM_NetworkFree()
            kolo.kolo_free(world)

    try:
        return in_threads(size, run)
    finally:
        kolo.kolo_store_free(store)


def free_ports(count):
    """Ports below those that the kernel gives to other programs, which are from 32768 on."""
    first = 10000 + 4 * (os.getpid() % 5000)
    ports = []
    for port in range(first, 32768):
        with socket.socket() as holder, contextlib.suppress(OSError):
            holder.bind(("127.0.0.1", port))
            ports.append(port)
        if len(ports) == count:
            return ports
    raise RuntimeError(f"no {count} free ports from {first} to 32767")


def over_sockets(size, **options):
    ports = free_ports(size)
    machines = ",".join(f"127.0.0.1:{port}" for port in ports).encode()

    def run(rank):
        require(lgbm.LGBM_NetworkInit(machines, ports[rank], 1, size))
        try:
            return train(rank, size, **options)
        finally:
            lgbm.LGBM_NetworkFree()

    return in_threads(size, run)


def in_threads(size, body):
    results = [None] * size

    def run(rank):
        lgbm.LGBM_RegisterLogCallback(lgbm.callback)  # of this thread
        try:
            results[rank] = body(rank)
        except Exception as failure:  # pylint: disable=broad-except
            results[rank] = failure

    threads = [threading.Thread(target=run, args=(rank,), daemon=True) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    for result in results:
        if not isinstance(result, lightgbm.Booster):
            raise result or TimeoutError(f"a rank has not ended in {PATIENCE_S} s")
    return results


def trees(booster):
    """Splits, thresholds, leaves and counts of all trees, as text."""
    return booster.model_to_string().split("end of trees")[0]


class Training(unittest.TestCase):
    def compare(self, size, **options):
        ours, theirs = over_kolo(size, **options), over_sockets(size, **options)
        self.assertEqual(ours[0].num_trees(), 12)
        for rank in range(size):
            self.assertEqual(trees(ours[rank]), trees(theirs[rank]), f"rank {rank} of {size}")

    def test_two_ranks_train_the_trees_of_sockets(self):
        self.compare(2)

    def test_two_ranks_that_vote_train_the_trees_of_sockets(self):
        self.compare(2, tree_learner="voting", top_k=3)

    def test_quantized_histograms_of_any_number_of_ranks_are_those_of_sockets(self):
        for size in (2, 3, 4):  # sums of integers, so their order does not matter; reduced in pairs
            self.compare(size, use_quantized_grad=True, num_grad_quant_bins=64)

    def test_four_ranks_train_a_model_with_the_predictions_of_sockets(self):
        inputs, labels = samples()
        predictions = [run(4)[0].predict(inputs) for run in (over_kolo, over_sockets)]
        numpy.testing.assert_allclose(*predictions, rtol=1e-9)
        self.assertLess(numpy.mean((predictions[0] - labels) ** 2), 0.3 * numpy.var(labels))


def die_at_the_fourth_tree(rank):
    def check(environment):
        if rank == 1 and environment.iteration == 3:
            os._exit(0)

    return check


def rank_that_may_die(rank, size, path):
    store = ctypes.c_void_p()
    assert kolo.kolo_store_open_file(path.encode(), size, ctypes.c_int64(0), ctypes.byref(store)) == 0
    begin_kolo(rank, size, store)
    try:
        train(rank, size, [die_at_the_fourth_tree(rank)])
    except lightgbm.basic.LightGBMError as failure:
        print(failure)
        assert str(failure) == kolo.kolo_lightgbm_failure().decode()


class Failures(unittest.TestCase):
    def test_a_rank_that_dies_is_named_by_the_error_of_lightgbm(self):
        with tempfile.TemporaryDirectory() as folder:
            ranks = [subprocess.Popen([sys.executable, *sys.argv[:2], str(rank), "3", f"{folder}/store"], stdout=subprocess.PIPE,
                                      stderr=subprocess.PIPE, text=True) for rank in range(3)]
            outputs = [rank.communicate(timeout=PATIENCE_S) for rank in ranks]
        for rank in (0, 2):
            self.assertEqual(ranks[rank].returncode, 0, outputs[rank])
            self.assertRegex(outputs[rank][0], "rank 1 .*is gone")

    def test_a_thread_without_a_communicator_is_refused(self):
        kolo.kolo_lightgbm_use(None)
        require(lgbm.LGBM_NetworkInitWithFunctions(2, 0, kolo.kolo_lightgbm_reduce_scatter, kolo.kolo_lightgbm_all_gather))
        with self.assertRaisesRegex(lightgbm.basic.LightGBMError, "kolo_lightgbm_use.. was not called in this thread"):
            train(0, 2)
        lgbm.LGBM_NetworkFree()


if __name__ == "__main__":
    if len(sys.argv) == 5:
        rank_that_may_die(int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
    else:
        unittest.main(argv=sys.argv[:1])
