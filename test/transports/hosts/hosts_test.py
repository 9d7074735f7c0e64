#!/usr/bin/env python3
"""Ranks on several hosts find each other without settings: the store's address, and the addresses that ranks publish.

  hosts_test.py SUM_IN_PROCESSES [test...]
"""

import time

from hosts import PORT, OnHosts, end_all, run_tests

SILENT_NAME_SERVER = """
import signal, socket
name_server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
name_server.bind(("", 53))
print("ready", flush=True)
signal.pause()
"""


class Store(OnHosts):
    def test_a_name_server_that_never_answers_does_not_outlast_the_timeout(self):
        host = self.network.host("host1", resolver="10.9.0.2")
        silent = self.network.host("host2")
        self.network.join(host, "net1", "10.9.0.1/24")
        self.network.join(silent, "net1", "10.9.0.2/24")
        server = silent.start(["python3", "-c", SILENT_NAME_SERVER])
        self.addCleanup(server.communicate)
        self.addCleanup(server.kill)
        self.assertEqual(server.stdout.readline(), "ready\n")
        rank = host.start([self.program], RANK="1", WORLD_SIZE="2", MASTER_ADDR="never.example", MASTER_PORT=PORT, KOLO_TIMEOUT_MS="3000")
        ((code, output),) = end_all([rank])
        self.assertEqual(code, 1, output)
        self.assertIn("waited 3.0 s for the store at never.example:29500 (the name was not resolved in time)", output)

    def test_the_store_is_reached_where_the_own_name_is_a_loopback_address(self):
        hosts = [
            self.network.host("host1", "127.0.0.1 localhost\n127.0.1.1 host1\n"),  # as Debian installs it
            self.network.host("host2", "127.0.0.1 localhost\n10.9.0.1 host1\n"),
        ]
        for number, host in enumerate(hosts, 1):
            self.network.join(host, "net1", f"10.9.0.{number}/24")
        self.require_good(self.start(hosts, MASTER_ADDR="host1"))

    def test_localhost_as_the_address_for_another_host_is_explained(self):
        ranks = self.start(self.two_hosts(), MASTER_ADDR="localhost", KOLO_TIMEOUT_MS="1000")
        (_, _), (code, output) = end_all(ranks)
        self.assertNotEqual(code, 0)
        self.assertIn("localhost is this host, host2, and rank 0 may run on another one", output)

    def test_a_name_that_does_not_resolve_fails_by_the_deadline(self):
        host = self.network.host("host1")
        began = time.monotonic()
        ranks = [host.start([self.program], RANK="1", WORLD_SIZE="2", MASTER_ADDR="nowhere.example", MASTER_PORT=PORT, KOLO_TIMEOUT_MS="1000")]
        ((code, output),) = end_all(ranks)
        self.assertNotEqual(code, 0)
        self.assertIn("nowhere.example", output)
        self.assertLess(time.monotonic() - began, 30)  # not measured, but no wait for name servers


class Addresses(OnHosts):
    def file_store(self):
        return f"file:/run/store-{self.id()}"

    def test_without_a_default_route_ranks_publish_the_address_of_their_interface(self):
        self.require_good(self.start(self.two_hosts(), KOLO_STORE=self.file_store()))

    def test_bridges_of_containers_are_the_last_choice(self):
        hosts = self.two_hosts()
        for number, host in enumerate(hosts, 1):
            self.network.join(host, f"inside{number}", "172.17.0.1/16", device="docker0")
            host.ip("route", "add", "default", "via", "172.17.0.9", "dev", "docker0")
        self.require_good(self.start(hosts, KOLO_STORE=self.file_store()))

    def test_ranks_try_all_addresses_of_a_peer(self):
        hosts = self.two_hosts()
        for number, host in enumerate(hosts, 1):  # the first interface leads nowhere, and answers nothing
            self.network.join(host, f"apart{number}", f"10.{number}.0.1/24", device="first")
            host.ip("route", "add", "default", "via", f"10.{number}.0.9", "dev", "first")
        self.require_good(self.start(hosts, KOLO_STORE=self.file_store()))

    def test_a_network_of_version_6_alone_is_enough(self):
        hosts = [self.network.host("host1", "::1 localhost\n"), self.network.host("host2", "::1 localhost\n")]
        for number, host in enumerate(hosts, 1):
            self.network.join(host, "net1", f"fd00::{number}/64")
            host.ip("address", "flush", "dev", "lo", "scope", "host")
            host.ip("address", "add", "::1/128", "dev", "lo")
        self.require_good(self.start(hosts, MASTER_ADDR="fd00::1"))
        self.require_good(self.start([hosts[0], hosts[0]], MASTER_ADDR="::1", MASTER_PORT="29501", KOLO_TRANSPORT="tcp"))
        self.require_good(self.start([hosts[0], hosts[0]], MASTER_ADDR="[::1]", MASTER_PORT="29502", KOLO_TRANSPORT="tcp"))
        self.require_good(self.start(hosts, KOLO_STORE=self.file_store()))

    def test_interfaces_and_networks_are_chosen_by_a_setting(self):
        hosts = self.two_hosts()
        for number, host in enumerate(hosts, 1):  # the first interface leads nowhere, and answers nothing
            self.network.join(host, f"apart{number}", f"10.{number}.0.1/24", device="first")
            host.ip("route", "add", "default", "via", f"10.{number}.0.9", "dev", "first")
        for choice in ("eth", "10.9.0.0/24", "^first"):
            self.require_good(self.start(hosts, KOLO_STORE=f"{self.file_store()}{choice[0]}", KOLO_TCP_HOST=choice))

    def test_a_setting_that_selects_no_address_is_explained(self):
        ranks = self.start(self.two_hosts(), MASTER_ADDR="10.9.0.1", KOLO_TCP_HOST="ib0,192.168.0.0/16")
        for code, output in end_all(ranks):
            self.assertNotEqual(code, 0)
            self.assertIn("KOLO_TCP_HOST='ib0,192.168.0.0/16' selects no address of this host, which has eth0 10.9.0.", output)

    def test_an_advertised_address_takes_the_place_of_the_own_ones(self):
        hosts = self.two_hosts()
        for number, host in enumerate(hosts, 1):  # 203.0.113.N is host N, though no interface says so to the others
            host.ip("address", "add", f"203.0.113.{number}/32", "dev", "lo")
            host.ip("route", "add", f"203.0.113.{3 - number}", "via", f"10.9.0.{3 - number}")
        ranks = []
        for rank, host in enumerate(hosts):
            environment = {"KOLO_STORE": self.file_store(), "KOLO_TCP_ADVERTISE": f"203.0.113.{rank + 1}"}
            ranks.append(host.start([self.program], RANK=str(rank), WORLD_SIZE="2", **environment))
        self.require_good(ranks)

    def test_every_address_that_was_tried_is_in_the_message(self):
        hosts = self.two_hosts()
        hosts[0].ip("route", "add", "prohibit", "10.9.0.2")  # as a firewall that rejects
        hosts[1].ip("route", "add", "blackhole", "10.9.0.1")  # as one that drops
        ranks = self.start(hosts, KOLO_STORE=self.file_store(), KOLO_TIMEOUT_MS="1000")
        for code, output in end_all(ranks):
            self.assertNotEqual(code, 0)
            self.assertIn("no tcp connection to rank", output)
            self.assertIn("10.9.0.", output)
            self.assertIn("firewall", output)

    def require_in_all(self, ranks, patterns):
        """Every rank fails with a table that has lines of all patterns, and with the same table."""
        tables = set()
        for code, output in end_all(ranks):
            self.assertNotEqual(code, 0)
            for pattern in patterns:
                self.assertRegex(output, rf"\n  {pattern}\n")
            tables.add(output[output.index("missing connections:") :])
        self.assertEqual(len(tables), 1, tables)

    def test_every_message_has_all_pairs_that_cannot_connect_and_the_reasons(self):
        self.need_firewall()
        hosts = self.hosts_in_a_row(4)
        for number in (1, 2, 4):
            hosts[2].ip("route", "add", "unreachable", f"10.9.0.{number}")
        hosts[2].filter("-A", "INPUT", "-i", "eth0", "-j", "DROP")
        hosts[3].filter("-A", "INPUT", "-i", "eth0", "-p", "tcp", "-j", "REJECT", "--reject-with", "tcp-reset")
        ranks = self.start(hosts, KOLO_STORE=self.file_store(), KOLO_TIMEOUT_MS="20000")
        self.require_in_all(
            ranks,
            [
                r"rank [01]: no tcp connection to rank 2 was made, at 10.9.0.3:\d+ \(no answer yet\)",
                r"rank 2: no tcp connection to rank \d was made, at 10.9.0.\d:\d+ \(No route to host\)",
                r"rank [01]: no tcp connection to rank 3 was made, at 10.9.0.4:\d+ \(Connection refused\)",
            ],
        )

    def test_a_timeout_has_all_pairs_that_cannot_connect(self):
        self.need_firewall()
        hosts = self.hosts_in_a_row(3)
        hosts[2].filter("-A", "INPUT", "-i", "eth0", "-j", "DROP")
        ranks = self.start(hosts, KOLO_STORE=self.file_store(), KOLO_TIMEOUT_MS="3000")
        no_answer = r"was made, at 10.9.0.\d:\d+ \(no answer yet\)"
        self.require_in_all(
            ranks,
            [rf"rank [01]: no tcp connection to rank 2 {no_answer}", rf"rank 2: no tcp connection to rank [01] {no_answer}"],
        )


if __name__ == "__main__":
    run_tests()
