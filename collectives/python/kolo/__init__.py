"""Collectives between the processes of a job, over shared memory, TCP, UCX and libfabric.

    import kolo, numpy
    with kolo.init() as world:
        gradient = numpy.full(1000, world.rank, "float32")
        world.all_reduce(gradient, kolo.ReduceOp.AVERAGE)  # in place

Start it as `kolo-run -n 4 python3 program.py`, or by mpirun, srun or torchrun.
"""

from ._arrays import Array, UserOp
from ._collectives import chunk_begin, chunk_count
from ._communicator import Communicator, init
from ._errors import (Aborted, DeadlineExceeded, Error, Mismatch, OutOfMemory, PeerLost, ProtocolError, SystemFailure, Unavailable)
from ._key_servers import Consistency, KeyClient, KeyPlan, KeyUpdate, plan_keys, serve_keys
from ._native import (CallOptions, Count, ReduceOp, Reproducibility, ServerPlan, Work, algorithm_names, wait_any)
from ._native import version as __version__
from ._stores import AllGatherStore, FileStore, KeyValueStore, LocalStore, Store, TcpStore, TcpStoreServer

__all__ = [
    "Aborted", "AllGatherStore", "Array", "CallOptions", "Communicator", "Consistency", "Count", "DeadlineExceeded", "Error", "FileStore",
    "KeyClient", "KeyPlan", "KeyUpdate", "KeyValueStore", "LocalStore", "Mismatch", "OutOfMemory", "PeerLost", "ProtocolError", "ReduceOp", "Reproducibility", "ServerPlan",
    "Store", "SystemFailure", "TcpStore", "TcpStoreServer", "Unavailable", "UserOp", "Work", "algorithm_names",
    "chunk_begin", "chunk_count", "init", "plan_keys", "serve_keys", "wait_any",
]

# Tracebacks name them as programs do.
for _kind in (Error, *Error.__subclasses__()):
    _kind.__module__ = "kolo"
