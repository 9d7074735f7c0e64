"""Stores, through which the ranks of a job meet; for programs that no launcher starts."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from . import _native

Store = _native.Store

_TIMEOUT = 30.0


def FileStore(path: str, size: int, *, timeout: float = _TIMEOUT) -> Store:
    """The store in a file that every rank can open; made if absent, removed by the last of `size` ranks."""
    return _native.open_file_store(path, size, timeout)


def TcpStore(host: str, port: int, *, timeout: float = _TIMEOUT, server_rank: int | None = None) -> Store:
    """A connection to a TcpStoreServer, with retries for `timeout` seconds.

    server_rank: the rank that runs the server, if a rank does; messages name it if the store ends
    """
    return _native.connect_tcp_store(host, port, timeout, -1 if server_rank is None else server_rank)


class TcpStoreServer:
    """Serves a store from a thread of its own until it is closed.

    host: the address to bind; empty: all addresses
    port: 0: the kernel chooses one; see `port`
    size: the number of ranks of the job; 0: unknown
    """

    def __init__(self, host: str = "", port: int = 0, size: int = 0):
        self._native = _native.TcpStoreServer(host, port, size)

    @property
    def port(self) -> int:
        return self._native.port()

    def close(self) -> None:
        """Waits up to 5 s until the ranks have left, and ends the server."""
        self._native.close()

    def __enter__(self) -> TcpStoreServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def LocalStore() -> Store:
    """A store for ranks that are threads of this process; all of them pass the same object."""
    return _native.make_local_store()


def KeyValueStore(set: Callable[[str, bytes], object], get: Callable[[str], bytes | None],
                  add: Callable[[str, int], int], remove: Callable[[str], object] | None = None,
                  *, name: str = "the caller's store") -> Store:
    """The store over functions of the program, such as those of etcd or Redis. Starts no thread.

    set: stores a value, which every later `get` of any process finds
    get: returns the value, or None at once if there is none
    add: adds to a counter that starts at 0, atomically; returns the new value
    remove: removes a value or counter; None: nothing is ever removed
    The functions are called on several threads. An exception fails the call that needs them.
    """
    return _native.store_of_functions(set, get, add, remove, name)


def AllGatherStore(rank: int, size: int, all_gather: Callable[[bytes], Iterable[bytes]], *,
                   timeout: float = _TIMEOUT) -> Store:
    """The store of processes that can exchange data already: `MPI.COMM_WORLD.allgather`.

    Calls `all_gather` once, on every rank; it returns the bytes of all ranks, in their order. Rank 0 serves a TCP store
    in a thread, as long as the store lives.
    """
    return _native.store_by_all_gather(rank, size, all_gather, timeout)
