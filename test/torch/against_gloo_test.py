"""Results of the backend kolo equal those of gloo, or a formula where gloo has none, on 2 and 3 ranks."""

import unittest
from datetime import timedelta

import ranks
import torch
import torch.distributed as dist

TYPES = (torch.float32, torch.float64, torch.float16, torch.int8, torch.uint8, torch.int32, torch.int64)
OPS = (dist.ReduceOp.SUM, dist.ReduceOp.MIN, dist.ReduceOp.MAX, dist.ReduceOp.PRODUCT)


def numbers(rank, count, dtype):
    generator = torch.Generator().manual_seed(rank + 10 * count)
    return torch.randint(1, 4, (count,), generator=generator).to(dtype)


def reductions(rank, size):
    found = []
    for dtype in TYPES:
        for op in OPS:
            for count in (0, 1, 7, 1000):
                for is_async in (False, True):
                    data = numbers(rank, count, dtype)
                    work = dist.all_reduce(data, op, async_op=is_async)
                    if is_async:
                        work.wait()
                    found.append(data)
    for op in (dist.ReduceOp.BAND, dist.ReduceOp.BOR, dist.ReduceOp.BXOR):
        data = numbers(rank, 9, torch.int64)
        dist.all_reduce(data, op)
        found.append(data)
    for root in range(size):
        data = numbers(rank, 5, torch.float32)
        dist.reduce(data, root)
        found += [data] if rank == root else []
    both = [numbers(rank, 3, torch.float32), numbers(rank, 4, torch.float32)]
    dist.all_reduce_coalesced(both)
    sparse = torch.sparse_coo_tensor(torch.tensor([[rank, 0]]), torch.tensor([1.0, 2.0]), (size,))
    dist.all_reduce(sparse)
    return [*found, *both, sparse.to_dense()]


def shares(rank, size):
    found = []
    for root in range(size):
        data = numbers(rank, 5, torch.float32)
        dist.broadcast(data, root)
        into = [torch.zeros(5) for _ in range(size)]
        dist.gather(data + rank, into if rank == root else None, root)
        share = torch.zeros(3)
        dist.scatter(share, [torch.full((3,), float(i + root)) for i in range(size)] if rank == root else None, root)
        found += [data, *into, share]
    for dtype in (torch.float32, torch.bool, torch.complex64):
        into = [torch.zeros(6, dtype=dtype) for _ in range(size)]
        dist.all_gather(into, numbers(rank, 6, dtype))
        found += into
    whole = torch.zeros(4 * size)
    dist.all_gather_into_tensor(whole, numbers(rank, 4, torch.float32))
    part = torch.zeros(4)
    dist.reduce_scatter_tensor(part, numbers(rank, 4 * size, torch.float32))
    listed = torch.zeros(4)
    if ranks.TORCH >= (2, 11):  # gloo of torch 2.6 has none
        dist.reduce_scatter(listed, [torch.full((4,), float(i * rank)) for i in range(size)])
    equal = torch.zeros(2 * size)
    dist.all_to_all_single(equal, torch.arange(2.0 * size) + 100 * rank)
    gives = [i + 1 for i in range(size)]
    cut = torch.zeros((rank + 1) * size, 2)
    dist.all_to_all_single(cut, torch.arange(2.0 * sum(gives)).view(-1, 2) + 100 * rank, [rank + 1] * size, gives)
    return [*found, whole, part, listed, equal, cut]


def messages(rank, size):
    to, origin = (rank + 1) % size, (rank - 1) % size
    found = [torch.zeros(1000), torch.zeros(3), torch.zeros(5), torch.zeros(4)]
    receive = dist.irecv(found[0], origin)
    dist.send(torch.full((1000,), float(rank)), to)
    receive.wait()
    sends = [dist.isend(torch.full((3,), 1.0 + rank), to, tag=1), dist.isend(torch.full((5,), 2.0 + rank), to, tag=2)]
    dist.recv(found[2], origin, tag=2)
    dist.recv(found[1], origin, tag=1)
    for work in sends:
        work.wait()
    if rank == 0:
        for _ in range(size - 1):
            one = torch.zeros(4)
            dist.recv(one)
            found[3] += one
    else:
        dist.send(torch.full((4,), float(rank)), 0)
    # A receive does not hold collectives back.
    late = torch.zeros(2)
    receive = dist.irecv(late, 1) if rank == 0 else None
    dist.all_reduce(torch.ones(3))
    if rank == 1:
        dist.send(torch.full((2,), 7.0), 0)
    if receive:
        receive.wait()
    if ranks.TORCH >= (2, 15):  # refused before for all backends but gloo
        dist.monitored_barrier(timeout=timedelta(seconds=30), wait_all_ranks=True)
    return [*found, late]


def training(rank, size):
    torch.manual_seed(1)
    net = torch.nn.Sequential(torch.nn.Linear(10, 20), torch.nn.ReLU(), torch.nn.Linear(20, 1))
    parallel = torch.nn.parallel.DistributedDataParallel(net)
    optimizer = torch.optim.SGD(parallel.parameters(), 0.1)
    torch.manual_seed(rank)
    losses = []
    for _ in range(20):
        x = torch.randn(8, 10)
        loss = (parallel(x) - x.sum(1, keepdim=True)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return [torch.stack(losses), *net.state_dict().values()]


def beyond_gloo(rank, size):
    average = torch.full((4,), rank + 0.5)
    dist.all_reduce(average, dist.ReduceOp.AVG)
    scaled = torch.full((4,), 2.0)
    dist.all_reduce(scaled, dist._make_nccl_premul_sum(float(rank + 1)))
    brain = torch.full((300,), 1.5, dtype=torch.bfloat16)
    dist.all_reduce(brain)
    truth = torch.tensor([rank == 0, False])
    dist.all_reduce(truth)
    into = [torch.zeros(rank + 1) for _ in range(size)]
    dist.all_to_all(into, [torch.full((i + 1,), float(rank)) for i in range(size)])
    strided = (torch.arange(12.0).view(3, 4) + rank).t()
    dist.all_reduce(strided)
    nested = dist.all_reduce(torch.ones(2), async_op=True).get_future().then(
        lambda one: dist.all_reduce(one.value()[0], async_op=True).get_future().wait()[0])
    return [average, scaled, brain, truth, torch.cat(into), strided, nested.wait()]


class AgainstGloo(unittest.TestCase):
    def compare(self, function):
        for size in (2, 3):
            ours = ranks.run(function, size)
            theirs = ranks.run(function, size, backend="gloo")
            for rank in range(size):
                self.assertEqual(len(ours[rank]), len(theirs[rank]))
                for index, (mine, other) in enumerate(zip(ours[rank], theirs[rank])):
                    torch.testing.assert_close(mine, other, msg=lambda text: f"{function.__name__} {index}: {text}")

    def test_reductions_equal_those_of_gloo(self):
        self.compare(reductions)

    def test_shares_equal_those_of_gloo(self):
        self.compare(shares)

    def test_messages_equal_those_of_gloo(self):
        self.compare(messages)

    def test_training_with_ddp_has_the_losses_of_gloo(self):
        self.compare(training)

    def test_reductions_that_gloo_lacks_equal_a_formula(self):
        for size in (2, 3):
            for found in ranks.run(beyond_gloo, size):
                average, scaled, brain, truth, shares_, strided, nested = found
                self.assertEqual(average.tolist(), [size / 2] * 4)
                self.assertEqual(scaled.tolist(), [2.0 * size * (size + 1) / 2] * 4)
                self.assertEqual(brain.tolist(), [1.5 * size] * 300)
                self.assertEqual(truth.tolist(), [True, False])
                self.assertEqual(sorted(set(shares_.tolist())), [float(rank) for rank in range(size)])
                expected = size * torch.arange(12.0).view(3, 4).t() + size * (size - 1) / 2
                self.assertTrue(torch.equal(strided, expected))
                self.assertEqual(nested.tolist(), [float(size * size)] * 2)


if __name__ == "__main__":
    unittest.main()
