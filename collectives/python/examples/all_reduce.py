"""An average of arrays over all ranks: kolo-run -n 4 python3 all_reduce.py, or mpirun or torchrun instead of kolo-run."""

import kolo
import numpy

with kolo.init() as world:
    gradient = numpy.full(1000, world.rank, "float32")
    world.all_reduce(gradient, kolo.ReduceOp.AVERAGE)  # in place
    print(f"rank {world.rank} of {world.size}: {gradient[0]}", flush=True)
