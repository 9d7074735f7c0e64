#!/usr/bin/env python3
"""Two hosts on one machine, joined by a network of a given rate and delay: the kernel's own TCP over a long or a slow path.

  link.py --rate 1Gbit --delay 10ms -- COMMAND...

runs COMMAND twice, as rank 0 and rank 1 of a job (RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT), each in its own network namespace.
It ends with the worse of their exit codes. Needs root, Linux with /dev/net/tun, and ip and tc (iproute2). The ranks get the
network in KOLO_BENCH_NETWORK (1Gbit,10ms), which kolo-bench writes into its rows.

  rank 0 -- tun device, tbf -- queue, rate, delay -- tun device -- rank 1        and the same the other way
                               (this program)

Many kernels lack netem, so this program makes the delay: it reads packets of one device and writes them to the other after the
delay. The rate is limited either here, by a router that drops packets when its queue is full (--bottleneck router), or by the
kernel's token bucket at the sending device (--bottleneck host, sch_tbf), where a full queue blocks the sender. Packets have 1500
bytes and travel in bundles of up to 64 KiB, as for network cards (TSO). The headers of the single packets are counted.

Nothing is left behind, however it ends: namespaces and devices live as long as this process holds them, and a rank dies with it.
"""

import argparse
import collections
import ctypes
import fcntl
import os
import re
import select
import signal
import statistics
import struct
import subprocess
import sys
import time

CLONE_NEWNET = 0x40000000
PR_SET_PDEATHSIG, PR_SET_TIMERSLACK = 1, 29
TUNSETIFF, TUNSETVNETHDRSZ, TUNSETOFFLOAD = 0x400454CA, 0x400454D8, 0x400454D0
IFF_TUN, IFF_NO_PI, IFF_VNET_HDR = 0x0001, 0x1000, 0x4000
OFFLOADS = 0x01 | 0x02 | 0x04 | 0x08  # checksum, TSO over IPv4, over IPv6, with ECN
VNET_HEADER = struct.Struct("<BBHHHH")  # flags, gso type, header length, gso size, checksum's place
MOST_BYTES = VNET_HEADER.size + 65536
BUNDLES_IN_A_ROW = 4
MTU = 1500
LEAST_QUEUE = 256 * 1024
BURST = 128 * 1024  # of tbf; more than a bundle, which it would otherwise split
DEVICE = "kolo"
ADDRESSES = ("10.77.0.1", "10.77.0.2")
PORT = 29500  # a namespace that was just made has all its ports free
LOOK_AT_RANKS_EVERY_S = 0.05
RATES = {"Kbit": 125, "Mbit": 125_000, "Gbit": 125_000_000}
DELAYS = {"us": 1000, "ms": 1_000_000, "s": 1_000_000_000}
SIZES = {"K": 1024, "KiB": 1024, "M": 1024**2, "MiB": 1024**2}

libc = ctypes.CDLL(None, use_errno=True)


class CannotLink(Exception):
    """The network cannot be made here; the reason in one line."""


def checked(call, *words):
    if call(*words) != 0:
        error = ctypes.get_errno()
        raise OSError(error, f"{call.__name__}: {os.strerror(error)}")


def quantity(text, units, what):
    """'1.5Gbit' as a number of the smallest unit."""
    match = re.fullmatch(r"([0-9.]+)([A-Za-z]+)", text)
    if not match or match[2] not in units or match[1].count(".") > 1 or match[1] == ".":
        raise argparse.ArgumentTypeError(f"'{text}' is not a {what}: expected a number and one of {', '.join(units)}")
    return float(match[1]) * units[match[2]]


def rate(text):
    """Bytes per second."""
    return quantity(text, RATES, "rate")


def delay(text):
    """Nanoseconds."""
    return int(quantity(text, DELAYS, "delay"))


def size(text):
    """Bytes."""
    return int(quantity(text, SIZES, "length"))


def text_of(number, units):
    """The shortest text of a number: 1250000 with the units of a rate is 10Mbit."""
    unit = max((name for name in units if units[name] <= number), key=units.get, default=min(units, key=units.get))
    return f"{number / units[unit]:g}{unit}"


def wire_bytes(bundle):
    """Bytes of a bundle's packets on the wire, including IP headers."""
    _, kind, headers, payload, _, _ = VNET_HEADER.unpack_from(bundle)
    length = len(bundle) - VNET_HEADER.size
    if kind == 0 or payload == 0:
        return length
    packets = -(-(length - headers) // payload)
    return length + (packets - 1) * headers


def name_of(bytes_per_second, delay_ns, bottleneck="router", queue_bytes=0):
    """The name of a network: 1Gbit,10ms; with bottleneck and queue if they differ from the defaults."""
    words = [text_of(bytes_per_second, RATES) if bytes_per_second else "any rate", text_of(delay_ns, DELAYS) if delay_ns else "0ms"]
    if bottleneck != "router":
        words.append(f"bottleneck {bottleneck}")
    if queue_bytes:
        words.append(f"queue {text_of(queue_bytes, SIZES)}")
    return ",".join(words)


class Way:
    """One direction: packets of the device `source` go to the device `sink` after a delay."""

    def __init__(self, source, sink, bytes_per_second, delay_ns, queue_bytes):
        self.source, self.sink = source, sink
        self.bytes_per_second = bytes_per_second  # 0: no limit
        self.delay_ns = delay_ns
        self.queue_ns = queue_bytes * 1e9 / bytes_per_second if bytes_per_second else 0
        self.busy_until = 0  # the wire's time
        self.under_way = collections.deque()
        self.bundles = self.dropped = 0
        self.lateness = []

    def take(self):
        for _ in range(BUNDLES_IN_A_ROW):
            try:
                bundle = os.read(self.source, MOST_BYTES)
            except BlockingIOError:
                return
            self.admit(bundle, time.monotonic_ns())

    def admit(self, bundle, now):
        self.bundles += 1
        begin = max(now, self.busy_until)
        if self.bytes_per_second:
            if begin - now > self.queue_ns:
                self.dropped += 1
                return
            self.busy_until = begin + wire_bytes(bundle) * 1e9 / self.bytes_per_second
            begin = self.busy_until
        self.under_way.append((begin + self.delay_ns, bundle))

    def give(self, now):
        while self.under_way and self.under_way[0][0] <= now:
            due, bundle = self.under_way.popleft()
            self.lateness.append(now - due)
            os.write(self.sink, bundle)


class Link:
    """Two namespaces with a device in each, and the network between them."""

    def __init__(self, bytes_per_second, delay_ns, bottleneck="router", queue_bytes=0):
        self.bytes_per_second, self.delay_ns = bytes_per_second, delay_ns
        round_trip_bytes = int(2 * delay_ns * bytes_per_second / 1e9)
        self.text = name_of(bytes_per_second, delay_ns, bottleneck, queue_bytes)
        self.queue_bytes = queue_bytes or max(LEAST_QUEUE, round_trip_bytes)
        self.namespaces, self.devices = [], []
        own = os.open("/proc/self/ns/net", os.O_RDONLY)
        try:
            for side in (0, 1):
                self.make_side(side, is_limited=bottleneck == "host")
        except OSError as error:
            raise CannotLink(f"cannot make a network namespace with a device: {error.strerror}; it needs root, "
                             "/dev/net/tun, and ip and tc of iproute2") from error
        finally:
            libc.setns(own, CLONE_NEWNET)
            os.close(own)
        routed = bytes_per_second if bottleneck == "router" else 0
        self.ways = [Way(self.devices[a], self.devices[1 - a], routed, delay_ns, self.queue_bytes) for a in (0, 1)]

    def make_side(self, side, is_limited):
        checked(libc.unshare, CLONE_NEWNET)
        self.namespaces.append(os.open("/proc/self/ns/net", os.O_RDONLY))
        self.devices.append(open_device())
        configure("ip", "link", "set", "lo", "up")
        configure("ip", "address", "add", ADDRESSES[side], "peer", ADDRESSES[1 - side], "dev", DEVICE)
        configure("ip", "link", "set", DEVICE, "mtu", str(MTU), "txqueuelen", "10000", "up")
        if is_limited and self.bytes_per_second:
            configure("tc", "qdisc", "add", "dev", DEVICE, "root", "tbf", "rate", f"{self.bytes_per_second:.0f}bps",
                      "burst", str(BURST), "limit", str(self.queue_bytes + BURST))

    def start(self, side, command, **options):
        """Starts a process on one of the two hosts with the variables of a rank; it ends with this process."""
        environment = {**os.environ, **options.pop("env", {}), "RANK": str(side), "WORLD_SIZE": "2", "LOCAL_RANK": "0",
                       "LOCAL_WORLD_SIZE": "1", "MASTER_ADDR": ADDRESSES[0], "MASTER_PORT": str(PORT), "KOLO_BENCH_NETWORK": self.text}
        namespace, parent = self.namespaces[side], os.getpid()

        def enter():
            checked(libc.prctl, PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != parent:
                os.kill(os.getpid(), signal.SIGKILL)
            checked(libc.setns, namespace, CLONE_NEWNET)

        return subprocess.Popen(command, env=environment, preexec_fn=enter, **options)

    def carry(self, is_over):
        """Carries packets until is_over() is true, which is checked periodically."""
        libc.prctl(PR_SET_TIMERSLACK, 1)
        look = 0
        while True:
            now = time.monotonic_ns()
            for way in self.ways:
                way.give(now)
            if now >= look:
                if is_over():
                    return
                look = now + int(LOOK_AT_RANKS_EVERY_S * 1e9)
            next_ns = min([look] + [way.under_way[0][0] for way in self.ways if way.under_way])
            patience = max(0, next_ns - time.monotonic_ns()) / 1e9
            readable, _, _ = select.select(self.devices, [], [], patience)
            for way in self.ways:
                if way.source in readable:
                    way.take()

    def run(self, command, **options):
        """Runs both ranks to their end; returns their exit codes."""
        ranks = []
        try:
            for side in (0, 1):
                ranks.append(self.start(side, command, **options))
            self.carry(lambda: all(rank.poll() is not None for rank in ranks))
        finally:
            for rank in ranks:
                if rank.poll() is None:
                    rank.kill()
                    rank.wait()
        return [rank.returncode for rank in ranks]

    def account(self):
        """Counters of the network, to judge the measurement: bundles, lateness, drops."""
        late = sorted(ns for way in self.ways for ns in way.lateness)
        bundles, dropped = (sum(getattr(way, count) for way in self.ways) for count in ("bundles", "dropped"))
        if not late:
            return "nothing passed"
        median, p99 = statistics.median(late) / 1000, late[int(len(late) * 0.99)] / 1000
        return f"{bundles} bundles passed, {median:.0f} us late (99 %: {p99:.0f}), {dropped} dropped"

    def close(self):
        for descriptor in self.devices + self.namespaces:
            os.close(descriptor)
        self.devices, self.namespaces = [], []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def open_device():
    """Opens a tun device in the current namespace; packets start with a virtio-net header."""
    device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    fcntl.ioctl(device, TUNSETIFF, struct.pack("16sH22x", DEVICE.encode(), IFF_TUN | IFF_NO_PI | IFF_VNET_HDR))
    fcntl.ioctl(device, TUNSETVNETHDRSZ, struct.pack("i", VNET_HEADER.size))
    fcntl.ioctl(device, TUNSETOFFLOAD, OFFLOADS)
    return device


def configure(*words):
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise CannotLink(f"{' '.join(words)}: {done.stderr.strip() or done.returncode}")


def add_network(parser):
    parser.add_argument("--bottleneck", choices=("router", "host"), default="router",
                        help="where the rate is limited: a router on the way, which drops packets, or the sender's own queue")
    parser.add_argument("--queue", type=size, default=0, metavar="BYTES",
                        help="longest queue before the bottleneck; default: the bytes of a round trip, 256KiB at least")


def worse(codes):
    """The exit code of a job: the worst of its ranks', with 128 + n for signal n."""
    return max((code if code >= 0 else 128 - code for code in codes), default=0)


def end_on_signal(number, _):
    sys.exit(128 + number)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rate", type=rate, default=0, metavar="RATE", help="10Mbit, 1Gbit; default: no limit")
    parser.add_argument("--delay", type=delay, default=0, metavar="TIME", help="1ms, one way")
    add_network(parser)
    parser.add_argument("command", nargs=argparse.REMAINDER, help="-- COMMAND...")
    arguments = parser.parse_args()
    command = arguments.command[1:] if arguments.command[:1] == ["--"] else arguments.command
    if not command:
        parser.error("no command: link.py --rate 1Gbit --delay 10ms -- COMMAND...")
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, end_on_signal)
    try:
        with Link(arguments.rate, arguments.delay, arguments.bottleneck, arguments.queue) as link:
            codes = link.run(command)
            print(f"link.py: {link.account()}", file=sys.stderr)
            return worse(codes)
    except (CannotLink, FileNotFoundError) as error:
        print(f"link.py: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 128 + signal.SIGINT


if __name__ == "__main__":
    sys.exit(main())
