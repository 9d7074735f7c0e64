"""Communicator: the collectives and messages of one rank with its peers."""

from __future__ import annotations

import atexit
import pickle
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from . import _native
from ._arrays import Array, Op, native_op
from ._collectives import Collectives, chunk_count
from ._errors import Error
from ._stores import Store

CallOptions = _native.CallOptions
Reproducibility = _native.Reproducibility
ServerPlan = _native.ServerPlan
Work = _native.Work
_SUM = _native.ReduceOp.SUM

# A server's update of sums: (index of the first element in the whole operation, the sums as a memoryview, written in place).
Update = Callable[[int, memoryview], object]

_open: weakref.WeakSet[Communicator] = weakref.WeakSet()


class Communicator(Collectives):
    """The ranks of a job, or of a group; made by kolo.init(), split(), duplicate() and subset().

    Every rank issues the same operations in the same order; a different operation, type, count or root is an error on all
    ranks, not a hang. A failure anywhere ends the job: every later call of a rank that knows of it raises it.

    Threads may share a communicator, if they agree on the order of their operations. The GIL is released while kolo works.
    A blocking call ends at KeyboardInterrupt; its operation goes on, as if it had been issued by the `_async` form.

    fork(): in the child process each call raises ValueError, and close() does nothing.

    As a context manager it closes itself. An exception in the `with` block becomes the job's failure on all ranks.
    """

    def __init__(self, native: _native.World):
        self._native = native
        self.rank: int = native.rank()
        self.size: int = native.size()
        self.name: str = native.name()
        _open.add(self)

    def __repr__(self) -> str:
        return f"<kolo.Communicator '{self.name}': rank {self.rank} of {self.size}>"

    def __enter__(self) -> Communicator:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, _: object) -> None:
        if value is not None and not _is_success(value):
            name = type(value).__name__
            try:
                self.abort(f"{name}: {value}" if str(value) else name)
            except (Error, ValueError):
                pass  # the exception of the block says more
        self.close()

    def close(self) -> None:
        """Ends the communicator; operations in flight fail on all ranks, so wait for them before.

        A call of another thread ends first. A program's end closes all communicators.
        """
        self._native.close()

    @property
    def transport(self) -> str:
        return self._native.transport()

    @property
    def carrier(self) -> str:
        """libfabric's provider or UCX's transports; empty for all other transports."""
        return self._native.carrier()

    @property
    def hosts(self) -> list[int]:
        """The host number of each rank; hosts are numbered in the order of their first ranks."""
        return self._native.hosts()

    @property
    def timeout(self) -> float:
        """Seconds for each operation that names none."""
        return self._native.timeout()

    def job_rank(self, rank: int) -> int:
        """The number in the job of a rank of this group; Error.peer is such a number."""
        return self._native.job_rank(rank)

    # --- messages ---

    def send(self, data: Array, to: int, *, call: CallOptions | None = None) -> None:
        """Sends to one rank; returns once `data` may be written again.

        If all ranks send first, they hang when a message exceeds the channel's credit: see send_receive.
        """
        self._native.send(data, to, call, True)

    def send_async(self, data: Array, to: int, *, call: CallOptions | None = None) -> Work:
        return self._native.send(data, to, call, False)

    def receive(self, out: Array, source: int, *, call: CallOptions | None = None) -> Any:
        """Receives a message of the length and type of `out`; messages of one sender match in order."""
        return self._native.receive(out, source, call, True)

    def receive_async(self, out: Array, source: int, *, call: CallOptions | None = None) -> Work:
        return self._native.receive(out, source, call, False)

    def send_receive(self, data: Array, to: int, out: Array, source: int, *, call: CallOptions | None = None) -> Any:
        """Sends and receives at once. The arrays must not overlap; `to` and `source` may be the same rank."""
        return self._native.send_receive(data, to, out, source, call)

    # --- objects: pickled, so of ranks that are trusted ---

    def all_gather_object(self, value: Any) -> list[Any]:
        """The objects of all ranks, in their order, on every rank."""
        return [pickle.loads(one) for one in self._native.all_gather_bytes(pickle.dumps(value))]

    def gather_object(self, value: Any, root: int = 0) -> list[Any] | None:
        """As all_gather_object at the root; None elsewhere."""
        gathered = self._native.gather_bytes(pickle.dumps(value), root)
        return [pickle.loads(one) for one in gathered] if self.rank == root else None

    def broadcast_object(self, value: Any = None, root: int = 0) -> Any:
        """The root's object on every rank; `value` of other ranks is ignored."""
        mine = pickle.dumps(value) if self.rank == root else b""
        received = self._native.broadcast_bytes(mine, root)
        return value if self.rank == root else pickle.loads(received)

    # --- parameter servers ---

    def push_pull(self, data: Array, plan: ServerPlan, update: Update | None = None, op: Op = _SUM, *,
                  out: Array | None = None, call: CallOptions | None = None) -> Any:
        """Push and pull of a parameter server in one round trip; by default in place.

        data: of workers. Dedicated servers pass Count(count, dtype) instead.
        update: on servers, called for each piece of the server's share, as soon as it is complete. It replaces the sums
            by the values that the workers pull: `update(first, sums)`. Without it they pull the reduction.
        """
        out = data if out is None else out
        return self._native.push_pull(data, out, native_op(op), plan, update, call, True)

    def push_pull_async(self, data: Array, plan: ServerPlan, update: Update | None = None, op: Op = _SUM, *,
                        out: Array | None = None, call: CallOptions | None = None) -> Work:
        out = data if out is None else out
        return self._native.push_pull(data, out, native_op(op), plan, update, call, False)

    def push(self, data: Array, share: Array | None, plan: ServerPlan, update: Update | None = None, op: Op = _SUM, *,
             call: CallOptions | None = None) -> Any:
        """The first half of push_pull. Returns `share`: a server's plan.share(...) of the reduction; None on other ranks."""
        return self._native.push(data, share, native_op(op), plan, update, call, True)

    def push_async(self, data: Array, share: Array | None, plan: ServerPlan, update: Update | None = None, op: Op = _SUM, *,
                   call: CallOptions | None = None) -> Work:
        return self._native.push(data, share, native_op(op), plan, update, call, False)

    def pull(self, share: Array | None, out: Array, plan: ServerPlan, *, call: CallOptions | None = None) -> Any:
        """The second half: servers give their share (other ranks None), and workers get `out`."""
        return self._native.pull(share, out, plan, call, True)

    def pull_async(self, share: Array | None, out: Array, plan: ServerPlan, *, call: CallOptions | None = None) -> Work:
        return self._native.pull(share, out, plan, call, False)

    # --- groups: they may outlive this communicator ---

    def split(self, color: int, key: int = 0) -> Communicator | None:
        """One group of all ranks with the same color, ordered by key, then by rank. None for a color below 0."""
        made = self._native.split(color, key)
        return None if made is None else Communicator(made)

    def duplicate(self) -> Communicator:
        """The same ranks; operations of the two do not wait for each other."""
        return Communicator(self._native.duplicate())

    def subset(self, ranks: Sequence[int]) -> Communicator:
        """The listed ranks, numbered in that order; only these call it."""
        return Communicator(self._native.subset(ranks))

    # --- state ---

    def allocate(self, shape: int | Sequence[int], dtype: Any = "float32") -> Any:
        """A zeroed array of NumPy that peers on this host can read in place; it costs a file descriptor."""
        import numpy

        count = int(numpy.prod(shape))
        element = numpy.dtype(dtype)
        return self._native.allocate(count * element.itemsize).view(element).reshape(shape)

    def progress(self) -> bool:
        """Advances operations in flight without blocking; True if any is still in flight."""
        return self._native.progress()

    def fileno(self) -> int:
        """A descriptor for an event loop: readable when progress() has work to do, or the job has failed.

        So select.select([world], [], []) and asyncio's add_reader(world, world.progress) work. Do not read from it or
        close it. ValueError with progress_thread=True.
        """
        return self._native.descriptor()

    def abort(self, reason: str) -> None:
        """Ends the job on all ranks, with `reason` as the first cause unless there is one. From any thread."""
        self._native.abort(reason)

    def failure(self) -> Error | None:
        """The job's failure, if this rank knows of one. From any thread."""
        return self._native.failure()

    def statistics(self) -> dict[str, int]:
        """Bytes sent and received, and the number of operations."""
        return self._native.statistics()

    def peer_statistics(self, peer: int) -> dict[str, Any]:
        """Traffic with a peer, and the time that this rank waited for it."""
        return self._native.peer_statistics(peer)

    def step_profile(self) -> list[dict[str, Any]]:
        """The cost of the steps so far, one row per kind; empty unless kolo.init(profile=True)."""
        return self._native.step_profile()

    def algorithm(self, collective: str, nbytes: int, dtype: str = "float32", op: _native.ReduceOp = _SUM) -> str:
        """The algorithm of a call of `nbytes` that names none."""
        return self._native.algorithm(collective, nbytes, dtype, op)

    def predict(self, collective: str, nbytes: int, dtype: str = "float32",
                op: _native.ReduceOp = _SUM) -> dict[str, float]:
        """The predicted time of each candidate, in microseconds."""
        return self._native.predict(collective, nbytes, dtype, op)

    def write_records(self) -> None:
        """Writes the timeline and the trace now; else they are written when the communicator ends."""
        self._native.write_records()


def init(*, rank: int | None = None, size: int | None = None, store: Store | None = None, transport: str = "auto",
         name: str = "world", timeout: float = 0, segment_bytes: int = 0, host_id: str = "",
         progress_thread: bool = False, reproducibility: Reproducibility = Reproducibility.FAST, tuning: str = "",
         profile: bool = False, timeline: str = "") -> Communicator:
    """Makes the communicator of all ranks of a job; collective over them.

    Without rank, size and store, they come from the launcher: kolo-run, torchrun, mpirun, srun. Without a launcher, this
    process is the only rank.

    transport: "auto", "shm", "tcp", "ucx", "ofi"
    name: separates the communicators of a job
    timeout: in seconds, of each operation and of init(); 0: KOLO_TIMEOUT_MS, or 30 s
    segment_bytes: the same on every rank; 0: the transport's choice
    host_id: simulates several hosts on one machine
    progress_thread: start a thread that drives asynchronous operations
    reproducibility: the same on every rank
    tuning: a file of kolo-bench tune; only rank 0 reads it
    profile: collect step_profile()
    timeline: FILE.json, becomes FILE.RANK.json
    Raises Error if a rank does not come in time, ValueError for a wrong argument.
    """
    given = [rank is not None, size is not None, store is not None]
    if any(given) and not all(given):
        raise ValueError("kolo.init: pass rank, size and store together, or none of them (under a launcher)")
    return Communicator(_native.World.create(rank, size or 0, store, transport, name, timeout, segment_bytes, host_id,
                                             progress_thread, reproducibility, tuning, profile, timeline))


def _is_success(value: BaseException) -> bool:
    return isinstance(value, SystemExit) and value.code in (None, 0)


# Callbacks of a progress thread need the interpreter, so communicators end before it.
@atexit.register
def _close_all() -> None:
    for communicator in list(_open):
        communicator.close()


__all__ = ["Communicator", "chunk_count", "init"]
