"""Several hosts on this machine: network namespaces that are joined by Ethernet networks. Needs root, unshare, nsenter and ip.

    enter_private_namespaces()            # first: nothing made afterwards outlives this process
    network = Hosts()
    a = network.host("a")
    network.join(a, "net1", "10.9.0.1/24")            # the device eth0
    network.join(a, "net2", "172.17.0.1/16", "docker0")
    ranks = [a.start(["program"], RANK="0"), ...]
"""

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

INSIDE = "KOLO_TEST_INSIDE_NAMESPACES"
PORT = "29500"
PATIENCE_S = 60
GOOD = "the average is"
LOOPBACK = "127.0.0.1 localhost\n::1 localhost\n"


def enter_private_namespaces():
    """Starts this program again, in mount, process-id and network namespaces of its own. Exits with 77 where that is not possible."""
    if os.environ.get(INSIDE):
        subprocess.run(["mount", "-t", "tmpfs", "none", "/run"], check=True)
        os.mkdir("/run/netns")
        return
    words = ["unshare", "--net", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child"]
    try:
        can = subprocess.run([*words, "ip", "link", "add", "type", "bridge"], capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        can = subprocess.CompletedProcess(words, 1, "", str(error))
    if can.returncode != 0:
        print(f"skipped: network namespaces cannot be made here: {can.stderr.strip()}")
        sys.exit(77)
    os.execvpe(words[0], [*words, sys.executable, *sys.argv], os.environ | {INSIDE: "1"})


def ip(*words):
    subprocess.run(["ip", *words], check=True)


def words_to_enter(name, folder, hostname=None):
    """Beginning of a command on the host of that name, whose files are in the folder."""
    inside = 'for file in hosts resolv.conf; do mount --bind "$0/$file" /etc/$file || exit; done; hostname "$1" && shift && exec "$@"'
    return ["nsenter", f"--net=/run/netns/{name}", "unshare", "--mount", "--uts", "sh", "-c", inside, folder, hostname or name]


class Host:
    """One host. `names`: the content of its /etc/hosts. `hostname`: instead of the name. `resolver`: its name server's address."""

    def __init__(self, name, names, hostname, resolver):
        self.name = name
        self.hostname = hostname or name
        self.folder = tempfile.TemporaryDirectory()
        (Path(self.folder.name) / "hosts").write_text(names or LOOPBACK)
        (Path(self.folder.name) / "resolv.conf").write_text(f"nameserver {resolver}\n" if resolver else "")
        ip("netns", "add", name)
        ip("-n", name, "link", "set", "lo", "up")

    def ip(self, *words):
        ip("-n", self.name, *words)

    def filter(self, *words):
        """A rule of the firewall, as for iptables."""
        subprocess.run(["nsenter", f"--net=/run/netns/{self.name}", "iptables", *words], check=True)

    def forward(self):
        """Makes this host a router."""
        subprocess.run(["nsenter", f"--net=/run/netns/{self.name}", "sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward"], check=True)

    def start(self, command, **environment):
        """A process on this host; its output and errors are one text."""
        words = [*words_to_enter(self.name, self.folder.name, self.hostname), *map(str, command)]
        clean = {name: value for name, value in os.environ.items() if not name.startswith("KOLO_")}
        return subprocess.Popen(
            words, env=clean | environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, stdin=subprocess.DEVNULL
        )


class Hosts:
    """Hosts and the networks between them."""

    ends = 0  # also of networks that the kernel has not removed yet

    def __init__(self):
        self.hosts = []
        self.networks = set()

    def host(self, name, names=None, hostname=None, resolver=None):
        self.hosts.append(Host(name, names, hostname, resolver))
        return self.hosts[-1]

    def join(self, host, network, *addresses, device="eth0"):
        """Connects a device of the host to a network; an address is as in 10.9.0.1/24 or fd00::1/64."""
        if network not in self.networks:
            self.networks.add(network)
            ip("link", "add", network, "type", "bridge")
            ip("link", "set", network, "up")
        Hosts.ends += 1
        end = f"end{Hosts.ends}"
        ip("link", "add", end, "type", "veth", "peer", "name", device, "netns", host.name)
        ip("link", "set", end, "master", network, "up")
        for address in addresses:
            host.ip("address", "add", address, "dev", device, *(["nodad"] if ":" in address else []))
        host.ip("link", "set", device, "up")

    def end(self):
        for host in self.hosts:
            ip("netns", "delete", host.name)
            host.folder.cleanup()
        for network in self.networks:
            ip("link", "delete", network)


def end_all(ranks):
    """Exit codes and outputs of all ranks, in order."""
    ended = [(process, process.communicate(timeout=PATIENCE_S)[0]) for process in ranks]
    return [(process.returncode, output) for process, output in ended]


class OnHosts(unittest.TestCase):
    """Runs `program` as ranks on hosts."""

    program = ""

    def setUp(self):
        self.network = Hosts()
        self.addCleanup(self.network.end)

    def start(self, hosts, program=None, **environment):
        """One rank per host. MASTER_ADDR and MASTER_PORT unless a store is given."""
        if "KOLO_STORE" not in environment:
            environment = {"MASTER_PORT": PORT} | environment
        size = str(len(hosts))
        return [
            host.start([program or self.program], RANK=str(rank), WORLD_SIZE=size, **environment) for rank, host in enumerate(hosts)
        ]

    def need_firewall(self):
        """Skips a test where this machine has no firewall for network namespaces."""
        try:
            tried = subprocess.run(["iptables", "-A", "INPUT", "-i", "none", "-j", "DROP"], capture_output=True, text=True, check=False)
        except FileNotFoundError as error:
            self.skipTest(str(error))
        if tried.returncode != 0:
            self.skipTest(f"iptables cannot be used here: {tried.stderr.strip()}")

    def require_good(self, ranks):
        for code, output in end_all(ranks):
            self.assertEqual(code, 0, output)
            self.assertIn(GOOD, output)

    def hosts_in_a_row(self, number, names=None):
        """Hosts on one network, without a default route: 10.9.0.1, 10.9.0.2, ..."""
        hosts = [self.network.host(f"host{i}", names) for i in range(1, number + 1)]
        for i, host in enumerate(hosts, 1):
            self.network.join(host, "net1", f"10.9.0.{i}/24")
        return hosts

    def two_hosts(self, names=None):
        return self.hosts_in_a_row(2, names)


def run_tests():
    """Runs the tests of the main program: SCRIPT PROGRAM [test...]"""
    enter_private_namespaces()
    OnHosts.program = sys.argv.pop(1)
    result = unittest.main(exit=False, verbosity=2).result
    if not result.wasSuccessful():
        sys.exit(1)
    sys.exit(77 if len(result.skipped) == result.testsRun else 0)
