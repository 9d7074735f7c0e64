#!/usr/bin/env python3
"""Programs on hosts of their own: kolo-bench topology shows shared memory within a host and the network between hosts, and kolo-run.

  topology_test.py KOLO_BENCH [test...]
"""

import sys
import unittest
from pathlib import Path

from hosts import Hosts, enter_private_namespaces

BENCH = ""
PATIENCE_S = 60


class Topology(unittest.TestCase):
    def setUp(self):
        self.network = Hosts()
        self.addCleanup(self.network.end)

    def two_hosts(self, hostname=None):
        hosts = [self.network.host(f"host{number}", hostname=hostname) for number in (1, 2)]
        for number, host in enumerate(hosts, 1):
            self.network.join(host, "net1", f"10.9.0.{number}/24")
            self.network.join(host, f"apart{number}", f"10.{number}.0.1/24", device="eth1")
        return hosts

    def pairs(self, hosts, **environment):
        """Runs a rank on each host; the hosts, transport and address of each pair."""
        environment = {"MASTER_ADDR": "10.9.0.1", "MASTER_PORT": "29500"} | environment
        ranks = [
            host.start([BENCH, "topology"], RANK=str(rank), WORLD_SIZE=str(len(hosts)), **environment) for rank, host in enumerate(hosts)
        ]
        outputs = [(process.communicate(timeout=PATIENCE_S)[0], process.returncode) for process in ranks]
        for output, code in outputs:
            self.assertEqual(code, 0, output)
        rows = [line.split() for line in outputs[0][0].splitlines() if not line.startswith("#")]
        self.assertEqual(len(rows), len(hosts) * (len(hosts) - 1) // 2, outputs[0][0])
        self.assertIn("# the slowest link: ranks ", outputs[0][0])
        return {(int(row[0]), int(row[1])): (row[2] + row[3], row[4], row[7]) for row in rows}

    def test_each_pair_has_the_best_transport_that_joins_it(self):
        first, second = self.two_hosts()
        pairs = self.pairs([first, first, second])
        self.assertEqual(pairs[0, 1], ("00", "shm", "-"))
        self.assertEqual(pairs[0, 2], ("01", "tcp", "10.9.0.2"))
        self.assertEqual(pairs[1, 2], ("01", "tcp", "10.9.0.2"))

    def test_hosts_with_one_name_are_two_hosts(self):
        first, second = self.two_hosts(hostname="node")
        pairs = self.pairs([first, second, second, first])
        self.assertEqual({pair: row[:2] for pair, row in pairs.items() if row[1] == "shm"}, {(0, 3): ("00", "shm"), (1, 2): ("11", "shm")})
        self.assertEqual(pairs[0, 1][2], "10.9.0.2")

    def test_kolo_run_starts_ranks_on_a_host_without_version_4(self):
        host = self.network.host("host1", "::1 localhost\n")
        host.ip("address", "delete", "127.0.0.1/8", "dev", "lo")
        for transport in ("shm", "tcp"):
            launcher = host.start([Path(BENCH).parent / "kolo-run", "-n", "2", BENCH, "topology"], KOLO_TRANSPORT=transport)
            output = launcher.communicate(timeout=PATIENCE_S)[0]
            self.assertEqual(launcher.returncode, 0, output)
            self.assertIn(f" {transport} ", output)

    def test_four_hosts_of_one_to_three_ranks_meet_over_version_6_alone(self):
        hosts = [self.network.host(f"host{number}", "::1 localhost\n") for number in range(1, 5)]
        for number, host in enumerate(hosts, 1):
            self.network.join(host, "net1", f"fd00::{number}/64")
            host.ip("address", "flush", "dev", "lo", "scope", "host")
            host.ip("address", "add", "::1/128", "dev", "lo")
        of_ranks = [0, 1, 1, 2, 2, 2, 3]
        pairs = self.pairs([hosts[number] for number in of_ranks], MASTER_ADDR="fd00::1")
        for (first, second), (numbers, transport, address) in pairs.items():
            a, b = of_ranks[first], of_ranks[second]
            self.assertEqual((numbers, transport), (f"{a}{b}", "shm" if a == b else "tcp"))
            self.assertEqual(address, "-" if a == b else f"fd00::{b + 1}")


if __name__ == "__main__":
    enter_private_namespaces()
    BENCH = sys.argv.pop(1)
    unittest.main()
