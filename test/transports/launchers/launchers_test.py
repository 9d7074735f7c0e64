#!/usr/bin/env python3
"""Every launcher starts the ranks of a program without a flag and without a variable: on one host, and on two.

  launchers_test.py SUM_IN_PROCESSES [group...]

Hosts are network namespaces. A launcher that is not installed is a named skip; other versions than the system's are found by PATH.
"""

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

TESTS = Path(__file__).parents[2]
sys.path[:0] = [str(TESTS / "transports/hosts"), str(TESTS / "bench/cli")]

from hosts import Hosts, enter_private_namespaces, words_to_enter  # noqa: E402  (folders that are not packages)
from processes import living_with, wait_until  # noqa: E402

PROGRAM = ""
PATIENCE_S = 120


def programs(*names):
    """Paths of the programs of these names in all folders of PATH, each once."""
    found = {}
    for name in names:
        for folder in os.get_exec_path():
            path = Path(folder) / name
            if os.access(path, os.X_OK):
                found.setdefault(os.path.realpath(path), str(path))
    return list(found.values())


def version_of(program):
    done = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    return done.stdout + done.stderr


class Launchers(unittest.TestCase):
    def setUp(self):
        self.network = Hosts()
        self.addCleanup(self.network.end)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def two_hosts(self, *names):
        """Two hosts on one network, which know each other's names."""
        names = names or ("host1", "host2")
        table = "127.0.0.1 localhost\n::1 localhost\n" + "".join(f"10.9.0.{n} {name}\n" for n, name in enumerate(names, 1))
        hosts = [self.network.host(name, table) for name in names]
        for number, host in enumerate(hosts, 1):
            self.network.join(host, "net1", f"10.9.0.{number}/24")
        return hosts

    def run_on(self, host, command, **environment):
        """Exit code and output of a launcher on the host."""
        process = host.start(command, **environment)
        try:
            return process, process.communicate(timeout=PATIENCE_S)[0]
        except subprocess.TimeoutExpired:
            process.kill()
            raise

    def require_good(self, host, command, ranks=2, **environment):
        process, output = self.run_on(host, command, **environment)
        self.assertEqual(process.returncode, 0, output)
        for rank in range(ranks):
            self.assertIn(f"rank {rank} of {ranks}: the average is", output)

    def remote_shell(self):
        """A program in place of ssh: AGENT [-option...] HOST COMMAND..."""
        path = self.folder / "remote_shell"
        lines = ["#!/bin/sh", "while :; do case $1 in -*) shift;; *) break;; esac; done", "host=$1; shift", "case $host in"]
        for host in self.network.hosts:
            enter = shlex.join(words_to_enter(host.name, host.folder.name))
            lines.append(f'{host.name}) exec {enter} sh -c "$*";;')
        path.write_text("\n".join([*lines, "esac", ""]))
        path.chmod(0o755)
        return path

    def skip_unless(self, found, what):
        if not found:
            self.skipTest(f"{what} is not installed")


class OpenMpi(Launchers):
    def launchers(self):
        found = [(path, version_of(path)) for path in programs("mpirun.openmpi", "mpirun")]
        found = [(path, version) for path, version in found if "Open MPI" in version or "OpenRTE" in version]
        self.skip_unless(found, "Open MPI")
        for path, version in found:
            is_new = int(re.search(r"(\d+)\.", version).group(1)) >= 5
            with self.subTest(path=path, version=version.splitlines()[0]):
                yield path, "--prtemca" if is_new else "--mca", "plm_ssh_agent" if is_new else "plm_rsh_agent"

    def test_ranks_on_one_host_meet(self):
        host = self.two_hosts()[0]
        for path, _, _ in self.launchers():
            self.require_good(host, [path, "--allow-run-as-root", "--oversubscribe", "-n", "3", PROGRAM], 3)

    def test_ranks_on_two_hosts_meet(self):
        hosts = self.two_hosts()
        for path, option, agent in self.launchers():
            words = [path, "--allow-run-as-root", option, agent, self.remote_shell(), "--host", "host1:1,host2:1"]
            self.require_good(hosts[0], [*words, "-n", "2", PROGRAM])


    def without_pmix(self, launcher):
        """A program that starts another one, for which libpmix is an empty file."""
        path = self.folder / "without_pmix"
        prefix = Path(launcher).resolve().parents[1]
        files = " ".join(str(prefix / folder / "libpmix.so.2") for folder in ("lib", "lib/openmpi", "lib/pmix"))
        path.write_text(f"""#!/bin/sh
[ -n "$HIDDEN" ] || HIDDEN=yes exec unshare --mount "$0" "$@"
for file in $(/sbin/ldconfig -p | sed -n 's/.*libpmix[.]so[.]2 .* => //p') {files}; do
  [ ! -s "$file" ] || mount --bind /dev/null "$file" || exit
done
exec "$@"
""")
        path.chmod(0o755)
        return path

    def test_ranks_on_two_hosts_without_pmix_are_told_what_to_install_or_set(self):
        hosts = self.two_hosts()
        for path, option, agent in self.launchers():
            words = [path, "--allow-run-as-root", option, agent, self.remote_shell(), "--host", "host1:1,host2:1"]
            words += ["-n", "2", self.without_pmix(path), PROGRAM]
            process, output = self.run_on(hosts[0], words)
            self.assertNotEqual(process.returncode, 0, output)
            self.assertIn("mpirun started ranks on several hosts, and libpmix.so.2, by which they find each other, cannot be used", output)
            self.assertIn("install it (Debian: libpmix2), or set MASTER_ADDR and MASTER_PORT", output)
            self.require_good(hosts[0], words, MASTER_ADDR="10.9.0.1", MASTER_PORT="29500")


class Mpich(Launchers):
    def launchers(self):
        found = [(path, version_of(path)) for path in programs("mpiexec.mpich", "mpiexec.hydra", "mpirun")]
        found = [(path, version) for path, version in found if "HYDRA" in version]
        self.skip_unless(found, "MPICH")
        for path, version in found:
            with self.subTest(path=path, version=version.splitlines()[1]):
                yield path

    def test_ranks_on_one_host_meet(self):
        host = self.two_hosts()[0]
        for path in self.launchers():
            self.require_good(host, [path, "-n", "3", PROGRAM], 3)

    def test_ranks_on_two_hosts_meet(self):
        hosts = self.two_hosts()
        for path in self.launchers():
            words = [path, "-launcher", "ssh", "-launcher-exec", self.remote_shell(), "-hosts", "host1,host2"]
            self.require_good(hosts[0], [*words, "-n", "2", PROGRAM])


SLURM_CONF = """\
ClusterName=test
SlurmctldHost=host1
SlurmUser=root
AuthType=auth/none
CredType=cred/none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/linear
SchedulerType=sched/builtin
SchedulerParameters=sched_interval=1
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
ReturnToService=2
KillWait=1
SlurmctldPidFile=FOLDER/controller.pid
SlurmctldLogFile=FOLDER/controller.log
StateSaveLocation=FOLDER
SlurmdPidFile=FOLDER/%n/daemon.pid
SlurmdLogFile=FOLDER/%n/daemon.log
SlurmdSpoolDir=FOLDER/%n
TmpFS=FOLDER/%n
NodeName=host[1-2] CPUs=2
PartitionName=all Nodes=ALL Default=YES State=UP OverSubscribe=FORCE
"""


class Slurm(Launchers):
    def setUp(self):
        super().setUp()
        self.skip_unless(all(programs(name) for name in ("srun", "slurmctld", "slurmd")), "slurm-wlm")
        self.hosts = self.two_hosts()
        self.file = self.folder / "slurm.conf"
        self.file.write_text(SLURM_CONF.replace("FOLDER", str(self.folder)))
        self.start_daemon(self.hosts[0], "slurmctld", "-D", "-c")
        for host in self.hosts:
            (self.folder / host.name).mkdir()
            self.start_daemon(host, "slurmd", "-D", "-N", host.name)

    def start_daemon(self, host, *words):
        daemon = host.start([*words, "-f", self.file])

        def end():
            daemon.kill()
            daemon.communicate()

        self.addCleanup(end)

    def require_good_step(self, *words, ranks=2):
        self.require_good(self.hosts[0], ["srun", *words, PROGRAM], ranks, SLURM_CONF=str(self.file))

    def test_ranks_on_one_and_on_two_hosts_meet(self):
        self.require_good_step("-N", "1", "-n", "2")
        self.require_good_step("-N", "2", "-n", "4", ranks=4)

    def test_ranks_of_a_step_with_pmi2_meet(self):
        self.require_good_step("--mpi=pmi2", "-N", "2")

    def test_ranks_of_a_step_with_pmix_meet(self):
        listed = subprocess.run(["srun", "--mpi=list"], capture_output=True, text=True, timeout=PATIENCE_S, check=False,
                                env=os.environ | {"SLURM_CONF": str(self.file)})
        self.skip_unless("pmix" in listed.stdout + listed.stderr, "Slurm's plugin of PMIx")
        self.require_good_step("--mpi=pmix", "-N", "2", "-n", "4", ranks=4)

    def test_two_steps_of_one_allocation_do_not_meet(self):
        script = f'srun --overlap -N 2 {PROGRAM} & srun --overlap -N 2 {PROGRAM} & wait'
        process, output = self.run_on(self.hosts[0], ["salloc", "-N", "2", "sh", "-c", script], SLURM_CONF=str(self.file))
        self.assertEqual(process.returncode, 0, output)
        self.assertEqual(output.count("of 2: the average is 1.5"), 4, output)


class Torchrun(Launchers):
    def words(self):
        (path,) = programs("torchrun")[:1] or [None]
        self.skip_unless(path, "torchrun")
        words = [path, "--no_python", "--nproc_per_node"]  # the spelling of all versions
        # Debian's torchrun 1.13 fails with its Python 3.11, whatever it starts.
        works = subprocess.run([*words, "1", "true"], capture_output=True, timeout=PATIENCE_S, check=False).returncode == 0
        self.skip_unless(works, "a torchrun that can start a program")
        return words

    def test_ranks_on_one_and_on_two_hosts_meet(self):
        words = self.words()
        self.require_good(self.two_hosts()[0], [*words, "2", PROGRAM])
        hosts = self.two_hosts()
        agents = [
            host.start([*words, "1", "--nnodes", "2", "--node_rank", number, "--master_addr", "host1", PROGRAM])
            for number, host in enumerate(hosts)
        ]
        for rank, agent in enumerate(agents):
            output = agent.communicate(timeout=PATIENCE_S)[0]
            self.assertEqual(agent.returncode, 0, output)
            self.assertIn(f"rank {rank} of 2", output)


class Kubernetes(Launchers):
    def test_pods_of_an_indexed_job_meet_at_the_first(self):
        domain = "kolo.default.svc.cluster.local"
        pods = [
            self.network.host("train-0", f"127.0.0.1 localhost\n10.9.0.1 train-0.{domain} train-0\n"),
            # Of the other pods' names the cluster's name service knows the long ones.
            self.network.host("train-1", f"127.0.0.1 localhost\n10.9.0.2 train-1.{domain} train-1\n10.9.0.1 train-0.{domain}\n"),
        ]
        for number, pod in enumerate(pods, 1):
            self.network.join(pod, "net1", f"10.9.0.{number}/24")
        ranks = [pod.start([PROGRAM], JOB_COMPLETION_INDEX=str(rank), WORLD_SIZE="2") for rank, pod in enumerate(pods)]
        for rank, process in enumerate(ranks):
            output = process.communicate(timeout=PATIENCE_S)[0]
            self.assertEqual(process.returncode, 0, output)
            self.assertIn(f"rank {rank} of 2", output)


SSHD_CONFIG = """\
HostKey FOLDER/key
AuthorizedKeysFile FOLDER/key.pub
PidFile none
StrictModes no
UsePAM no
"""
SSH_CONFIG = """\
IdentityFile FOLDER/key
UserKnownHostsFile /dev/null
StrictHostKeyChecking no
LogLevel ERROR
"""


class Ssh(Launchers):
    """kolo-run --hosts, from the first host, whose ranks it starts itself, to the second, which runs an SSH server."""

    def setUp(self):
        super().setUp()
        sshd = shutil.which("sshd", path=os.environ["PATH"] + ":/usr/sbin")
        self.skip_unless(sshd and shutil.which("ssh"), "an SSH server")
        self.kolo_run = Path(PROGRAM).parent / "kolo-run"
        self.skip_unless(self.kolo_run.exists(), "kolo-run, a part of bench,")
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.folder / "key"], check=True)
        for name, text in (("sshd", SSHD_CONFIG), ("ssh", SSH_CONFIG), ("hosts", "host1 slots=2\n# the other\nhost2 slots=2\n")):
            (self.folder / name).write_text(text.replace("FOLDER", str(self.folder)))
        os.makedirs("/run/sshd", exist_ok=True)
        self.hosts = self.two_hosts()
        self.server = self.hosts[1].start([sshd, "-D", "-e", "-f", self.folder / "sshd"])
        self.addCleanup(lambda: (self.server.kill(), self.server.communicate()))
        self.server_is_ready()

    def server_is_ready(self):
        for line in self.server.stdout:
            if "listening on 0.0.0.0" in line:
                return
        self.fail("sshd ended")

    def words(self, *words):
        return [self.kolo_run, "--hosts", self.folder / "hosts", "--ssh", f"ssh -F {self.folder}/ssh", *words]

    def test_ranks_on_two_hosts_meet(self):
        self.require_good(self.hosts[0], self.words(PROGRAM), 4)
        self.require_good(self.hosts[0], self.words("-n", "3", PROGRAM), 3)

    def test_words_and_variables_arrive_as_they_are(self):
        script = 'echo "$(hostname) $RANK $LOCAL_RANK/$LOCAL_WORLD_SIZE of $WORLD_SIZE: $1, $OMP_TEST, $PWD"'
        odd = "it's $HOME \\ \"q\" *"
        process, output = self.run_on(self.hosts[0], self.words("sh", "-c", script, "sh", odd), OMP_TEST=odd)
        self.assertEqual(process.returncode, 0, output)
        expected = [f"[{r}] host{r // 2 + 1} {r} {r % 2}/2 of 4: {odd}, {odd}, {os.getcwd()}" for r in range(4)]
        self.assertEqual(sorted(output.splitlines()), expected)

    def test_a_failed_rank_ends_the_ranks_of_all_hosts(self):
        process, output = self.run_on(self.hosts[0], self.words("sh", "-c", "[ $RANK = 3 ] && exit 7; exec sleep 1000"))
        self.assertEqual(process.returncode, 7, output)
        self.assertIn("rank 3 exited with code 7; the other rank was ended", output)
        self.assertIn("host host2 exited with code 7; the other host was ended", output)
        self.assertEqual(len(output.splitlines()), 2, output)

    def test_neither_a_rank_nor_its_child_in_another_session_is_left_when_kolo_run_ends(self):
        mark = f"mark {self.id()}"
        script = "setsid sh -c 'sleep 1000 & wait' \"$0\" >/dev/null 2>&1 & echo ready; while :; do wait; done"
        for request in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
            with self.subTest(request=request):
                job = self.hosts[0].start(self.words("sh", "-c", script, mark))
                for _ in range(4):
                    self.assertIn("ready", job.stdout.readline())
                job.send_signal(request)
                job.communicate(timeout=PATIENCE_S)
                wait_until(lambda: not living_with(mark), "the end of all ranks")

    def test_a_host_that_cannot_be_reached_is_named(self):
        self.server.kill()
        self.server.wait()
        process, output = self.run_on(self.hosts[0], self.words("sleep", "1000"))
        self.assertEqual(process.returncode, 255, output)
        self.assertIn("host host2 exited with code 255", output)
        self.assertIn("is it reached by ssh without a password?", output)

    def test_a_wrong_file_of_hosts_is_refused(self):
        wrong = {"host1 slot=2": "'host1 slot=2' is not a host", "host1\nhost1": "line 2: the host host1 comes twice", "": "has 0 slots",
                 "host1 slots=0": "N from 1 to", "-oProxyCommand=x": "is not a host", "host1 slots=2 x": "is not a host"}
        for text, about in wrong.items():
            with self.subTest(text=text):
                (self.folder / "hosts").write_text(text)
                process, output = self.run_on(self.hosts[0], self.words("true"))
                self.assertEqual((process.returncode, len(output.splitlines())), (2, 1), output)
                self.assertIn(about, output)


if __name__ == "__main__":
    enter_private_namespaces()
    PROGRAM = sys.argv.pop(1)
    result = unittest.main(exit=False, verbosity=2).result
    if not result.wasSuccessful():
        sys.exit(1)
    sys.exit(77 if len(result.skipped) == result.testsRun else 0)
