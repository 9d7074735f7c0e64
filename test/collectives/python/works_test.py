#!/usr/bin/env python3
"""Works, callbacks and failures of the Python package, with ranks as threads."""

import gc
import select
import sys
import threading
import unittest
import weakref

import kolo
import numpy as np
from ranks import run_ranks


class Works(unittest.TestCase):
    def test_every_async_form_returns_a_work_with_the_result(self):
        def body(world):
            mine, counts = np.full(2, world.rank), [2, 2]
            both, total = [0, 0, 1, 1], np.ones(2)
            plan = kolo.ServerPlan(everywhere=True)
            out = np.empty(2, int)
            works = [
                (world.all_reduce_async(mine.copy()), total), (world.reduce_scatter_async(np.ones(4)), 2 * total),
                (world.all_gather_async(mine), [[0, 0], [1, 1]]), (world.all_to_all_async(mine), [0, 1]),
                (world.broadcast_async(mine.copy(), 1), [1, 1]), (world.scan_async(np.ones(2)), (1 + world.rank) * total),
                (world.exclusive_scan_async(np.ones(2)), total),
                (world.reduce_scatter_v_async(np.ones(4), counts), 2 * total),
                (world.all_gather_v_async(mine, counts), both), (world.all_to_all_v_async(mine, [1, 1], [1, 1]), [0, 1]),
                (world.push_pull_async(mine.copy(), plan), total), (world.barrier_async(), None),
                (world.scatter_async(np.array([0, 0, 1, 1]), out), mine),
            ]
            for work, expected in works:
                np.testing.assert_array_equal(work.wait(), expected)
            root = [world.reduce_async(mine.copy()), world.gather_async(mine), world.gather_v_async(mine, counts)]
            self.assertEqual([work.wait() is None for work in root], [world.rank == 1] * 3)

        run_ranks(2, body)

    def test_an_event_loop_drives_an_operation_by_the_descriptor(self):
        def body(world):
            work = world.all_reduce_async(np.full(1 << 18, world.rank + 1.0))
            while not work.test():
                self.assertEqual(select.select([world], [], [], 20)[0], [world])
                world.progress()
            np.testing.assert_array_equal(work.wait()[:2], [3, 3])
            self.assertEqual(world.fileno(), world.fileno())
            world.barrier()

        run_ranks(2, body)

    def test_a_work_that_is_dropped_keeps_its_arrays_alive_until_the_end(self):
        gate = threading.Event()

        def body(world):
            data, out = np.full(1 << 16, 1.0), np.empty(1 << 16)
            alive = weakref.ref(data)
            if world.rank == 1:
                gate.wait(20)
            world.all_reduce_async(data, out=out)
            del data
            gc.collect()
            if world.rank == 0:
                self.assertIsNotNone(alive())  # rank 1 has not called it yet
                gate.set()
            world.barrier()
            np.testing.assert_array_equal(out, 2)
            world.barrier()  # the next call releases what has ended
            gc.collect()
            self.assertIsNone(alive())

        run_ranks(2, body)

    def test_a_wait_with_a_timeout_leaves_the_operation_in_flight(self):
        gate = threading.Event()

        def body(world):
            if world.rank == 0:
                work = world.barrier_async()
                self.assertFalse(work.test())
                with self.assertRaisesRegex(kolo.DeadlineExceeded, "still in flight") as caught:
                    work.wait(0.01)
                self.assertIsNone(caught.exception.peer)
                self.assertIsNone(kolo.wait_any([work], 0.01))
                gate.set()
                self.assertEqual(kolo.wait_any([work]), 0)
                self.assertTrue(work.test())
                work.wait()
            else:
                gate.wait(20)
                world.barrier()

        run_ranks(2, body)

    def test_a_persistent_operation_starts_again(self):
        def body(world):
            data = np.zeros(4)
            work = world.all_reduce_async(data, call=kolo.CallOptions(persistent=True))
            for turn in range(3):
                data[:] = turn
                work.start()
                np.testing.assert_array_equal(work.wait(), 2 * turn)
            with self.assertRaisesRegex(ValueError, "persistent"):
                world.all_reduce(data, call=kolo.CallOptions(persistent=True))

        run_ranks(2, body)


class Callbacks(unittest.TestCase):
    def test_a_progress_thread_calls_back_with_the_gil(self):
        def body(world):
            done = threading.Event()
            seen = []
            work = world.all_reduce_async(np.ones(1000))
            work.when_done(lambda failure: (seen.append(failure), done.set()))
            self.assertTrue(done.wait(20))
            self.assertEqual(seen, [None])

        run_ranks(2, body, progress_thread=True)

    def test_an_exception_of_a_callback_goes_to_the_unraisable_hook(self):
        seen = []
        self.addCleanup(setattr, sys, "unraisablehook", sys.unraisablehook)
        sys.unraisablehook = lambda told: seen.append(told.exc_value)

        def body(world):
            work = world.barrier_async()
            work.when_done(lambda failure: 1 / 0)
            work.wait()

        run_ranks(2, body)
        self.assertEqual([type(failure) for failure in seen], [ZeroDivisionError] * 2)

    def test_an_exception_of_a_users_function_fails_the_operation(self):
        def combine(left, right):
            raise KeyError("no such thing")

        def body(world):
            with self.assertRaisesRegex(kolo.Error, "KeyError: 'no such thing'"):
                world.all_reduce(np.ones(10), kolo.UserOp(combine, float))
                world.barrier()

        run_ranks(2, body)


class Failures(unittest.TestCase):
    def test_a_mismatch_is_an_error_on_both_ranks(self):
        def body(world):
            with self.assertRaises(kolo.Mismatch) as caught:
                world.all_reduce(np.ones(2 + world.rank))
            self.assertEqual(caught.exception.code, "mismatch")
            self.assertIsInstance(world.failure(), kolo.Mismatch)

        run_ranks(2, body)

    def test_a_deadline_names_the_rank_that_did_not_come(self):
        gate = threading.Event()

        def body(world):
            if world.rank == 0:
                try:
                    with self.assertRaises(TimeoutError) as caught:
                        world.all_reduce(np.ones(2), call=kolo.CallOptions(timeout=0.3))
                finally:
                    gate.set()
                self.assertIsInstance(caught.exception, kolo.DeadlineExceeded)
                self.assertEqual(caught.exception.peer, 1)
            else:
                gate.wait(20)

        run_ranks(2, body)

    def test_an_exception_in_the_block_is_the_failure_of_all_ranks(self):
        store, seen = kolo.LocalStore(), []

        def run(rank):
            try:
                with kolo.init(rank=rank, size=2, store=store) as world:
                    if rank == 0:
                        raise LookupError("no data")
                    world.barrier()
            except (LookupError, kolo.Error) as failure:
                seen.append(failure)

        threads = [threading.Thread(target=run, args=(rank,)) for rank in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(20)
        self.assertEqual({type(failure) for failure in seen}, {LookupError, kolo.Aborted})
        self.assertIn("LookupError: no data", str(next(one for one in seen if isinstance(one, kolo.Aborted))))

    def test_abort_ends_a_wait(self):
        def body(world):
            if world.rank == 1:
                return world.abort("enough")
            with self.assertRaisesRegex(kolo.Aborted, "enough"):
                world.barrier()

        run_ranks(2, body)


if __name__ == "__main__":
    unittest.main()
