"""Horovod's calls over the backend kolo, as its MNIST tutorial makes them (examples/pytorch/pytorch_mnist.py of Horovod)."""

import os
import unittest
from unittest import mock

import ranks
import torch
import torch.nn.functional as functional
from torch import nn


class MnistNet(nn.Module):
    """The net of the tutorial."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 10, kernel_size=5)
        self.conv2 = nn.Conv2d(10, 20, kernel_size=5)
        self.fc1 = nn.Linear(320, 50)
        self.fc2 = nn.Linear(50, 10)

    def forward(self, x):
        x = functional.relu(functional.max_pool2d(self.conv1(x), 2))
        x = functional.relu(functional.max_pool2d(self.conv2(x), 2))
        return functional.log_softmax(self.fc2(functional.relu(self.fc1(x.view(-1, 320)))), dim=1)


def pictures_of_bars(count):
    """In place of digits: the position of a bar is the label."""
    pictures = 0.1 * torch.randn(count, 1, 28, 28)
    labels = torch.arange(count) % 10
    for index, label in enumerate(labels):
        pictures[index, 0, 2 * label + 4:2 * label + 6] += 1
    return torch.utils.data.TensorDataset(pictures, labels)


def tutorial(rank, size, compression="none", predivide=1.0, is_synchronized_apart=False):
    """The tutorial's script: the options of its command line are arguments."""
    import kolo_torch.horovod as hvd

    hvd.init()
    torch.manual_seed(42 + rank)
    model = MnistNet()
    torch.manual_seed(42)
    dataset = pictures_of_bars(240)
    sampler = torch.utils.data.distributed.DistributedSampler(dataset, num_replicas=hvd.size(), rank=hvd.rank())
    loader = torch.utils.data.DataLoader(dataset, batch_size=12, sampler=sampler)
    scale = hvd.local_size() if hvd.nccl_built() else hvd.size()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02 * scale, momentum=0.5)
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)
    optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters(),
                                         compression=getattr(hvd.Compression, compression), op=hvd.Average,
                                         gradient_predivide_factor=predivide)
    for epoch in range(6):
        sampler.set_epoch(epoch)
        for data, target in loader:
            optimizer.zero_grad()
            functional.nll_loss(model(data), target).backward()
            if is_synchronized_apart:  # as with mixed precision
                optimizer.synchronize()
                with optimizer.skip_synchronize():
                    optimizer.step()
            else:
                optimizer.step()
    pictures, labels = dataset.tensors
    correct = (model(pictures).argmax(1) == labels).float().mean()
    return hvd.allreduce(correct, name="accuracy").item(), torch.cat([value.flatten() for value in model.state_dict().values()])


def sums(rank, size):
    import kolo_torch.horovod as hvd

    mine = torch.full((3,), rank + 1.0, requires_grad=True)
    handle = hvd.allreduce_async(mine, op=hvd.Sum, prescale_factor=0.5, postscale_factor=4.0)
    half = hvd.allreduce(mine, average=False, compression=hvd.Compression.fp16)
    assert mine.tolist() == [rank + 1.0] * 3
    return hvd.synchronize(handle).tolist(), half.dtype, half.tolist()


class Horovod(unittest.TestCase):
    def test_the_mnist_tutorial_learns_and_all_ranks_get_the_same_parameters(self):
        (accuracy, one), (same_accuracy, other) = ranks.run(tutorial, 2)
        self.assertEqual(accuracy, same_accuracy)
        self.assertGreater(accuracy, 0.9)
        self.assertTrue(torch.equal(one, other))

    def test_the_options_of_the_tutorial_change_the_parameters_by_rounding_only(self):
        expected = ranks.run(tutorial, 2)[0][1]
        for arguments, tolerance in ((("none", 2.0), 1e-4), (("none", 1.0, True), 1e-4), (("fp16",), 1e-2)):
            found = ranks.run(tutorial, 2, *arguments)[0][1]
            torch.testing.assert_close(found, expected, rtol=tolerance, atol=tolerance, msg=lambda text: f"{arguments}: {text}")

    def test_allreduce_scales_and_compresses(self):
        for found in ranks.run(sums, 2):
            self.assertEqual(found, ([6.0] * 3, torch.float32, [3.0] * 3))

    def test_what_is_missing_is_refused_with_one_message(self):
        import kolo_torch.horovod as hvd

        with self.assertRaisesRegex(ValueError, "no Adasum: expected one of Average, Sum, Min, Max and Product"):
            hvd.DistributedOptimizer(torch.optim.SGD(nn.Linear(1, 1).parameters(), 0.1), op=hvd.Adasum)
        with self.assertRaisesRegex(AttributeError, "kolo_torch.horovod has no 'elastic'"):
            hvd.elastic  # pylint: disable=pointless-statement
        with mock.patch.dict(os.environ, {"OMPI_COMM_WORLD_SIZE": "2"}):
            with self.assertRaisesRegex(RuntimeError, "start the script by kolo-run or torchrun"):
                hvd.init()


if __name__ == "__main__":
    unittest.main()
