"""The calls of horovod.torch that its tutorials use, over the backend "kolo" of torch.distributed.

    import kolo_torch.horovod as hvd

    hvd.init()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01 * hvd.size())
    optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)

Start the script by kolo-run or torchrun, or alone. Tensors are of the CPU. There are no fusion buffer, no background
negotiation of the order, no Adasum, and no elastic jobs: every rank calls the same functions in the same order.
"""

import contextlib
import os

import torch
import torch.distributed as dist

import kolo_torch

Sum = dist.ReduceOp.SUM
Average = dist.ReduceOp.AVG
Min = dist.ReduceOp.MIN
Max = dist.ReduceOp.MAX
Product = dist.ReduceOp.PRODUCT
Adasum = "Adasum"  # refused where it is used


def __getattr__(name):
    raise AttributeError(f"kolo_torch.horovod has no '{name}': it has the calls of Horovod's tutorials alone")


def init():
    """Joins the job that the launcher describes (RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT); a job of one without it."""
    kolo_torch.register()
    if dist.is_initialized():
        return
    if "WORLD_SIZE" in os.environ:
        dist.init_process_group("kolo")
    elif int(os.environ.get("OMPI_COMM_WORLD_SIZE", os.environ.get("PMI_SIZE", 1))) > 1:
        raise RuntimeError("mpirun does not set RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT: start the script by kolo-run "
                           "or torchrun")
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


def _is_not_built():
    """kolo reduces tensors of the CPU, without these libraries."""
    return False


mpi_built = mpi_enabled = gloo_built = gloo_enabled = nccl_built = ddl_built = ccl_built = _is_not_built
cuda_built = rocm_built = mpi_threads_supported = _is_not_built


class Compression:
    """How gradients are made smaller before they are sent: `none` or `fp16`."""

    class none:
        @staticmethod
        def compress(tensor):
            return tensor, tensor.dtype

        @staticmethod
        def decompress(tensor, dtype):
            return tensor.to(dtype)

    class fp16(none):
        @staticmethod
        def compress(tensor):
            return (tensor.half() if tensor.is_floating_point() else tensor), tensor.dtype


def _op(op, average=None):
    if op is not None and average is not None:
        raise ValueError("give one of op and average")
    if op is None:
        return Sum if average is False else Average
    if op == Adasum:
        raise ValueError("kolo has no Adasum: expected one of Average, Sum, Min, Max and Product")
    return op


class _Handle:
    def __init__(self, work, result):
        self.work = work
        self.result = result


def _start(tensor, out, op, compression=Compression.none, prescale_factor=1.0, postscale_factor=1.0):
    """Begins to reduce `tensor` into `out`, which may be the same."""
    with torch.no_grad():
        data, dtype = compression.compress(tensor)
        if data is tensor and out is not tensor:
            data = out.copy_(tensor)
        if prescale_factor != 1.0:
            data.mul_(prescale_factor)

    def finish():
        with torch.no_grad():
            result = compression.decompress(data, dtype)
            if postscale_factor != 1.0:
                result.mul_(postscale_factor)
            return out if result is out else out.copy_(result)

    return _Handle(dist.all_reduce(data, op, async_op=True), finish)


def synchronize(handle):
    """Waits for an asynchronous call; returns its result."""
    handle.work.wait()
    return handle.result()


def poll(handle):
    return handle.work.is_completed()


def allreduce_async_(tensor, average=None, name=None, op=None, prescale_factor=1.0, postscale_factor=1.0):
    return _start(tensor, tensor, _op(op, average), Compression.none, prescale_factor, postscale_factor)


def allreduce_(tensor, average=None, name=None, op=None, prescale_factor=1.0, postscale_factor=1.0):
    return synchronize(allreduce_async_(tensor, average, name, op, prescale_factor, postscale_factor))


def allreduce_async(tensor, average=None, name=None, op=None, prescale_factor=1.0, postscale_factor=1.0):
    return _start(tensor, torch.empty_like(tensor), _op(op, average), Compression.none, prescale_factor, postscale_factor)


def allreduce(tensor, average=None, name=None, compression=Compression.none, op=None, prescale_factor=1.0,
              postscale_factor=1.0):
    """The average of the ranks' tensors (or the sum: op=Sum), as a new tensor."""
    return synchronize(_start(tensor, torch.empty_like(tensor), _op(op, average), compression, prescale_factor,
                              postscale_factor))


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


def broadcast_optimizer_state(optimizer, root_rank, model=None):
    """Gives each rank the root's state of the optimizer."""
    optimizer.load_state_dict(broadcast_object(optimizer.state_dict(), root_rank))


class _DistributedOptimizer:
    """Base of the optimizer beside its own class: reduces the gradients during the backward pass.

    The order of the reductions is that of the parameters from the last to the first, on every rank. A gradient that is
    computed early waits for those before it.
    """

    def _begin_reducing(self, reduce, backward_passes_per_step):
        self._reduce = reduce
        self._passes = backward_passes_per_step
        self._is_synchronized = False
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
            self._works.append(self._reduce(self._order[self._next].grad))
            self._next += 1

    def synchronize(self):
        """Waits until all gradients are reduced. A parameter without a gradient counts as zeros."""
        for parameter in self._order:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
            self._missing[parameter] = 0
        self._reduce_ready()
        for work in self._works:
            synchronize(work)
        self._forget()
        self._is_synchronized = True

    @contextlib.contextmanager
    def skip_synchronize(self):
        """step() does not reduce gradients inside: synchronize() was called before."""
        self._is_synchronized = True
        try:
            yield
        finally:
            self._is_synchronized = False

    def step(self, closure=None):
        if not self._is_synchronized:
            self.synchronize()
        self._is_synchronized = False
        return super().step(closure)

    def zero_grad(self, *arguments, **named):
        if self._works:
            raise RuntimeError("zero_grad() between backward() and step(): gradients are being reduced")
        return super().zero_grad(*arguments, **named)


def DistributedOptimizer(optimizer, named_parameters=None, compression=Compression.none, backward_passes_per_step=1, op=Average,
                         gradient_predivide_factor=1.0):
    """The optimizer, which averages the gradients of the ranks before each step. A new object of a class derived from its."""
    op = _op(op)
    if gradient_predivide_factor != 1.0 and op != Average:
        raise ValueError("gradient_predivide_factor is for op=Average alone")
    made = type(optimizer.__class__.__name__, (_DistributedOptimizer, optimizer.__class__), {})
    new = made.__new__(made)
    new.__dict__.update(optimizer.__dict__)
    new._begin_reducing(lambda gradient: _start(gradient, gradient, op, compression, 1 / gradient_predivide_factor,
                                                gradient_predivide_factor), backward_passes_per_step)
    return new
