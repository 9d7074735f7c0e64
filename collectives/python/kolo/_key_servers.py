"""Key servers: parameter servers that serve each worker by itself, over messages; see collectives/key_server/README.md.

The parameters are a flat array of float32, the same on every rank. A key is a range of it that one server holds. Workers
push gradients of keys and pull their values. While keys are served, no rank issues other operations on the communicator:
use duplicate() for those.

    server: kolo.serve_keys(world, plan, values, update)
    worker: client = kolo.KeyClient(world, plan)
            client.push_pull(key, iteration, gradient, samples, values); client.wait(key); client.finish()
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from . import _native
from ._arrays import Array
from ._communicator import Communicator

if TYPE_CHECKING:
    import numpy

Consistency = _native.Consistency
KeyPlan = _native.KeyPlan
_LONGEST_KEY = 1_000_000


class KeyUpdate(NamedTuple):
    """One update of a key. `gradient` is a sum over `samples` samples of `gradients` workers."""

    key: int
    iteration: int
    values: numpy.ndarray  # of the key, to be updated in place; valid during the call
    gradient: numpy.ndarray  # may be overwritten; valid during the call
    samples: float
    gradients: int
    worker: int | None  # None: a sum of several workers


def plan_keys(ranges: Sequence[tuple[int, Sequence[int]]], servers: Sequence[int], longest: int = _LONGEST_KEY) -> KeyPlan:
    """Cuts ranges of the parameters into keys of at most `longest` elements.

    ranges: (first element, one share per server), in order of priority, not overlapping: [(0, [500, 500])]
    servers: ranks; all others are workers
    """
    return _native.plan_keys([(first, list(shares)) for first, shares in ranges], list(servers), longest)


def serve_keys(world: Communicator, plan: KeyPlan, values: Array, update: Callable[[KeyUpdate], object], *,
               consistency: Consistency = Consistency.SYNCHRONOUS, bound: int = 0, first_iteration: int = 0,
               timeout: float = 0) -> dict[str, Any]:
    """Serves this rank's keys until all workers have finished; returns statistics.

    values: all parameters, of which this server's keys are read and written
    update: called with each KeyUpdate, in a thread of this call. Its exception ends the job.
    bound: for Consistency.BOUNDED and BACKUP
    timeout: in seconds, the longest silence of all workers; 0: the communicator's
    """
    import numpy

    def call(key: int, iteration: int, of_key: memoryview, gradient: memoryview, samples: float, gradients: int,
             worker: int) -> None:
        update(KeyUpdate(key, iteration, numpy.asarray(of_key), numpy.asarray(gradient), samples, gradients,
                         worker if worker >= 0 else None))

    return _native.serve_keys(world._native, plan, values, call, consistency, bound, first_iteration, timeout)


class KeyClient:
    """Client of one worker. A key has one request in flight at a time, which keeps its arrays alive. Not thread-safe.

    timeout: in seconds, the longest silence of a server; 0: the communicator's
    """

    def __init__(self, world: Communicator, plan: KeyPlan, timeout: float = 0):
        self._native = _native.KeyClient(world._native, plan, timeout)

    def push(self, key: int, iteration: int, gradient: Array, samples: float) -> None:
        """Sends a gradient, the sum over `samples` samples. The key is done once it may be written again."""
        self._native.push(key, iteration, gradient, samples)

    def pull(self, key: int, values: Array) -> None:
        """Asks for the values that the rule permits for this worker's last push of the key."""
        self._native.pull(key, values)

    def push_pull(self, key: int, iteration: int, gradient: Array, samples: float, values: Array) -> None:
        """Both at once; `gradient` and `values` may be the same memory."""
        self._native.push_pull(key, iteration, gradient, samples, values)

    def test(self, key: int) -> bool:
        """True if the key has no request in flight. Makes progress without blocking."""
        return self._native.test(key)

    def wait(self, key: int) -> None:
        """Waits until the key has no request in flight. Then its arrays may be used again."""
        self._native.wait(key)

    def wait_all(self) -> None:
        """Waits until no key has a request in flight."""
        self._native.wait_all()

    @property
    def next_iteration(self) -> int:
        """The iteration that this worker should push next."""
        return self._native.next_iteration()

    def finish(self) -> None:
        """Waits for all requests, and tells the servers that this worker has finished."""
        self._native.finish()

    def statistics(self) -> dict[str, Any]:
        """The number of pushes and answers, and the seconds in wait(), wait_all() and finish()."""
        return self._native.statistics()
