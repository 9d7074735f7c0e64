#!/usr/bin/env python3
"""Arguments of the Python package: what counts as an array, and what is refused, with a message that says what to do."""

import array
import ctypes
import importlib
import importlib.util
import unittest

import kolo
import numpy as np
from ranks import run_ranks


class Tensor(ctypes.Structure):
    """DLManagedTensor of DLPack, with one element."""

    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
                ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", ctypes.c_void_p), ("strides", ctypes.c_void_p), ("byte_offset", ctypes.c_uint64),
                ("manager", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


class OnDevice:
    """A float32 in the memory of a device, as DLPack presents it."""

    device = "cuda:0"

    def __init__(self):
        self.tensor = Tensor(data=4096, device_type=2, code=2, bits=32, lanes=1)

    def __dlpack__(self, **_):
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
        return new(ctypes.addressof(self.tensor), b"dltensor", None)


class Arrays(unittest.TestCase):
    def setUp(self):
        self.world = kolo.init(rank=0, size=1, store=kolo.LocalStore())
        self.addCleanup(self.world.close)

    def refuses(self, kind, words, function, *arguments, **named):
        with self.assertRaisesRegex(kind, words):
            function(*arguments, **named)

    def test_memory_of_the_buffer_protocol_is_used_in_place(self):
        numbers = array.array("d", [1, 2, 3])
        self.assertIs(self.world.all_reduce(numbers, kolo.ReduceOp.MAX), numbers)
        data = bytearray(b"abc")
        self.world.all_gather(b"xyz", out=data)
        self.assertEqual(data, b"xyz")
        self.assertIsInstance(self.world.all_gather(b"abc"), np.ndarray)
        self.world.all_reduce(memoryview(bytearray(8)).cast("q"))

    def test_shapes_are_free(self):
        for shape in ((), (0,), (2, 0, 3), (2, 3, 4)):
            self.assertEqual(self.world.all_gather(np.ones(shape)).shape, (1, *shape))
        self.world.all_reduce(np.ones((3, 5))[1:2, :], out=np.empty(5))

    def test_arrays_with_gaps_are_refused(self):
        words = "the array: it is not contiguous.*ascontiguousarray"
        self.refuses(ValueError, words, self.world.all_reduce, np.ones((4, 4))[:, 1])
        self.refuses(ValueError, words, self.world.all_reduce, np.ones((4, 4)).T)

    def test_memory_that_is_read_only_is_no_output(self):
        fixed = np.ones(3)
        fixed.flags.writeable = False
        self.refuses(ValueError, "the array: it is read-only", self.world.all_reduce, fixed)
        self.refuses(ValueError, "the output: it is read-only", self.world.all_reduce, np.ones(3), out=b"12345678")
        np.testing.assert_array_equal(self.world.all_reduce(fixed, out=np.empty(3)), fixed)

    def test_other_objects_are_refused(self):
        self.refuses(TypeError, "expected an array.*not list", self.world.all_reduce, [1, 2])
        self.refuses(TypeError, "expected an array.*not float", self.world.all_gather, 1.0)
        self.refuses(TypeError, "complex128 are not supported", self.world.all_reduce, np.ones(3, complex))
        self.refuses(TypeError, ">f4 are not supported", self.world.all_reduce, np.ones(3, ">f4"))
        self.refuses(TypeError, "not supported", self.world.broadcast, np.array([None]))
        self.refuses(TypeError, "memory of cuda:0; .*pass x.cpu()", self.world.all_reduce, OnDevice())

    def test_bools_have_no_sum(self):
        self.refuses(ValueError, "bools have no sum; pass ReduceOp.BIT_OR", self.world.all_reduce, np.ones(3, bool))

    def test_lengths_and_types_are_compared(self):
        self.refuses(ValueError, "", self.world.all_reduce, np.ones(3), out=np.ones(4))
        self.refuses(ValueError, "", self.world.all_reduce, np.ones(3), out=np.ones(3, "int64"))
        self.refuses(ValueError, "", self.world.broadcast, np.ones(3), 7)

    def test_options_are_checked(self):
        self.refuses(ValueError, "pass rank, size and store together", kolo.init, rank=0)
        self.refuses(ValueError, "unknown collective 'sum'; expected one of all_reduce", kolo.algorithm_names, "sum")
        self.refuses(ValueError, "unknown element type 'float'; expected one of float32", kolo.Count, 1, "float")
        self.refuses(ValueError, "below 0", kolo.CallOptions, timeout=-1)
        self.refuses(TypeError, "op: expected a kolo.ReduceOp or kolo.UserOp, not str", self.world.all_reduce, np.ones(3), "sum")
        wrong = kolo.CallOptions(algorithm="rong")
        self.refuses(ValueError, "rong", self.world.all_reduce, np.ones(3), call=wrong)
        self.refuses(ValueError, "unknown transport 'pigeon'", kolo.init, rank=0, size=1, store=kolo.LocalStore(),
                     transport="pigeon")

    @unittest.skipIf(importlib.util.find_spec("kolo_torch"), "kolo_torch is installed")
    def test_a_missing_backend_of_torch_is_reported_with_its_command(self):
        with self.assertRaisesRegex(ImportError, "pip install .* collectives/python/torch"):
            importlib.import_module("kolo.torch")

    def test_counts_and_ranks_may_be_integers_of_numpy(self):
        counts = np.array([3])
        self.assertEqual(self.world.all_gather_v(np.ones(3), counts).shape, (3,))
        self.world.broadcast(np.ones(3), np.int64(0))
        self.assertEqual(self.world.all_to_all_v(np.ones(3), tuple(counts), counts).shape, (3,))

    def test_a_closed_communicator_says_so(self):
        self.world.close()
        self.world.close()
        self.refuses(ValueError, "this communicator is closed", self.world.barrier)


@unittest.skipUnless(importlib.util.find_spec("torch"), "needs torch")
class Tensors(unittest.TestCase):
    def test_tensors_are_used_in_place(self):
        import torch

        types = (torch.float32, torch.bfloat16, torch.float16, torch.int64, torch.float8_e4m3fn, torch.float8_e5m2)

        def body(world):
            for dtype in types:
                data = torch.full((5,), world.rank + 1.0).to(dtype)
                self.assertIs(world.all_reduce(data), data)
                self.assertEqual(data.to(torch.float32).tolist(), [3.0] * 5, dtype)

        run_ranks(2, body)

    def test_what_is_wrong_with_a_tensor_is_said(self):
        import torch

        with kolo.init(rank=0, size=1, store=kolo.LocalStore()) as world:
            with self.assertRaisesRegex(ValueError, "not contiguous"):
                world.all_reduce(torch.ones(3, 4).T)
            world.broadcast(torch.ones(3, requires_grad=True))  # as parameters of a model
            with self.assertRaisesRegex(ValueError, "pass `out`"):
                world.all_gather(torch.ones(3, dtype=torch.bfloat16))
            with self.assertRaises((TypeError, ValueError, BufferError)):
                world.all_reduce(torch.ones(3, device="meta"))


@unittest.skipUnless(importlib.util.find_spec("ml_dtypes"), "needs ml_dtypes")
class NarrowFloats(unittest.TestCase):
    def test_types_of_ml_dtypes_are_reduced(self):
        import ml_dtypes

        def body(world):
            for dtype in (ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2):
                data = np.full(5, world.rank + 1).astype(dtype)
                world.all_reduce(data)
                self.assertEqual(data.astype("float32").tolist(), [3.0] * 5)

        run_ranks(2, body)


if __name__ == "__main__":
    unittest.main()
