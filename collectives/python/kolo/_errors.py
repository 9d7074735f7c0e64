"""Exceptions: a failure of the job, by its kind."""

from __future__ import annotations

__all__ = ["Error", "PeerLost", "DeadlineExceeded", "Mismatch", "Aborted", "Unavailable", "ProtocolError", "SystemFailure", "OutOfMemory"]


class Error(RuntimeError):
    """A failure of the job at run time; all ranks get the same first cause.

    A mistake of this rank alone, such as a wrong shape, is a ValueError or TypeError instead.

    code: the kind of failure, "peer lost", "deadline passed", "mismatch", "aborted", "unavailable", "protocol", "system" or "out of memory"
    peer: the rank that caused it, by its number in the job (not in a group), or None
    """

    code: str = "other"
    peer: int | None = None


class PeerLost(Error):
    """The process or the connection of `peer` is gone."""

    code = "peer lost"


class DeadlineExceeded(Error, TimeoutError):
    """A wait passed its deadline."""

    code = "deadline passed"


class Mismatch(Error):
    """Ranks called different collectives, types, operations or counts."""

    code = "mismatch"


class Aborted(Error):
    """A rank called abort(), or a failure elsewhere ended the job."""

    code = "aborted"


class Unavailable(Error):
    """This build or machine lacks a requested transport or port."""

    code = "unavailable"


class ProtocolError(Error):
    """Bytes arrived that no peer of this version would send."""

    code = "protocol"


class SystemFailure(Error):
    """The operating system refused; the message carries its text."""

    code = "system"


class OutOfMemory(Error, MemoryError):
    """The rank `peer` ran out of memory."""

    code = "out of memory"


_BY_CODE = {kind.code: kind for kind in Error.__subclasses__()}


def make_error(code: str, peer: int, text: str) -> Error:
    """The exception of a failure in C++; `peer` below 0 is none."""
    made = _BY_CODE.get(code, Error)(text)
    made.peer = peer if peer >= 0 else None
    return made
