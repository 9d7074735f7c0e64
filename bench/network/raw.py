#!/usr/bin/env python3
"""The test `message` with a plain, blocking TCP socket: what the kernel reaches over the network without kolo.

  raw.py BYTES WARMUP ITERATIONS FILE

Runs as rank RANK of 2, connected at MASTER_ADDR. In each iteration rank 0 sends BYTES and waits for 8 bytes back. It writes a
JSON line of the times like kolo-bench's. KOLO_TCP_CONGESTION and KOLO_TCP_BUFFERS apply to its socket, too.
"""

import json
import os
import socket
import sys
import time
from pathlib import Path

PORT = 29501
PATIENCE_S = 60
ANSWER = b"received"


def prepared(connection):
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if congestion := os.environ.get("KOLO_TCP_CONGESTION"):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, congestion.encode())
    if buffers := os.environ.get("KOLO_TCP_BUFFERS"):
        for side in (socket.SO_SNDBUF, socket.SO_RCVBUF):
            connection.setsockopt(socket.SOL_SOCKET, side, int(buffers))
    connection.settimeout(PATIENCE_S)
    return connection


def take(connection, memory):
    taken = 0
    while taken < len(memory):
        part = connection.recv_into(memory[taken:])
        if part == 0:
            sys.exit("raw.py: the other rank has ended")
        taken += part


def connected(rank):
    address = (os.environ["MASTER_ADDR"], PORT)
    if rank == 0:
        with prepared(socket.socket()) as listener:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # the port may be of a job that has just ended
            listener.bind(address)
            listener.listen()
            return prepared(listener.accept()[0])
    deadline = time.monotonic() + PATIENCE_S
    while True:
        connection = prepared(socket.socket())
        try:
            connection.connect(address)
            return connection
        except ConnectionRefusedError:
            connection.close()
            if time.monotonic() > deadline:
                raise


def quantile(times, share):
    return sorted(times)[min(len(times) - 1, int(share * len(times)))]


def main():
    size, warmup, iterations = (int(word) for word in sys.argv[1:4])
    rank = int(os.environ["RANK"])
    message, answer, times = bytearray(size), bytearray(len(ANSWER)), []
    with connected(rank) as connection:
        for _ in range(warmup + iterations):
            begin = time.monotonic()
            if rank == 0:
                connection.sendall(message)
                take(connection, memoryview(answer))
            else:
                take(connection, memoryview(message))
                connection.sendall(ANSWER)
            times.append((time.monotonic() - begin) * 1e6)
    if rank == 0:
        times = times[warmup:]
        row = {"library": "sockets", "bytes": size, "median_us": quantile(times, 0.5), "p90_us": quantile(times, 0.9), "wrong": None}
        Path(sys.argv[4]).write_text(json.dumps(row) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
