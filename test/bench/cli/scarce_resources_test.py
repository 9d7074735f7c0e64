#!/usr/bin/env python3
"""kolo-bench with scarce resources: little shared memory, no memfd, one core, half a core, few descriptors, a rank stopped for
a while, more ranks than cores. It works where possible. Otherwise it ends with one clear error.

  scarce_resources_test.py KOLO_BENCH [test...]
"""

import functools
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from processes import ranks_of, wait_until

BENCH = ""
PATIENCE_S = 400
FEW = ["--iterations", "3", "--passes", "1", "--warmup", "1", "--factor", "64", "--timeout", "120"]
GROUPS = "/sys/fs/cgroup"


def program(name):
    return str(Path(BENCH).parent / name)


def start(words, **options):
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)


def run(*words, **options):
    process = start(words, **options)
    output, errors = process.communicate(timeout=PATIENCE_S)
    return process.returncode, output, errors


@functools.cache
def transports():
    """{transport: what kolo-bench says of it}. UCX and libfabric take a third of a second to look around."""
    return dict(line.split(": ", 1) for line in run(BENCH, "transports")[1].splitlines())


def mounted(script, *words):
    """The command as root of a user and mount namespace of its own, after the mounts of `script`."""
    return ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script + ' && exec "$@"', "sh", *words]


class Surroundings(unittest.TestCase):
    def skip_unless_mounting(self, script):
        try:
            code, _, errors = run(*mounted(script, "true"))
        except FileNotFoundError:
            self.skipTest("skipped: no unshare (util-linux) here")
        if code != 0:
            self.skipTest(f"skipped: no namespace to mount in: {errors.strip()}")

    def skip_without(self, transport, carrier=""):
        about = transports().get(transport, "cannot be used here")
        if "cannot be used here" in about or carrier not in about:
            self.skipTest(f"skipped: no {transport} {carrier}".rstrip())

    def skip_unless_filtering(self):
        code, _, errors = run(program("without"), "memfd_create=EPERM", "true")
        if code == 77:
            self.skipTest(f"skipped: {errors.strip()}")

    def lines_of(self, *words, before=(), **options):
        """The JSON lines of an all-reduce with right results."""
        code, output, errors = run(*before, BENCH, "allreduce", *FEW, *words, "--json", "-", **options)
        self.assertEqual(code, 0, errors)
        lines = [json.loads(line) for line in output.splitlines()]
        self.assertTrue(lines)
        self.assertEqual({line["wrong"] for line in lines}, {0})
        return lines

    def spins_of(self, *words, before=(), **options):
        """The number of spins of rank 0, from its profile. Yields and sleeps are not checked: rank 0 may find each message at
        the first look."""
        code, output, errors = run(*before, BENCH, "allreduce", *FEW, "--max-bytes", "64K", "--profile", *words, **options)
        self.assertEqual(code, 0, errors)
        rows = [line.split() for line in output.splitlines() if re.match(r"# +rank 0 to \d+( +\d+){9} +[\d.]+$", line)]
        self.assertTrue(rows, output)
        self.assertGreater(sum(int(row[5]) for row in rows), 0, output)  # messages sent
        return sum(int(row[-4]) for row in rows)

    def complaints_of(self, *words, **options):
        """The error lines of kolo-bench in a job that must fail."""
        code, _, errors = run(*words, **options)
        self.assertEqual(code, 1, errors)
        said = [line for line in errors.splitlines() if "kolo-bench: " in line]
        self.assertTrue(said, errors)
        return said


class Memory(Surroundings):
    def test_a_dev_shm_of_1_mb_is_enough_for_any_message(self):
        small = "mount -t tmpfs -o size=1m none /dev/shm"
        self.skip_unless_mounting(small)
        for transport in ("shm", "tcp"):
            with self.subTest(transport=transport):
                self.lines_of("--ranks", "3", "--transport", transport, "--max-bytes", "16M", before=mounted(small))

    def test_without_dev_shm_everything_works(self):
        none = "mount -t tmpfs -o size=4k,nr_inodes=1,ro none /dev/shm"
        self.skip_unless_mounting(none)
        self.lines_of("--transport", "shm", "--max-bytes", "64K", before=mounted(none))

    def test_without_copies_between_processes_everything_works(self):
        self.skip_unless_filtering()
        for error in ("ENOSYS", "EPERM"):
            for collective in ("allgather", "alltoall"):
                with self.subTest(error=error, collective=collective):
                    code, output, errors = run(program("without"), f"process_vm_readv={error}", BENCH, collective, *FEW, "--ranks", "3",
                                               "--transport", "shm", "--min-bytes", "1M", "--max-bytes", "1M", "--json", "-")
                    self.assertEqual(code, 0, errors)
                    self.assertEqual({json.loads(line)["wrong"] for line in output.splitlines()}, {0})

    def test_without_memfd_shm_is_refused_with_an_alternative(self):
        self.skip_unless_filtering()
        for error, text in (("ENOSYS", "Function not implemented"), ("EPERM", "Operation not permitted")):
            with self.subTest(error=error):
                said = self.complaints_of(program("without"), f"memfd_create={error}", BENCH, "allreduce", "--transport", "shm")
                self.assertEqual(len(said), 1, said)
                self.assertEqual(said[0], f"kolo-bench: --transport shm: cannot be used here: memfd_create: {text}; auto takes one that can")

    def test_without_memfd_auto_chooses_another_transport(self):
        self.skip_unless_filtering()
        lines = self.lines_of("--transport", "auto", "--max-bytes", "64K", before=[program("without"), "memfd_create=EPERM"])
        self.assertEqual({line["transport"] for line in lines}, {"tcp"})

    def test_one_rank_without_memfd_affects_all_ranks(self):
        self.skip_unless_filtering()
        for rank in range(3):
            with self.subTest(rank=rank):
                script = f'test $RANK = {rank} || exec "$@"; exec {program("without")} memfd_create=ENOSYS "$@"'
                command = [program("kolo-run"), "-n", "3", "sh", "-c", script, "sh", BENCH, "allreduce", *FEW, "--max-bytes", "64K"]
                code, output, errors = run(*command)
                self.assertEqual(code, 0, errors)
                rows = [line.split() for line in output.splitlines() if "float32" in line]
                self.assertEqual({row[row.index("sum") + 1] for row in rows}, {"tcp"}, output)
                said = self.complaints_of(*command, "--transport", "shm")
                self.assertRegex(said[0], rf"rank {rank} .*cannot share memory")


    def test_out_of_memory_is_reported_with_the_size_and_a_remedy(self):
        if any(name in Path(BENCH).read_bytes() for name in (b"libasan", b"libtsan")):
            self.skipTest("skipped: a sanitizer's own memory is more than ulimit -v allows")
        for words in (["--transport", "inproc"], ["--transport", "tcp"]):
            said = self.complaints_of("sh", "-c", 'ulimit -v 600000 && exec "$@"', "sh", BENCH, "allreduce", *FEW, *words, "--max-bytes", "1G")
            self.assertEqual(len(said), 1, said)
            self.assertRegex(said[0], r"rank \d: there is no memory for 10737\d+ bytes of a buffer: .*ulimit -v.*smaller --max-bytes")

    def limited(self, limit, used):
        """A mount in which the control groups of both hierarchies show these numbers."""
        files = {"memory.max": limit, "memory.current": used, "memory/memory.limit_in_bytes": limit, "memory/memory.usage_in_bytes": used}
        return f"mount -t tmpfs none {GROUPS} && mkdir {GROUPS}/memory" + "".join(f" && echo {text} > {GROUPS}/{file}" for file, text in files.items())

    def test_the_limit_of_the_control_group_is_checked_before_the_kernel_kills(self):
        little = self.limited(64 << 20, 63 << 20)  # one mebibyte left
        self.skip_unless_mounting(little)
        for words in (["--transport", "inproc"], ["--transport", "shm", "--allocated"]):
            said = self.complaints_of(*mounted(little, BENCH, "allreduce", *FEW, *words, "--max-bytes", "4M"))
            self.assertEqual(len(said), 1, said)
            self.assertRegex(said[0], r"rank \d: there is no memory for 41\d{5} bytes of a buffer: this process's cgroup has 1048576 of 67108864 "
                                      rf"left; ask for less, or raise {GROUPS}/.*; a smaller --max-bytes")
        code, output, errors = run(*mounted(little, BENCH, "allreduce", *FEW, "--max-bytes", "40M"))
        self.assertEqual((code, output, len(errors.splitlines())), (2, "", 1), errors)
        self.assertIn("the buffers of 2 ranks take 0.1 GiB together, and this process's cgroup may have", errors)
        self.lines_of("--transport", "shm", "--max-bytes", "64K", before=mounted(little))


class Libraries(Surroundings):
    """ucx and ofi with a shortage of their libraries: they go on, or report a remedy."""

    def said_of(self, transport, variables, *words, before=()):
        """All error lines of the job, from whichever ranks."""
        command = [*before, BENCH, "allreduce", *FEW, "--transport", transport, *words]
        return " ".join(self.complaints_of(*command, env={**os.environ, **variables}))

    def test_without_a_common_provider_ofi_names_the_variables(self):
        self.skip_without("ofi")
        for variables in ({"FI_PROVIDER": "nothing_of_the_kind"}, {"KOLO_OFI_PROVIDER": "nothing_of_the_kind"}):
            with self.subTest(variables=variables):
                said = self.said_of("ofi", variables)
                self.assertRegex(said, r"rank \d does not have libfabric's provider .*: (it|libfabric) has none .*FI_PROVIDER leaves")
                self.assertIn("KOLO_OFI_PROVIDER chooses", said)

    def test_ranks_with_different_providers_report_them_all(self):
        self.skip_without("ofi", "tcp")
        self.skip_without("ofi", "sockets")
        choose = 'if [ "$RANK" = 0 ]; then FI_PROVIDER=tcp; else FI_PROVIDER=sockets; fi; export FI_PROVIDER; exec "$@"'
        complaints = self.complaints_of(program("kolo-run"), "-n", "2", "sh", "-c", choose, "sh", BENCH, "allreduce", *FEW, "--transport", "ofi",
                                        env={name: value for name, value in os.environ.items() if name != "KOLO_OFI_PROVIDER"})
        self.assertRegex(" ".join(complaints), r"none of libfabric's providers works on all ranks \(ofi\); rank 0: tcp\S* , rank 1: sockets ; install the same")

    def test_missing_ucx_transports_are_reported_with_their_variables(self):
        self.skip_without("ucx")
        for variables, text in (({"UCX_TLS": "nothing"}, "UCX has no usable transport (No such device): check UCX_TLS and"),
                                ({"UCX_TLS": "tcp", "UCX_NET_DEVICES": "nothing0"}, "check UCX_TLS and UCX_NET_DEVICES; this machine has"),
                                ({"UCX_TLS": "self"}, "set UCX_TLS and UCX_NET_DEVICES alike on all ranks"),
                                ({"UCX_RNDV_THRESH": "many"}, "UCX cannot read its settings (Invalid parameter)")):
            with self.subTest(variables=variables):
                self.assertIn(text, self.said_of("ucx", variables))

    def test_warnings_of_ucx_are_not_among_the_rows(self):
        self.skip_without("ucx")
        warned = {**os.environ, "UCX_TLS": "tcp,self,no_such"}
        self.lines_of("--transport", "ucx", "--max-bytes", "8", env=warned)
        code, output, errors = run(BENCH, "p2p", "latency", "--transport", "ucx", "--level", "library", "--max-bytes", "8", *FEW,
                                   "--json", "-", env=warned)
        self.assertEqual(code, 0, errors)
        self.assertEqual({json.loads(line)["library"] for line in output.splitlines()}, {"kolo", "ucx"})
        self.assertIn("UCX  WARN", errors)

    def test_a_dev_shm_of_1_mb_is_reported_with_a_remedy_that_helps(self):
        small = "mount -t tmpfs -o size=1m none /dev/shm"
        self.skip_unless_mounting(small)
        for transport, short, text, enough in (
                ("ucx", {"UCX_TLS": "posix,self"}, r"room in /dev/shm may be short, .* UCX_TLS=tcp does without", {"UCX_TLS": "tcp"}),
                ("ofi", {"KOLO_OFI_PROVIDER": "shm"}, r"provider shm: .*room \(shm: in /dev/shm\).* KOLO_OFI_PROVIDER chooses",
                 {"KOLO_OFI_PROVIDER": "tcp"})):
            with self.subTest(transport=transport):
                self.skip_without(transport)
                self.assertRegex(self.said_of(transport, short, before=mounted(small)), text)
                self.lines_of("--transport", transport, "--min-bytes", "4M", "--max-bytes", "4M", before=mounted(small),
                              env={**os.environ, **enough})

    def test_without_locked_memory_everything_works(self):
        for transport, variables in (("ucx", {}), ("ofi", {"KOLO_OFI_PROVIDER": "tcp"}), ("ofi", {"KOLO_OFI_PROVIDER": "shm"})):
            with self.subTest(transport=transport, variables=variables):
                self.skip_without(transport, variables.get("KOLO_OFI_PROVIDER", ""))
                self.lines_of("--transport", transport, "--max-bytes", "1M", before=["sh", "-c", 'ulimit -l 0 && exec "$@"', "sh"],
                              env={**os.environ, **variables})

    def test_missing_copies_between_processes_are_reported_with_a_remedy_that_helps(self):
        self.skip_unless_filtering()
        refusing = [program("without"), "process_vm_readv=EPERM"]  # the libraries do not notice this at their start
        for transport, short, text, enough in (
                ("ucx", {"UCX_TLS": "tcp,cma", "UCX_RNDV_THRESH": "1K"}, "process_vm_readv, leave cma out of UCX_TLS", {"UCX_TLS": "tcp"}),
                ("ofi", {"KOLO_OFI_PROVIDER": "shm"}, "process_vm_readv, FI_SHM_DISABLE_CMA=1 does without",
                 {"KOLO_OFI_PROVIDER": "shm", "FI_SHM_DISABLE_CMA": "1"})):
            with self.subTest(transport=transport):
                self.skip_without(transport, short.get("KOLO_OFI_PROVIDER", ""))
                size = ["--min-bytes", "1M", "--max-bytes", "1M"]
                self.assertIn(text, self.said_of(transport, short, *size, before=refusing))
                self.lines_of("--transport", transport, *size, before=refusing, env={**os.environ, **enough})

    def test_the_ucx_transports_of_its_readme_sum_right(self):
        self.skip_without("ucx")
        for ways, carriers in (("tcp", {"tcp"}), ("posix,sysv,self", {"posix", "sysv"}), ("tcp,cma,posix", {"tcp", "cma", "posix"})):
            with self.subTest(ways=ways):
                lines = self.lines_of("--transport", "ucx", "--ranks", "3", "--max-bytes", "1M", env={**os.environ, "UCX_TLS": ways})
                used = {name for line in lines for name in line["carrier"].split(",")}
                self.assertTrue(used and used <= carriers, used)


class Cores(Surroundings):
    def test_ranks_that_share_one_core_of_a_mask_do_not_spin(self):
        one = {min(os.sched_getaffinity(0))}
        for transport in ("shm", "tcp", "inproc"):
            for ranks in ("2", "4"):
                with self.subTest(transport=transport, ranks=ranks):
                    spins = self.spins_of("--transport", transport, "--ranks", ranks, preexec_fn=lambda: os.sched_setaffinity(0, one))
                    self.assertEqual(spins, 0)

    def test_ranks_that_share_half_a_core_of_a_quota_do_not_spin(self):
        # Limits in both hierarchies, whichever one the process uses.
        half = (f"mount -t tmpfs none {GROUPS} && mkdir {GROUPS}/cpu && echo 50000 100000 > {GROUPS}/cpu.max && "
                f"echo 50000 > {GROUPS}/cpu/cpu.cfs_quota_us && echo 100000 > {GROUPS}/cpu/cpu.cfs_period_us")
        self.skip_unless_mounting(half)
        for transport in ("shm", "tcp", "inproc"):
            with self.subTest(transport=transport):
                self.assertEqual(self.spins_of("--transport", transport, before=mounted(half)), 0)

    @staticmethod
    def group_of_half_a_core():
        """A control group whose processes share half a core. OSError if it cannot be made."""
        if Path(f"{GROUPS}/cpu/cpu.cfs_quota_us").exists() or not Path(f"{GROUPS}/cgroup.controllers").exists():
            group, limit, text = Path(f"{GROUPS}/cpu/kolo-test-{os.getpid()}"), "cpu.cfs_quota_us", "50000"
        else:
            group, limit, text = Path(f"{GROUPS}/kolo-test-{os.getpid()}"), "cpu.max", "50000 100000"
        group.mkdir()
        try:
            (group / limit).write_text(text, encoding="ascii")
        except OSError:
            group.rmdir()
            raise
        return group

    def test_half_a_core_works_without_spinning(self):
        try:
            group = self.group_of_half_a_core()
        except OSError as error:
            self.skipTest(f"skipped: no control group of our own: {error}")
        try:
            for transport in ("shm", "tcp"):
                with self.subTest(transport=transport):
                    spins = self.spins_of("--transport", transport,
                                          preexec_fn=lambda: (group / "cgroup.procs").write_text(str(os.getpid())))
                    self.assertEqual(spins, 0)
        finally:
            wait_until(lambda: not (group / "cgroup.procs").read_text(), "the group to be empty")
            group.rmdir()


class Descriptors(Surroundings):
    def setUp(self):
        # UBSan opens a pipe to check whether an address is readable. Without a descriptor for it, every object looks invalid.
        if b"libubsan" in Path(BENCH).read_bytes():
            self.skipTest("skipped: the undefined behaviour sanitizer itself needs descriptors")

    def test_with_too_few_descriptors_shm_reports_how_to_raise_the_limit(self):
        failed = succeeded = 0
        for limit in range(6, 26):
            with self.subTest(limit=limit):
                code, output, errors = run(program("kolo-run"), "-n", "4", "sh", "-c", f'ulimit -n {limit} && exec "$@"', "sh", BENCH,
                                           "allreduce", *FEW, "--max-bytes", "8", "--transport", "shm")
                if code == 0:
                    succeeded += 1
                    self.assertIn("0 wrong", output)
                    continue
                failed += 1
                said = [line for line in errors.splitlines() if "kolo-bench: " in line]
                self.assertTrue(said, errors)
                for line in said:
                    self.assertRegex(line, rf"rank \d.*Too many open files \(this process may have {limit}: raise the limit with ulimit -n\)")
        self.assertGreater(failed, 0)
        self.assertGreater(succeeded, 0)

    def test_a_file_size_limit_is_reported(self):
        if b"libtsan" in Path(BENCH).read_bytes():
            self.skipTest("skipped: the thread sanitizer itself writes more than ulimit -f allows")
        for limit in (0, 64):
            code, _, errors = run("sh", "-c", f'ulimit -f {limit} && exec "$@"', "sh", BENCH, "allreduce", *FEW, "--ranks", "2")
            self.assertEqual((code, len(errors.splitlines())), (1, 1), errors)
            self.assertIn("File too large (see ulimit -f)", errors)

    def with_descriptors(self, limit, *words):
        return run("sh", "-c", f'ulimit -n {limit} && exec "$@"', "sh", *words)

    def test_the_launcher_reports_how_many_descriptors_it_needs(self):
        for ranks in (2, 4, 6):
            command = [BENCH, "allreduce", *FEW, "--max-bytes", "8", "--ranks", str(ranks), "--transport", "tcp"]
            for limit in (6, 8, 12):
                code, _, errors = self.with_descriptors(limit, *command)
                self.assertEqual((code, len(errors.splitlines())), (1, 1), errors)
                self.assertIn(f"Too many open files (this process may have {limit}: raise the limit with ulimit -n)", errors)
                found = re.search(rf"to launch {ranks} ranks it needs (\d+)$", errors.strip())
                self.assertTrue(found, errors)
            needed = int(found.group(1))
            code, _, errors = self.with_descriptors(needed, *command)
            self.assertEqual(code, 0, errors)
            code, _, errors = self.with_descriptors(needed - 1, *command)
            self.assertEqual((code, len(errors.splitlines())), (1, 1), errors)
            self.assertIn(f"to launch {ranks} ranks it needs {needed}", errors)

    def test_a_program_that_needs_fewer_descriptors_runs_with_fewer(self):
        code, _, errors = self.with_descriptors(28, program("kolo-run"), "-n", "6", "true")
        self.assertEqual((code, errors), (0, ""))
        code, _, errors = self.with_descriptors(28, program("kolo-run"), "-n", "6", "false")
        self.assertEqual(code, 1)
        self.assertRegex(errors, r"too few descriptors .* its store: .*may have 28.*to launch 6 ranks it needs \d+$")


class Stopped(Surroundings):
    STOPPED_S = 1  # the injected fault: the rank is stopped for this long

    def is_waited_for(self, transport, rank, iterations):
        """Stops the rank in the middle of a benchmark, which must then end well. False if the benchmark ended before the rank
        was stopped."""
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "lines.jsonl"
            process = start([BENCH, "allreduce", "--transport", transport, "--min-bytes", "64K", "--max-bytes", "64K", "--passes", "1",
                             "--seconds", "0.01", "--iterations", str(iterations), "--timeout", "120", "--json", str(file)])
            for line in process.stdout:
                if "bytes" in line:  # the table's head: the measurement begins
                    break
            wait_until(lambda: len(ranks_of(process)) == 2 or process.poll() is not None, "both ranks to be there")
            try:
                stopped = ranks_of(process)[rank]
                os.kill(stopped, signal.SIGSTOP)
            except (KeyError, OSError):
                process.communicate(timeout=PATIENCE_S)
                return False
            with self.assertRaises(subprocess.TimeoutExpired):
                process.wait(timeout=self.STOPPED_S)
            os.kill(stopped, signal.SIGCONT)
            _, errors = process.communicate(timeout=PATIENCE_S)
            self.assertEqual((process.returncode, errors), (0, ""))
            self.assertEqual([json.loads(line)["wrong"] for line in file.read_text().splitlines()], [0])
        return True

    def test_other_ranks_wait_for_a_rank_stopped_for_a_second(self):
        for transport, rank in (("shm", 1), ("tcp", 0)):
            with self.subTest(transport=transport, rank=rank):
                self.assertTrue(any(self.is_waited_for(transport, rank, iterations) for iterations in (4000, 8000, 16000)))

    def test_other_ranks_wait_for_a_stopped_rank_over_ucx(self):
        self.skip_without("ucx")
        self.assertTrue(any(self.is_waited_for("ucx", 0, iterations) for iterations in (4000, 8000, 16000)))

    def test_other_ranks_wait_for_a_stopped_rank_over_ofi(self):
        self.skip_without("ofi")
        self.assertTrue(any(self.is_waited_for("ofi", 1, iterations) for iterations in (4000, 8000, 16000)))


class Oversubscribed(Surroundings):
    def test_many_ranks_on_few_cores_give_right_results(self):
        two = set(sorted(os.sched_getaffinity(0))[:2])
        for transport in ("shm", "tcp", "inproc"):
            for ranks in ("4", "8", "16"):
                with self.subTest(transport=transport, ranks=ranks):
                    self.lines_of("--transport", transport, "--ranks", ranks, "--max-bytes", "2M",
                                  preexec_fn=lambda: os.sched_setaffinity(0, two))


if __name__ == "__main__":
    BENCH = sys.argv.pop(1)
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"):
        os.environ.pop(name, None)
    unittest.main(verbosity=2)
