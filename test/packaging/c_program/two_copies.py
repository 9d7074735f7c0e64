"""Two copies of libkolo.so in one process, as when two packages bring one each: rank 0 calls the first, rank 1 the second.

    two_copies.py LIBKOLO.SO FOLDER
"""
import array
import ctypes
import pathlib
import shutil
import sys
import threading

library, folder = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
copy = folder / "copy_of_libkolo.so"
shutil.copyfile(library, copy)
copies = [ctypes.CDLL(str(library)), ctypes.CDLL(str(copy))]
FLOAT64, SUM = 1, 0


class Options(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("transport", ctypes.c_char_p)]


class Failure(ctypes.Structure):
    _fields_ = [("result", ctypes.c_int), ("peer", ctypes.c_int), ("text", ctypes.c_char_p)]


def run(rank, transport, sums):
    kolo = copies[rank]
    kolo.kolo_last_failure.restype = Failure

    def call(function, *arguments):
        if function(*arguments) != 0:
            raise RuntimeError(kolo.kolo_last_failure(None).text.decode())

    store, world = ctypes.c_void_p(), ctypes.c_void_p()
    path = str(folder / f"store_of_{transport}").encode()
    call(kolo.kolo_store_open_file, path, 2, ctypes.c_int64(0), ctypes.byref(store))
    options = Options(ctypes.sizeof(Options), transport.encode())
    call(kolo.kolo_create, ctypes.byref(options), rank, 2, store, ctypes.byref(world))
    kolo.kolo_store_free(store)
    values = array.array("d", [rank + 1.0])
    address = ctypes.c_void_p(values.buffer_info()[0])
    call(kolo.kolo_all_reduce, world, address, address, ctypes.c_size_t(1), FLOAT64, SUM, None, None)
    kolo.kolo_free(world)
    sums[rank] = values[0]


if ctypes.cast(copies[0].kolo_version, ctypes.c_void_p).value == ctypes.cast(copies[1].kolo_version, ctypes.c_void_p).value:
    sys.exit("the copies are one library")
for transport in ("shm", "tcp"):
    sums = [0, 0]
    ranks = [threading.Thread(target=run, args=(rank, transport, sums)) for rank in (0, 1)]
    for rank in ranks:
        rank.start()
    for rank in ranks:
        rank.join()
    print(f"two copies over {transport}: the sums are {sums}", flush=True)
