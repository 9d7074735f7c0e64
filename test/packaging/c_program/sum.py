"""A user's program in Python without a binding: the C functions through ctypes, on an array of the standard library.

    sum.py LIBKOLO.SO
"""
import array
import ctypes
import sys

kolo = ctypes.CDLL(sys.argv[1])
kolo.kolo_version.restype = ctypes.c_char_p


class Failure(ctypes.Structure):
    _fields_ = [("result", ctypes.c_int), ("peer", ctypes.c_int), ("text", ctypes.c_char_p)]


kolo.kolo_last_failure.restype = Failure


def call(function, *arguments):
    """Calls a function of kolo; a failure ends the program with its text."""
    if function(*arguments) != 0:
        sys.exit(kolo.kolo_last_failure(None).text.decode())


FLOAT64, SUM = 1, 0
world = ctypes.c_void_p()
call(kolo.kolo_create_from_environment, None, ctypes.byref(world))
values = array.array("d", [kolo.kolo_rank(world) + 1.0] * 3)
address, count = values.buffer_info()
call(kolo.kolo_all_reduce, world, ctypes.c_void_p(address), ctypes.c_void_p(address), ctypes.c_size_t(count), FLOAT64, SUM, None, None)
print("the sums are", list(values))
wrong = kolo.kolo_all_reduce(world, ctypes.c_void_p(address), ctypes.c_void_p(address), ctypes.c_size_t(count), 77, SUM, None, None)
print("a wrong type:", wrong, kolo.kolo_last_failure(world).text.decode())
kolo.kolo_free(world)
