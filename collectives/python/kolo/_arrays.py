"""Arrays of results, and reductions by a function in Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol, Union, runtime_checkable

from . import _native

if TYPE_CHECKING:
    import numpy
    from typing_extensions import Buffer


@runtime_checkable
class SupportsDLPack(Protocol):
    """An array of another library, such as torch.Tensor."""

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...


# An argument: what has the buffer protocol (numpy.ndarray, bytearray, memoryview) or DLPack (torch.Tensor).
if TYPE_CHECKING:
    Array = Union[Buffer, SupportsDLPack, _native.Count]
else:
    Array = Any


def as_numpy(array: Any) -> numpy.ndarray:
    """The same memory as an array of NumPy. ValueError: its type is one that NumPy lacks."""
    import numpy

    if isinstance(array, numpy.ndarray):
        return array
    try:
        memoryview(array)
    except TypeError:
        try:
            return numpy.from_dlpack(array)
        except (AttributeError, TypeError):
            raise TypeError(f"expected an array (with the buffer protocol or DLPack), not {type(array).__name__}") from None
        except (BufferError, RuntimeError) as error:
            raise ValueError(f"NumPy cannot hold the result: {error}; pass `out`") from error
    return numpy.asarray(memoryview(array))


def empty(shape: Any, like: Array) -> numpy.ndarray:
    """A new array of NumPy, of the type of `like`."""
    import numpy

    return numpy.empty(shape, as_numpy(like).dtype)


class UserOp:
    """A reduction by a function, as MPI_Op_create: pass it as `op`.

    combine: called with arrays `left` and `right` of equally many elements, of lower and of higher ranks; returns their
        reduction, element by element. It must be associative, and give the same result on every rank. The arrays are
        valid during the call only. It runs on the thread that makes progress, and must not wait for an operation.
    dtype: NumPy's type of the elements, which may have fields
    commutative: False: `left` is always from lower ranks than `right`, which not all algorithms support
    tag: distinguishes functions in the check between peers
    Every rank passes one with the same tag, element length and `commutative`. An exception of `combine` fails the
    operation on all ranks.
    """

    def __init__(self, combine: Callable[[numpy.ndarray, numpy.ndarray], Any], dtype: Any, *, commutative: bool = True,
                 tag: int = 0):
        import numpy

        element = numpy.dtype(dtype)

        def combine_bytes(out: memoryview, left: memoryview, right: memoryview) -> None:
            made = combine(numpy.frombuffer(left, element), numpy.frombuffer(right, element))
            numpy.frombuffer(out, element)[:] = made

        self._native = _native.UserReduceOp.make(element.itemsize, combine_bytes, commutative, tag)


# How elements are combined.
Op = Union[_native.ReduceOp, UserOp]


def native_op(op: Op) -> Any:
    return op._native if isinstance(op, UserOp) else op
