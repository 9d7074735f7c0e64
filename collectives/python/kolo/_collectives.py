"""Collectives of a communicator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from . import _native
from ._arrays import Array, Op, UserOp, as_numpy, empty, native_op

CallOptions = _native.CallOptions
Work = _native.Work
_SUM = _native.ReduceOp.SUM


class Collectives:
    """Collectives with equal shares, and with a count per rank (`_v`).

    Arrays are NumPy's, all others with the buffer protocol, and those with DLPack on the host, such as tensors of torch.
    They are contiguous; what a call writes is not read-only. Elements are counted, so shapes are free.

    Every method returns the array that holds its result: `out` if given. Without `out`, all_reduce, broadcast, reduce,
    scan and exclusive_scan work in place, and all others make an array of NumPy.

    Each `_async` form returns a Work, whose wait() returns what the other form returns. `call`: CallOptions.
    """

    _native: _native.World

    def all_reduce(self, data: Array, op: Op = _SUM, *, out: Array | None = None, call: CallOptions | None = None) -> Any:
        """Reduces `data` over all ranks, with the same bits on every rank.

        out: as long as `data`, or the same array (the default)
        """
        out = data if out is None else out
        return self._native.all_reduce(data, out, native_op(op), call, True)

    def all_reduce_async(self, data: Array, op: Op = _SUM, *, out: Array | None = None, call: CallOptions | None = None) -> Work:
        out = data if out is None else out
        return self._native.all_reduce(data, out, native_op(op), call, False)

    def reduce_scatter(self, data: Array, op: Op = _SUM, *, out: Array | None = None, call: CallOptions | None = None) -> Any:
        """Gives each rank its chunk of the reduction of `data`: chunk_count(len, size, rank) elements.

        out: this rank's chunk; by default a new array in one dimension
        """
        out = self._chunk_of(data) if out is None else out
        return self._native.reduce_scatter(data, out, native_op(op), call, True)

    def reduce_scatter_async(self, data: Array, op: Op = _SUM, *, out: Array | None = None,
                             call: CallOptions | None = None) -> Work:
        out = self._chunk_of(data) if out is None else out
        return self._native.reduce_scatter(data, out, native_op(op), call, False)

    def all_gather(self, data: Array, *, out: Array | None = None, call: CallOptions | None = None) -> Any:
        """Gives every rank the chunks of all ranks, in their order.

        out: all chunks; chunk r of n elements has chunk_count(n, size, r). By default a new array of shape
            (size, *data.shape), for chunks of equal length.
        """
        out = self._all_of(data) if out is None else out
        return self._native.all_gather(data, out, call, True)

    def all_gather_async(self, data: Array, *, out: Array | None = None, call: CallOptions | None = None) -> Work:
        out = self._all_of(data) if out is None else out
        return self._native.all_gather(data, out, call, False)

    def all_to_all(self, data: Array, *, out: Array | None = None, call: CallOptions | None = None) -> Any:
        """Sends an equal share of `data` to each rank; gets one from each, in their order.

        out: as long as `data`, or the same array; by default a new array of its shape
        """
        out = self._like(data) if out is None else out
        return self._native.all_to_all(data, out, call, True)

    def all_to_all_async(self, data: Array, *, out: Array | None = None, call: CallOptions | None = None) -> Work:
        out = self._like(data) if out is None else out
        return self._native.all_to_all(data, out, call, False)

    def broadcast(self, data: Array, root: int = 0, *, call: CallOptions | None = None) -> Any:
        """Copies the root's `data` to the `data` of all other ranks."""
        return self._native.broadcast(data, root, call, True)

    def broadcast_async(self, data: Array, root: int = 0, *, call: CallOptions | None = None) -> Work:
        return self._native.broadcast(data, root, call, False)

    def reduce(self, data: Array, root: int = 0, op: Op = _SUM, *, out: Array | None = None,
               call: CallOptions | None = None) -> Any:
        """Reduces `data` of all ranks to the root's `out`; by default in place there. Other ranks get None."""
        return self._native.reduce(data, self._at_root(root, data, out), root, native_op(op), call, True)

    def reduce_async(self, data: Array, root: int = 0, op: Op = _SUM, *, out: Array | None = None,
                     call: CallOptions | None = None) -> Work:
        return self._native.reduce(data, self._at_root(root, data, out), root, native_op(op), call, False)

    def gather(self, data: Array, root: int = 0, *, out: Array | None = None, call: CallOptions | None = None) -> Any:
        """Gives the root all chunks, in the order of ranks. Other ranks get None.

        out: at the root, as in all_gather. Other ranks pass it only if chunks differ in length: Count(all, dtype).
        """
        out = self._all_of(data) if out is None and self.rank == root else out
        return self._native.gather(data, out, root, call, True)

    def gather_async(self, data: Array, root: int = 0, *, out: Array | None = None, call: CallOptions | None = None) -> Work:
        out = self._all_of(data) if out is None and self.rank == root else out
        return self._native.gather(data, out, root, call, False)

    def scatter(self, data: Array | None, out: Array, root: int = 0, *, call: CallOptions | None = None) -> Any:
        """Gives each rank its chunk of the root's `data`, in `out`.

        data: at the root, all chunks. Other ranks pass None, or Count(all, dtype) if chunks differ in length.
        """
        return self._native.scatter(data, out, root, call, True)

    def scatter_async(self, data: Array | None, out: Array, root: int = 0, *, call: CallOptions | None = None) -> Work:
        return self._native.scatter(data, out, root, call, False)

    def scan(self, data: Array, op: Op = _SUM, *, out: Array | None = None, call: CallOptions | None = None) -> Any:
        """Reduces `data` over the ranks up to this one; by default in place. Averages are refused."""
        out = data if out is None else out
        return self._native.scan(data, out, native_op(op), call, True)

    def scan_async(self, data: Array, op: Op = _SUM, *, out: Array | None = None, call: CallOptions | None = None) -> Work:
        out = data if out is None else out
        return self._native.scan(data, out, native_op(op), call, False)

    def exclusive_scan(self, data: Array, op: Op = _SUM, *, out: Array | None = None, call: CallOptions | None = None) -> Any:
        """As scan, without this rank's own elements. Rank 0's `out` is not written."""
        out = data if out is None else out
        return self._native.exclusive_scan(data, out, native_op(op), call, True)

    def exclusive_scan_async(self, data: Array, op: Op = _SUM, *, out: Array | None = None,
                             call: CallOptions | None = None) -> Work:
        out = data if out is None else out
        return self._native.exclusive_scan(data, out, native_op(op), call, False)

    def barrier(self, *, call: CallOptions | None = None) -> None:
        """Returns once every rank has called it."""
        self._native.barrier(call, True)

    def barrier_async(self, *, call: CallOptions | None = None) -> Work:
        return self._native.barrier(call, False)

    def reduce_scatter_v(self, data: Array, counts: Sequence[int], op: Op = _SUM, *, out: Array | None = None,
                         call: CallOptions | None = None) -> Any:
        """As reduce_scatter, where rank r gets counts[r] elements; the same counts on every rank."""
        out = empty(counts[self.rank], data) if out is None else out
        return self._native.reduce_scatter_v(data, out, counts, native_op(op), call, True)

    def reduce_scatter_v_async(self, data: Array, counts: Sequence[int], op: Op = _SUM, *, out: Array | None = None,
                               call: CallOptions | None = None) -> Work:
        out = empty(counts[self.rank], data) if out is None else out
        return self._native.reduce_scatter_v(data, out, counts, native_op(op), call, False)

    def all_gather_v(self, data: Array, counts: Sequence[int], *, out: Array | None = None,
                     call: CallOptions | None = None) -> Any:
        """As all_gather, where rank r gives counts[r] elements; the same counts on every rank.

        out: sum(counts) elements; by default a new array in one dimension
        """
        out = empty(sum(counts), data) if out is None else out
        return self._native.all_gather_v(data, out, counts, call, True)

    def all_gather_v_async(self, data: Array, counts: Sequence[int], *, out: Array | None = None,
                           call: CallOptions | None = None) -> Work:
        out = empty(sum(counts), data) if out is None else out
        return self._native.all_gather_v(data, out, counts, call, False)

    def gather_v(self, data: Array, counts: Sequence[int] = (), root: int = 0, *, out: Array | None = None,
                 call: CallOptions | None = None) -> Any:
        """As gather, where rank r gives counts[r] elements; only the root knows the counts."""
        out = empty(sum(counts), data) if out is None and self.rank == root else out
        return self._native.gather_v(data, out, counts, root, call, True)

    def gather_v_async(self, data: Array, counts: Sequence[int] = (), root: int = 0, *, out: Array | None = None,
                       call: CallOptions | None = None) -> Work:
        out = empty(sum(counts), data) if out is None and self.rank == root else out
        return self._native.gather_v(data, out, counts, root, call, False)

    def scatter_v(self, data: Array | None, out: Array, counts: Sequence[int] = (), root: int = 0, *,
                  call: CallOptions | None = None) -> Any:
        """As scatter, where rank r gets counts[r] elements; only the root passes `data` and the counts."""
        return self._native.scatter_v(data, out, counts, root, call, True)

    def scatter_v_async(self, data: Array | None, out: Array, counts: Sequence[int] = (), root: int = 0, *,
                        call: CallOptions | None = None) -> Work:
        return self._native.scatter_v(data, out, counts, root, call, False)

    def all_to_all_v(self, data: Array, gives: Sequence[int], gets: Sequence[int], *, out: Array | None = None,
                     call: CallOptions | None = None) -> Any:
        """Sends gives[r] elements of `data` to rank r, and receives gets[r] elements from it.

        out: sum(gets) elements, not `data` itself; by default a new array in one dimension
        """
        out = empty(sum(gets), data) if out is None else out
        return self._native.all_to_all_v(data, gives, out, gets, call, True)

    def all_to_all_v_async(self, data: Array, gives: Sequence[int], gets: Sequence[int], *, out: Array | None = None,
                           call: CallOptions | None = None) -> Work:
        out = empty(sum(gets), data) if out is None else out
        return self._native.all_to_all_v(data, gives, out, gets, call, False)

    # --- arrays of results ---

    rank: int
    size: int

    def _at_root(self, root: int, data: Array, out: Array | None) -> Any:
        return data if out is None and self.rank == root else out

    def _chunk_of(self, data: Array) -> Any:
        return empty(chunk_count(as_numpy(data).size, self.size, self.rank), data)

    def _all_of(self, data: Array) -> Any:
        return empty((self.size, *as_numpy(data).shape), data)

    def _like(self, data: Array) -> Any:
        return empty(as_numpy(data).shape, data)


def chunk_begin(count: int, size: int, rank: int) -> int:
    """First element of a rank's chunk of `count` elements. The first count % size chunks are one longer."""
    return rank * (count // size) + min(rank, count % size)


def chunk_count(count: int, size: int, rank: int) -> int:
    """Number of elements of a rank's chunk: of 10 elements, three ranks hold 4, 3 and 3."""
    return chunk_begin(count, size, rank + 1) - chunk_begin(count, size, rank)


__all__ = ["Collectives", "UserOp", "chunk_begin", "chunk_count"]
