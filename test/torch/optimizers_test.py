"""Training by the optimizers and wrappers of PyTorch and by Horovod's calls, over the backend kolo."""

import unittest

import ranks
import torch
import torch.distributed as dist
from torch import nn

ITERATIONS = 10


def net():
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(10, 20), nn.ReLU(), nn.Linear(20, 1))


def train(model, optimizer, rank, size):
    """Each rank has its part of the same 12 samples; the average of the gradients is that of all."""
    generator = torch.Generator().manual_seed(2)
    losses = []
    for _ in range(ITERATIONS):
        samples = torch.randn(12, 10, generator=generator)
        mine = samples.chunk(size)[rank]
        optimizer.zero_grad()
        loss = (model(mine) - mine.sum(1, keepdim=True)).pow(2).mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return torch.stack(losses)


def state_of(model):
    return torch.cat([value.flatten() for value in model.state_dict().values()])


def alone():
    model = net()
    train(model, torch.optim.Adam(model.parameters(), 0.01), 0, 1)
    return state_of(model)


def with_zero(rank, size):
    from torch.distributed.optim import ZeroRedundancyOptimizer

    model = nn.parallel.DistributedDataParallel(net())
    train(model, ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam, lr=0.01), rank, size)
    return state_of(model)


def with_fsdp(rank, size):
    from torch.distributed.fsdp import fully_shard

    model = net()
    mesh = dist.init_device_mesh("cpu", (size,))
    fully_shard(model, mesh=mesh)
    train(model, torch.optim.Adam(model.parameters(), 0.01), rank, size)
    return torch.cat([value.full_tensor().flatten() for value in model.state_dict().values()])


def with_horovod(rank, size):
    import kolo_torch.horovod as hvd

    hvd.init()
    assert (hvd.rank(), hvd.size()) == (rank, size)
    model = net()
    if rank > 0:
        nn.init.zeros_(model[0].weight)
    optimizer = torch.optim.Adam(model.parameters(), 0.01)
    optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)
    train(model, optimizer, rank, size)
    assert hvd.allreduce(torch.tensor([float(rank)])).item() == (size - 1) / 2
    assert hvd.allgather(torch.full((rank + 1, 2), float(rank))).shape == (size * (size + 1) // 2, 2)
    return state_of(model)


class Optimizers(unittest.TestCase):
    def compare(self, function):
        expected = alone()
        for state in ranks.run(function, 2):
            torch.testing.assert_close(state, expected, rtol=1e-4, atol=1e-5)

    def test_zero_redundancy_optimizer_trains_as_one_process(self):
        self.compare(with_zero)

    @unittest.skipIf(ranks.TORCH < (2, 11), "fully_shard of torch 2.6 needs streams of a device")
    def test_fsdp_on_the_cpu_trains_as_one_process(self):
        self.compare(with_fsdp)

    def test_distributed_optimizer_of_horovod_trains_as_one_process(self):
        self.compare(with_horovod)


if __name__ == "__main__":
    unittest.main()
