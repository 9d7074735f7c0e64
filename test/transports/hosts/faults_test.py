#!/usr/bin/env python3
"""Firewalls, address translation, and networks that end in the middle of a job.

  faults_test.py SUM_IN_PROCESSES [test...]

The program endless_sums lies in the same folder: it sums until its job fails.
"""

from pathlib import Path

from hosts import OnHosts, end_all, run_tests

STORE = "10.9.0.1"
TIMEOUT_MS = "2000"


class Firewall(OnHosts):
    def setUp(self):
        super().setUp()
        self.need_firewall()

    def errors_of(self, ranks):
        """The error of each rank."""
        ended = end_all(ranks)
        for code, output in ended:
            self.assertEqual(code, 1, output)
        return [output for _, output in ended]

    def test_a_store_behind_a_firewall_is_named_with_the_reason_and_the_port(self):
        hosts = self.two_hosts()
        for verdict, reason in (
            (["DROP"], "Connection timed out"),
            (["REJECT", "--reject-with", "tcp-reset"], "Connection refused"),
            (["REJECT", "--reject-with", "icmp-admin-prohibited"], "No route to host"),
        ):
            hosts[0].filter("-F")
            hosts[0].filter("-A", "INPUT", "-i", "eth0", "-p", "tcp", "-j", *verdict)
            absent, error = self.errors_of(self.start(hosts, MASTER_ADDR=STORE, KOLO_TIMEOUT_MS=TIMEOUT_MS))
            self.assertIn("waited 2.0 s for rank 1 of 2 to join the job (the store at 10.9.0.1:29500)", absent)
            self.assertIn(f"rank 1: waited 2.0 s for the store at 10.9.0.1:29500 ({reason}): start rank 0", error)
            self.assertIn("open this port in the firewall of its host", error)

    def blocks_all_but_the_store(self, host, *verdict):
        host.filter("-F")
        host.filter("-A", "INPUT", "-i", "eth0", "-p", "tcp", "!", "--dport", "29500", "--syn", "-j", *verdict)

    def test_blocked_ports_of_data_are_named_with_the_pair_the_reason_and_the_setting(self):
        hosts = self.two_hosts()
        for verdict, reason in (
            (["DROP"], r"no tcp connection to rank [01] was made, at 10\.9\.0\.[12]:\d+ \(no answer yet\)"),
            (["REJECT", "--reject-with", "tcp-reset"], r"cannot connect to rank [01] at 10\.9\.0\.[12]:\d+ \(tcp\): the connection is refused"),
            (["REJECT", "--reject-with", "icmp-admin-prohibited"], r"no tcp connection to rank [01] was made, at 10\.9\.0\.[12]:\d+ \(No route to host\)"),
        ):
            for host in hosts:
                self.blocks_all_but_the_store(host, *verdict)
            errors = self.errors_of(self.start(hosts, MASTER_ADDR=STORE, KOLO_TIMEOUT_MS=TIMEOUT_MS))
            self.assertEqual(errors[0], errors[1])
            self.assertRegex(errors[0], reason)
            self.assertIn("KOLO_TCP_PORTS", errors[0])

    def test_a_firewall_that_admits_one_direction_or_a_range_of_ports_is_no_hindrance(self):
        hosts = self.two_hosts()
        for blocked in hosts:
            for host in hosts:
                host.filter("-F")
            self.blocks_all_but_the_store(blocked, "DROP")
            self.require_good(self.start(hosts, MASTER_ADDR=STORE))
        for host in hosts:
            self.blocks_all_but_the_store(host, "DROP")
            host.filter("-I", "INPUT", "-p", "tcp", "--dport", "30000:30009", "-j", "ACCEPT")
        self.require_good(self.start(hosts, MASTER_ADDR=STORE, KOLO_TCP_PORTS="30000-30009"))

    def behind_translation(self, number):
        """A host with the address 10.0.0.2, behind a router that translates ports 30000 to 30009 of 203.0.113.NUMBER."""
        router = self.network.host(f"router{number}")
        host = self.network.host(f"host{number}")
        self.network.join(router, "outside", f"203.0.113.{number}/24")
        self.network.join(router, f"inside{number}", "10.0.0.1/24", device="eth1")
        self.network.join(host, f"inside{number}", "10.0.0.2/24")
        host.ip("route", "add", "default", "via", "10.0.0.1")
        router.forward()
        router.filter("-t", "nat", "-A", "POSTROUTING", "-o", "eth0", "-j", "MASQUERADE")
        words = ["-i", "eth0", "-p", "tcp", "--dport", "30000:30009", "-j", "DNAT", "--to-destination", "10.0.0.2"]
        router.filter("-t", "nat", "-A", "PREROUTING", *words)
        return host

    def test_hosts_behind_address_translation_need_the_outside_address(self):
        outside = self.network.host("host1")
        self.network.join(outside, "outside", "203.0.113.1/24")
        hosts = [outside, self.behind_translation(2), self.behind_translation(3)]

        def start(advertise):
            environment = {"WORLD_SIZE": "3", "MASTER_ADDR": "203.0.113.1", "MASTER_PORT": "29500", "KOLO_TIMEOUT_MS": TIMEOUT_MS}
            ranks = [outside.start([self.program], RANK="0", **environment)]
            for rank, host in enumerate(hosts[1:], 1):
                own = {"RANK": str(rank), "KOLO_TCP_PORTS": "30000-30009"}
                if advertise:
                    own["KOLO_TCP_ADVERTISE"] = f"203.0.113.{rank + 1}"
                ranks.append(host.start([self.program], **environment, **own))
            return ranks

        self.require_good(start(advertise=True))
        errors = self.errors_of(start(advertise=False))
        self.assertEqual(len(set(errors)), 1, errors)
        self.assertRegex(errors[0], "rank [12]")
        self.assertIn("10.0.0.2:3000", errors[0])
        self.assertIn("address translation (NAT) KOLO_TCP_ADVERTISE", errors[0])


class Cut(OnHosts):
    """The network ends while ranks sum."""

    def setUp(self):
        super().setUp()
        self.need_firewall()

    def start_sums(self, hosts):
        """One rank per item of `hosts`; all have summed before this returns."""
        ranks = self.start(hosts, Path(self.program).with_name("endless_sums"), MASTER_ADDR=STORE, KOLO_TIMEOUT_MS=TIMEOUT_MS)
        for rank in ranks:
            self.assertEqual(rank.stdout.readline(), "started\n")
        return ranks

    def errors_of(self, ranks, survivors):
        """The error of the surviving ranks, which is one for all; all ranks end."""
        outputs = [output for _, output in end_all(ranks)]
        errors = {outputs[rank] for rank in survivors}
        self.assertEqual(len(errors), 1, outputs)
        self.assertIn("timed out after 2.0 s", outputs[survivors[0]])
        return errors.pop()

    def test_a_host_that_vanishes_is_named_on_all_surviving_ranks(self):
        hosts = self.hosts_in_a_row(3)
        ranks = self.start_sums(hosts)
        hosts[2].ip("link", "set", "eth0", "down")
        error = self.errors_of(ranks, [0, 1])
        self.assertIn("peer 2\n", error)

    def test_a_host_of_two_ranks_that_vanishes_is_named_on_all_surviving_ranks(self):
        hosts = self.two_hosts()
        ranks = self.start_sums([hosts[0], hosts[0], hosts[1], hosts[1]])
        hosts[1].filter("-A", "INPUT", "-i", "eth0", "-j", "DROP")
        hosts[1].filter("-A", "OUTPUT", "-o", "eth0", "-j", "DROP")
        error = self.errors_of(ranks, [0, 1])
        self.assertRegex(error, "peer [23]\n")

    def test_ranks_whose_store_vanishes_end_with_its_rank_as_the_cause(self):
        hosts = self.hosts_in_a_row(3)
        ranks = self.start_sums(hosts)
        hosts[0].ip("link", "set", "eth0", "down")
        for _, output in end_all(ranks)[1:]:
            self.assertIn("rank 0 is gone, which serves the store at 10.9.0.1:29500", output)
            self.assertIn("the network is cut", output)
            self.assertIn("peer 0\n", output)

    def test_a_path_that_is_cut_between_two_ranks_is_named_on_all_ranks(self):
        hosts = self.hosts_in_a_row(3)
        ranks = self.start_sums(hosts)
        hosts[1].filter("-A", "INPUT", "-s", "10.9.0.3", "-j", "DROP")
        hosts[2].filter("-A", "INPUT", "-s", "10.9.0.2", "-j", "DROP")
        error = self.errors_of(ranks, [0, 1, 2])
        self.assertIn("data sent to rank 2 at 10.9.0.3 is not acknowledged", error)


if __name__ == "__main__":
    run_tests()
