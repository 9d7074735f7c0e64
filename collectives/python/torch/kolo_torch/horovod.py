"""The calls of horovod.torch that its tutorials use, over the backend "kolo" of torch.distributed.

    import kolo_torch.horovod as hvd

    hvd.init()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01 * hvd.size())
    optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)

Start the script by kolo-run or torchrun, or alone. Tensors are of the CPU. There are no fusion buffer, no background
negotiation of the order, and no elastic jobs: every rank calls the same functions in the same order.
"""

import os

import torch
import torch.distributed as dist

import kolo_torch

Sum = dist.ReduceOp.SUM
Average = dist.ReduceOp.AVG
Min = dist.ReduceOp.MIN
Max = dist.ReduceOp.MAX
Product = dist.ReduceOp.PRODUCT


def init():
    """Joins the job that the launcher describes (RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT); a job of one without it."""
    kolo_torch.register()
    if dist.is_initialized():
        return
    if "WORLD_SIZE" in os.environ:
        dist.init_process_group("kolo")
    else:
        dist.init_process_group("kolo", store=dist.HashStore(), rank=0, world_size=1)


def shutdown():
    if dist.is_initialized():
        dist.destroy_process_group()


is_initialized = dist.is_initialized


def rank():
    return dist.get_rank()


def size():
    return dist.get_world_size()


def local_rank():
    """The rank among those of this host; the launcher gives it."""
    return int(os.environ.get("LOCAL_RANK", rank() if "WORLD_SIZE" in os.environ else 0))


def local_size():
    return int(os.environ.get("LOCAL_WORLD_SIZE", size()))


def _op(op, average):
    if op is not None and average is not None:
        raise ValueError("give one of op and average")
    if op is None:
        return Sum if average is False else Average
    return op


class _Handle:
    def __init__(self, work, result):
        self.work = work
        self.result = result


def synchronize(handle):
    """Waits for an asynchronous call; returns its result."""
    handle.work.wait()
    return handle.result()


def poll(handle):
    return handle.work.is_completed()


def allreduce_async_(tensor, average=None, name=None, op=None):
    return _Handle(dist.all_reduce(tensor, _op(op, average), async_op=True), lambda: tensor)


def allreduce_(tensor, average=None, name=None, op=None):
    dist.all_reduce(tensor, _op(op, average))
    return tensor


def allreduce_async(tensor, average=None, name=None, op=None):
    return allreduce_async_(tensor.clone(), average, name, op)


def allreduce(tensor, average=None, name=None, op=None):
    """The average of the ranks' tensors (or the sum: op=Sum), as a new tensor."""
    return allreduce_(tensor.clone(), average, name, op)


def allgather(tensor, name=None):
    """The ranks' tensors, joined along the first dimension, in which they may differ."""
    lengths = [torch.zeros(1, dtype=torch.int64) for _ in range(size())]
    dist.all_gather(lengths, torch.tensor([tensor.shape[0]]))
    parts = [tensor.new_empty((int(length), *tensor.shape[1:])) for length in lengths]
    dist.all_gather(parts, tensor)
    return torch.cat(parts)


def broadcast_(tensor, root_rank, name=None):
    dist.broadcast(tensor, root_rank)
    return tensor


def broadcast(tensor, root_rank, name=None):
    return broadcast_(tensor.clone(), root_rank)


def broadcast_object(obj, root_rank=0, name=None):
    objects = [obj]
    dist.broadcast_object_list(objects, root_rank)
    return objects[0]


def barrier():
    dist.barrier()


def broadcast_parameters(params, root_rank):
    """Copies the root's tensors to all ranks. `params`: model.state_dict(), or pairs of name and tensor."""
    pairs = sorted(params.items()) if isinstance(params, dict) else list(params)
    for _, tensor in pairs:
        if torch.is_tensor(tensor):
            dist.broadcast(tensor.data, root_rank)


def broadcast_optimizer_state(optimizer, root_rank):
    """Gives each rank the root's state of the optimizer."""
    optimizer.load_state_dict(broadcast_object(optimizer.state_dict(), root_rank))


class _DistributedOptimizer:
    """Base of the optimizer beside its own class: reduces the gradients during the backward pass.

    The order of the reductions is that of the parameters from the last to the first, on every rank. A gradient that is
    computed early waits for those before it.
    """

    def _begin_reducing(self, op, backward_passes_per_step):
        self._op = op
        self._passes = backward_passes_per_step
        self._order = [p for group in reversed(self.param_groups) for p in reversed(group["params"]) if p.requires_grad]
        self._forget()
        for parameter in self._order:
            parameter.register_post_accumulate_grad_hook(self._on_gradient)

    def _forget(self):
        self._missing = {parameter: self._passes for parameter in self._order}
        self._next = 0
        self._works = []

    def _on_gradient(self, parameter):
        if self._missing[parameter] == 0:
            raise RuntimeError(f"more than {self._passes} backward passes before step(): give DistributedOptimizer "
                               "backward_passes_per_step, or call step() or synchronize()")
        self._missing[parameter] -= 1
        self._reduce_ready()

    def _reduce_ready(self):
        while self._next < len(self._order) and self._missing[self._order[self._next]] == 0:
            self._works.append(dist.all_reduce(self._order[self._next].grad, self._op, async_op=True))
            self._next += 1

    def synchronize(self):
        """Waits until all gradients are reduced. A parameter without a gradient counts as zeros."""
        for parameter in self._order:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
            self._missing[parameter] = 0
        self._reduce_ready()
        for work in self._works:
            work.wait()
        self._forget()
        self._is_synchronized = True

    def step(self, closure=None):
        if not getattr(self, "_is_synchronized", False):
            self.synchronize()
        self._is_synchronized = False
        return super().step(closure)

    def zero_grad(self, *arguments, **named):
        if self._works:
            raise RuntimeError("zero_grad() between backward() and step(): gradients are being reduced")
        return super().zero_grad(*arguments, **named)


def DistributedOptimizer(optimizer, named_parameters=None, op=Average, backward_passes_per_step=1):
    """The optimizer, which averages the gradients of the ranks before each step. A new object of a class derived from its."""
    made = type(optimizer.__class__.__name__, (_DistributedOptimizer, optimizer.__class__), {})
    new = made.__new__(made)
    new.__dict__.update(optimizer.__dict__)
    new._begin_reducing(op, backward_passes_per_step)
    return new
