#!/usr/bin/env python3
"""Every collective of the Python package on 1 to 3 ranks against NumPy, with every type of element."""

import unittest

import kolo
import numpy as np
from ranks import run_ranks

SIZES = (1, 2, 3)
TYPES = ("float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
OPS = {kolo.ReduceOp.SUM: np.add, kolo.ReduceOp.MIN: np.minimum, kolo.ReduceOp.MAX: np.maximum,
       kolo.ReduceOp.PRODUCT: np.multiply}


def input_of(rank, count=10, dtype="float32"):
    return (np.arange(count) % 5 + rank + 1).astype(dtype)


def inputs_of(size, **how):
    return np.stack([input_of(rank, **how) for rank in range(size)])


class Equal(unittest.TestCase):
    def check(self, body):
        """body(world) returns pairs of what a rank got and what it should have got."""
        for size in SIZES:
            for rank, pairs in enumerate(run_ranks(size, body)):
                for got, expected in pairs:
                    with self.subTest(size=size, rank=rank):
                        np.testing.assert_array_equal(got, expected)


class Reductions(Equal):
    def test_all_reduce_works_in_place_and_returns_the_array(self):
        def body(world):
            data = input_of(world.rank)
            self.assertIs(world.all_reduce(data), data)
            yield data, inputs_of(world.size).sum(0)

        self.check(lambda world: list(body(world)))

    def test_all_reduce_knows_every_type_and_operation(self):
        def body(world):
            for dtype in TYPES:
                for op, reduction in OPS.items():
                    out = np.empty(10, dtype)
                    world.all_reduce(input_of(world.rank, dtype=dtype), op, out=out)
                    yield out, reduction.reduce(inputs_of(world.size, dtype=dtype), dtype=dtype)

        self.check(lambda world: list(body(world)))

    def test_averages_scaled_sums_and_bits(self):
        def body(world):
            data = input_of(world.rank, dtype="float64")
            every = inputs_of(world.size, dtype="float64")
            scaled = kolo.CallOptions(scale=world.rank + 2)
            scales = np.arange(world.size)[:, None] + 2
            flag = np.array([True, world.rank == 0, False])
            return [(world.all_reduce(data.copy(), kolo.ReduceOp.AVERAGE), every.sum(0) / world.size),
                    (world.all_reduce(data.copy(), kolo.ReduceOp.SCALED_SUM, call=scaled), (every * scales).sum(0)),
                    (world.all_reduce(flag, kolo.ReduceOp.BIT_AND), [True, world.size == 1, False])]

        self.check(body)

    def test_reduce_gives_the_root_alone_a_result(self):
        def body(world):
            root = world.size - 1
            data = input_of(world.rank)
            result = world.reduce(data, root)
            self.assertEqual(result is None, world.rank != root)
            yield data, inputs_of(world.size).sum(0) if world.rank == root else input_of(world.rank)

        self.check(lambda world: list(body(world)))

    def test_scans(self):
        def body(world):
            before, upto = inputs_of(world.size)[:world.rank], inputs_of(world.size)[:world.rank + 1]
            exclusive = world.exclusive_scan(input_of(world.rank))
            return [(world.scan(input_of(world.rank)), upto.sum(0)),
                    (exclusive, before.sum(0) if world.rank else input_of(0))]

        self.check(body)

    def test_reduce_scatter(self):
        def body(world):
            total = inputs_of(world.size).sum(0)
            begin = kolo.chunk_begin(10, world.size, world.rank)
            count = kolo.chunk_count(10, world.size, world.rank)
            counts = [1 + rank for rank in range(world.size)]
            first = sum(counts[:world.rank])
            data = input_of(world.rank, sum(counts))
            return [(world.reduce_scatter(input_of(world.rank)), total[begin:begin + count]),
                    (world.reduce_scatter_v(data, counts),
                     inputs_of(world.size, count=sum(counts)).sum(0)[first:first + counts[world.rank]])]

        self.check(body)

    def test_a_function_of_the_program_combines_elements_of_any_type(self):
        pair = np.dtype([("value", "f8"), ("place", "i4")])
        larger = kolo.UserOp(lambda left, right: np.where(left["value"] >= right["value"], left, right), pair)

        def body(world):
            data = np.array([(world.rank, world.rank), (-world.rank, world.rank)], pair)
            world.all_reduce(data, larger)
            return [(data["place"], [world.size - 1, 0])]

        self.check(body)


class Moves(Equal):
    def test_gathers(self):
        def body(world):
            data = np.full((2, 3), world.rank, "int32")
            every = np.stack([np.full((2, 3), rank, "int32") for rank in range(world.size)])
            counts = list(range(1, world.size + 1))
            share = np.full(counts[world.rank], world.rank, "int32")
            shares = np.repeat(np.arange(world.size), counts)
            root = world.rank == 0
            gathered = world.gather(data)
            varied = world.gather_v(share, counts if root else ())
            yield world.all_gather(data), every
            yield world.all_gather_v(share, counts), shares
            yield (gathered, every) if root else (gathered is None, True)
            yield (varied, shares) if root else (varied is None, True)

        self.check(lambda world: list(body(world)))

    def test_chunks_may_differ_in_length_by_one(self):
        def body(world):
            begin, count = kolo.chunk_begin(10, world.size, world.rank), kolo.chunk_count(10, world.size, world.rank)
            all_of_them = np.arange(10.0) if world.rank == 0 else kolo.Count(10, "float64")
            chunk = world.scatter(all_of_them, np.empty(count))
            yield chunk, np.arange(begin, begin + count)
            yield world.all_gather(chunk, out=np.empty(10)), np.arange(10)
            gathered = world.gather(chunk, out=np.empty(10) if world.rank == 0 else kolo.Count(10, "float64"))
            yield (gathered, np.arange(10)) if world.rank == 0 else (gathered is None, True)

        self.check(lambda world: list(body(world)))

    def test_broadcast_and_scatters(self):
        def body(world):
            root = world.size - 1
            data = input_of(world.rank)
            if world.rank == root:
                data.flags.writeable = False
            counts = list(range(1, world.size + 1))
            shares = np.repeat(np.arange(world.size), counts).astype("int32")
            out = np.empty(counts[world.rank], "int32")
            equal = np.empty(2, "int32")
            is_root = world.rank == root
            world.scatter_v(shares if is_root else None, out, counts if is_root else (), root)
            world.scatter(np.arange(2 * world.size, dtype="int32") if is_root else None, equal, root)
            return [(world.broadcast(data, root), input_of(root)), (out, np.full(counts[world.rank], world.rank)),
                    (equal, [2 * world.rank, 2 * world.rank + 1])]

        self.check(body)

    def test_all_to_all(self):
        def body(world):
            data = np.arange(2 * world.size) + 100 * world.rank
            expected = np.concatenate([np.array([0, 1]) + 2 * world.rank + 100 * peer for peer in range(world.size)])
            gives, gets = list(range(1, world.size + 1)), [world.rank + 1] * world.size
            varied = world.all_to_all_v(np.full(sum(gives), world.rank), gives, gets)
            return [(world.all_to_all(data), expected), (varied, np.repeat(np.arange(world.size), gets))]

        self.check(body)

    def test_messages(self):
        def body(world):
            right, left = (world.rank + 1) % world.size, (world.rank - 1) % world.size
            data, out = input_of(world.rank), np.empty(10, "float32")
            yield world.send_receive(data, right, out, left), input_of(left)
            if world.size > 1:
                sent = world.send_async(data, right)
                yield world.receive(np.empty(10, "float32"), left), input_of(left)
                sent.wait()
            world.barrier()

        self.check(lambda world: list(body(world)))

    def test_objects(self):
        def body(world):
            mine = {"rank": world.rank, "text": "x" * world.rank}
            every = [{"rank": rank, "text": "x" * rank} for rank in range(world.size)]
            self.assertEqual(world.all_gather_object(mine), every)
            self.assertEqual(world.gather_object(mine), every if world.rank == 0 else None)
            self.assertEqual(world.broadcast_object(mine), every[0])
            return []

        self.check(body)


class Servers(Equal):
    def test_servers_update_the_sums_that_workers_pull(self):
        def body(world):
            def double(_, sums):
                np.asarray(sums)[:] *= 2

            plan = kolo.ServerPlan(everywhere=True)
            data = input_of(world.rank)
            return [(world.push_pull(data, plan, double), 2 * inputs_of(world.size).sum(0))]

        self.check(body)

    def test_a_dedicated_server_states_a_count(self):
        plan = kolo.ServerPlan([0])

        def body(world):
            if world.rank == 0:
                seen = []
                self.assertIsNone(world.push_pull(kolo.Count(10), plan, lambda first, sums: seen.append((first, len(sums)))))
                self.assertEqual(seen, [(0, 10)])
                held = world.push(kolo.Count(10), np.empty(10, "float32"), plan)
                np.testing.assert_array_equal(held, input_of(1) + input_of(2))
                world.pull(held + 1, kolo.Count(10), plan)
            else:
                np.testing.assert_array_equal(world.push_pull(input_of(world.rank), plan), input_of(1) + input_of(2))
                self.assertIsNone(world.push(input_of(world.rank), None, plan))
                out = world.pull(None, np.empty(10, "float32"), plan)
                np.testing.assert_array_equal(out, input_of(1) + input_of(2) + 1)

        self.assertEqual(plan.share(0, 3, 10), (0, 10))
        run_ranks(3, body)


    def test_key_servers_apply_the_gradients_of_all_workers(self):
        plan = kolo.plan_keys([(0, [6])], [0], longest=4)

        def body(world):
            if world.rank == 0:
                values = np.zeros(6, "float32")
                counted = kolo.serve_keys(world, plan, values, descend)
                self.assertEqual((counted["updates"], counted["gradients"]), (4, 8))
                np.testing.assert_array_equal(values, -2 * (1 + 2) / 2)
                return
            client, values = kolo.KeyClient(world, plan), np.empty(6, "float32")
            for iteration in range(2):
                for key, (first, count, _) in enumerate(plan.keys):
                    gradient = np.full(count, world.rank, "float32")
                    client.push_pull(key, iteration, gradient, 1, values[first:first + count])
                for key in range(len(plan.keys)):
                    client.wait(key)
                np.testing.assert_array_equal(values, -(iteration + 1) * (1 + 2) / 2)
            self.assertEqual(client.next_iteration, 2)
            with self.assertRaisesRegex(TypeError, "float32"):
                client.push(0, 2, np.ones(4), 1)
            client.finish()

        def descend(update):
            self.assertEqual((update.gradients, update.samples, update.worker), (2, 2, None))
            update.values[:] -= update.gradient / update.samples

        self.assertEqual([count for _, count, _ in plan.keys], [3, 3])
        run_ranks(3, body)


class Groups(unittest.TestCase):
    def test_groups_number_their_ranks_anew(self):
        def body(world):
            group = world.split(world.rank % 2, -world.rank)
            self.assertEqual(group.all_gather(np.array([world.rank])).ravel().tolist(),
                             [rank for rank in (2, 1, 0) if rank % 2 == world.rank % 2])
            self.assertIsNone(world.split(-1))
            twin = world.duplicate()
            self.assertEqual((twin.rank, twin.size), (world.rank, 3))
            if world.rank > 0:
                pair = world.subset([2, 1])
                self.assertEqual(pair.job_rank(pair.rank), world.rank)

        run_ranks(3, body)

    def test_a_communicator_tells_its_state(self):
        def body(world):
            memory = world.allocate((2, 5))
            self.assertEqual((memory.shape, memory.dtype, memory.sum()), ((2, 5), np.float32, 0))
            world.all_reduce(memory)
            self.assertEqual((world.name, world.hosts, world.transport), ("other", [0, 0], "inproc"))
            self.assertEqual(world.timeout, 20)
            self.assertGreater(world.statistics()["operations"], 0)
            self.assertGreater(world.peer_statistics(1 - world.rank)["bytes_sent"], 0)
            self.assertIn(world.algorithm("all_reduce", 8), kolo.algorithm_names("all_reduce"))
            self.assertIn("ring", world.predict("all_reduce", 1 << 20))
            self.assertIsNone(world.failure())
            self.assertFalse(world.progress())

        run_ranks(2, body, name="other", timeout=20)


if __name__ == "__main__":
    unittest.main()
