#!/usr/bin/env python3
"""Errors of kolo-bench: each is printed once, clearly, with an exit code, and nothing is left behind.

  failure_test.py KOLO_BENCH [test...]
"""

import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from processes import PATIENCE_S, guardian_of, ranks_of, wait_until

BENCH = ""
FEW = ["--max-bytes", "8", "--iterations", "4", "--passes", "2", "--warmup", "1"]
FOREVER = ["--max-bytes", "8", "--iterations", "1600000", "--passes", "100"]


def start(words, environment=None, program=None):
    return subprocess.Popen([*(program or [BENCH]), *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            env={**os.environ, **(environment or {})})


def run(*words, program=None, **environment):
    process = start(words, environment, program)
    output, errors = process.communicate(timeout=PATIENCE_S)
    return process.returncode, output, errors


def by_hand(rank, size, **more):
    """The environment of one rank that was started by hand, without kolo-run."""
    return {"RANK": str(rank), "WORLD_SIZE": str(size), "LOCAL_RANK": str(rank), "LOCAL_WORLD_SIZE": str(size), **more}


def shared_memory_files():
    return {entry.name for entry in Path("/dev/shm").iterdir() if "kolo" in entry.name}


class Complaint(unittest.TestCase):
    def assert_complains(self, code, about, *words, **environment):
        found, _, errors = run(*words, **environment)
        self.assertEqual(found, code, errors)
        self.assertEqual(len(errors.splitlines()), 1, errors)
        self.assertIn(about, errors)


class Mistakes(Complaint):
    def test_an_error_names_the_flag_and_its_values(self):
        for about, words in {
            "a command is missing; expected one of": [],
            "--ranks 0: expected 1 to 1024": ["allreduce", "--ranks", "0"],
            "--ranks 2.5: expected a whole number": ["allreduce", "--ranks", "2.5"],
            "--factor x: expected a whole number": ["allreduce", "--factor", "x"],
            "--factor: expected 2 to 2^32 - 1": ["allreduce", "--factor", "-1"],
            "--seconds soon: expected a number": ["allreduce", "--seconds", "soon"],
            "--max-bytes needs a value": ["allreduce", "--max-bytes"],
            "--max-bytes: '3x' is not a size": ["allreduce", "--max-bytes", "3x"],
            "--segment-bytes 7: expected 0 (the default) or 64 to": ["allreduce", "--segment-bytes", "7"],
            "--timeout: expected": ["allreduce", "--timeout", "nan"],
            "--seconds: expected": ["allreduce", "--seconds", "inf"],
            "--json: expected a file": ["allreduce", "--json", ""],
            "this machine has": ["allreduce", "--max-bytes", "1000000G"],
            "plot needs a file of JSON lines": ["plot"],
            "--iterations 32769: at most 32768, which is 16384 in each of 2 passes":
                ["allreduce", "--iterations", "32769", "--passes", "2"],
            "ps needs push, pull or push-pull": ["ps"],
            "allreduce has no option '--min-byte'; did you mean --min-bytes?; see": ["allreduce", "--min-byte", "8"],
            "ps push has no option '--zeal'; see": ["ps", "push", "--zeal"],
            "--device tpu: expected cuda": ["allreduce", "--device", "tpu"],
            "--bytes 1000000 GiB: the buffers of 2 ranks take": ["allreduce", "--bytes", "1000000G"],
            "--bytes takes the place of --min-bytes": ["p2p", "latency", "--min-bytes", "8", "--bytes", "8"],
            "there is no command 'allreduc'; expected one of": ["allreduc"],
            "leave --allocated and --overlap out": ["allreduce", "--device", "cuda", "--allocated"],
            "--level segments --device cuda: channels and bare libraries": ["p2p", "latency", "--device", "cuda", "--level", "segments"],
            "--servers 2: expected 0 or more, and at least one of the 2 ranks must be a worker": ["ps", "pull", "--servers", "2"],
        }.items():
            with self.subTest(words=words):
                self.assert_complains(2, about, *words)

    def test_a_machine_without_a_device_is_reported(self):
        for words in (["allreduce"], ["p2p", "latency"], ["ps", "push-pull"]):
            code, output, errors = run(*words, "--device", "cuda", *FEW)
            if code == 0:
                self.skipTest("there is a device here")
            self.assertEqual((code, output, len(errors.splitlines())), (1, "", 1), errors)
            self.assertIn("--device cuda: ", errors)

    def test_help_that_cannot_be_written_is_a_failure(self):
        for words in ("--help", "--version", "allreduce --help", "transports", f"allreduce {' '.join(FEW)}"):
            for where, about in ((">&-", "standard output is closed"), (">/dev/full", "cannot write: ")):
                with self.subTest(words=words, where=where):
                    done = subprocess.run(["sh", "-c", f'"{BENCH}" {words} {where}'], capture_output=True, text=True,
                                          timeout=PATIENCE_S, check=False)
                    self.assertEqual((done.returncode, len(done.stderr.splitlines())), (1, 1), done.stderr)
                    self.assertIn(about, done.stderr)

    def test_a_closed_reader_is_a_failure(self):
        for words in (["allreduce", *FEW], ["allreduce", *FEW, "--transport", "inproc"], ["allreduce", *FEW, "--json", "-"],
                      ["p2p", "latency", *FEW], ["explain", "allreduce", *FEW], ["transports"], ["allreduce", "--help"],
                      ["limits", "--quick", "--only", "tcp"]):
            with self.subTest(words=words):
                reading, writing = os.pipe()
                os.close(reading)
                with open(writing, "wb") as nobody:
                    done = subprocess.run([BENCH, *words], stdout=nobody, stderr=subprocess.PIPE, text=True, timeout=PATIENCE_S,
                                          check=False)
                said = [line for line in done.stderr.splitlines() if not line.startswith("#")]  # with --json - the table is on standard error
                self.assertEqual((done.returncode, len([line for line in said if "kolo-bench: " in line])), (1, 1), done.stderr)
                self.assertIn("cannot write: Broken pipe", done.stderr)

    def test_help_uses_the_words_of_this_program(self):
        _, output, errors = run("allreduce", "--help")
        self.assertRegex(output, r"--min-bytes SIZE \[8\] +Smallest", errors)
        self.assertIn("Sizes are rounded down to whole elements", output)
        for word in ("Excludes", "TEXT=", "INT=", "FLOAT="):
            self.assertNotIn(word, output)

    def test_iterations_that_do_not_divide_into_passes_are_reported(self):
        for words in (["allreduce"], ["allreduce", "--overlap"], ["p2p", "latency"]):
            _, output, errors = run(*words, "--transport", "inproc", *FEW, "--iterations", "5", "--passes", "4")
            self.assertIn("# --iterations 5: 1 in each of 4 passes, 4 in all", output, errors)
            self.assertNotIn("--iterations", "".join(run(*words, "--transport", "inproc", *FEW, "--iterations", "8", "--passes", "4")[1:]))

    def test_a_long_transport_keeps_the_columns_below_their_headings(self):
        for words in (["allreduce"], ["allreduce", "--overlap"], ["p2p", "latency"]):
            with self.subTest(words=words):
                _, output, errors = run(*words, "--transport", "tcp", "--shape", "1Gbit,1us", *FEW)
                head, line = ([line for line in output.splitlines() if re.match(start, line)][0] for start in ("# +bytes", " +8 "))
                ends = {match.end() for match in re.finditer(r"\S+", line)}
                self.assertTrue(any(head.index(" over") + 5 == end for end in ends), output + errors)
                self.assertEqual(len(head), len(line.rstrip()), output)

    def test_version_is_printed(self):
        code, output, _ = run("--version")
        self.assertEqual(code, 0)
        self.assertRegex(output, r"^kolo \d+\.\d+\.\d+, commit \S+$")

    def test_the_last_of_repeated_options_counts(self):
        code, output, errors = run("allreduce", *FEW, "--ranks", "3", "--ranks", "2")
        self.assertEqual(code, 0, errors)
        self.assertIn("# kolo-bench allreduce: 2 ranks", output)

    def test_an_algorithm_that_the_peer_lacks_is_refused_before_ranks_start(self):
        if "not among the peers" in run("allreduce", "--against", "gloo", *FEW)[2]:
            self.skipTest("gloo is not in this build")
        self.assert_complains(2, "gloo has no algorithm 'pigeon' for all_reduce; it has ring, bcube", "allreduce", "--against",
                              "gloo:pigeon")
        self.assert_complains(2, "gloo has no algorithm 'bcube' for broadcast; it offers no choice", "broadcast", "--against", "gloo:bcube")

    def test_limits_with_several_ranks_are_refused(self):
        self.assert_complains(2, "limits measures the whole machine", "limits", "--quick", **by_hand(0, 2))

    def test_output_that_cannot_be_written_is_a_failure(self):
        code, _, errors = run("allreduce", *FEW, "--json", "/dev/full")
        self.assertEqual(code, 1, errors)
        self.assertIn("--json /dev/full: cannot write: No space left on device", errors)
        with open("/dev/full", "w", encoding="ascii") as full:
            done = subprocess.run([BENCH, "allreduce", *FEW], stdout=full, stderr=subprocess.PIPE, text=True, timeout=PATIENCE_S,
                                  check=False)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("the table: cannot write: No space left on device", done.stderr)

    def test_plot_names_files_without_rows(self):
        with tempfile.TemporaryDirectory() as folder:
            for text, about in ((b"", "nothing to draw"), (b"\xff\xfe", "is not text"), (b"{", ":1: is not a JSON line"),
                                (b'{"library": "kolo", "bytes": 8}', ":1: lacks 'transport'"),
                                (b'{"library": "kolo", "bytes": "8"}', ":1: lacks"), (b"[1]\n7\nnull", "nothing to draw")):
                path = Path(folder) / "lines.jsonl"
                path.write_bytes(text)
                with self.subTest(text=text):
                    self.assert_complains(2, about, "plot", str(path), "--out", folder + "/plots")
            self.assert_complains(2, "absent: No such file or directory", "plot", folder + "/absent")


class Settings(Complaint):
    BAD = {"KOLO_TRANSPORT": "pigeon", "KOLO_WAIT": "sleep", "KOLO_SPIN_US": "-1", "KOLO_SEGMENT_BYTES": "64KB",
           "KOLO_TCP_PORTS": "9-8", "KOLO_HELLO_TIMEOUT_MS": "0", "KOLO_TCP_HOST": "192.0.2.1", "KOLO_TCP_ADVERTISE": "a b", "KOLO_TCP_CONGESTION": "nonesuch"}

    # Variables that kolo-run does not check for its program.
    BAD_HERE = {"KOLO_TIMELINE": "/no/such/folder/t.json", "KOLO_TRACE": "/no/such/folder/t", "KOLO_FAULT": "die@rank=99"}

    def test_a_wrong_variable_is_refused_once_before_ranks_start(self):
        for name, value in {**self.BAD, **self.BAD_HERE}.items():
            with self.subTest(name=name):
                self.assert_complains(2, name, "allreduce", *FEW, **{name: value})

    def test_kolo_run_refuses_a_wrong_variable_too(self):
        for name, value in self.BAD.items():
            with self.subTest(name=name):
                code, output, errors = run("-n", "2", "echo", "started", program=[str(Path(BENCH).parent / "kolo-run")], **{name: value})
                self.assertEqual((code, output, len(errors.splitlines())), (2, "", 1), errors)
                self.assertIn(name, errors)

    def test_a_transport_of_threads_works_wherever_it_is_named(self):
        code, output, errors = run("allreduce", *FEW, KOLO_TRANSPORT="inproc")
        self.assertEqual(code, 0, errors)
        self.assertIn("inproc", output)
        self.assert_complains(2, "inproc: it joins the threads of one process", "allreduce", "--transport", "inproc", **by_hand(0, 2))


class Ranks(unittest.TestCase):
    def setUp(self):
        self.shared_memory = shared_memory_files()

    def tearDown(self):
        self.assertEqual(shared_memory_files() - self.shared_memory, set())

    def start_running(self, *words):
        """Starts a benchmark; returns the process and its ranks' process ids."""
        process = start(["allreduce", *FOREVER, *words])
        for line in process.stdout:
            if "bytes" in line:
                break
        number = int(words[words.index("--ranks") + 1]) if "--ranks" in words else 2

        def are_there():
            if process.poll() is not None:
                raise AssertionError(f"it ended: {process.communicate()[1]}")
            return len(ranks_of(process)) == number

        wait_until(are_there, "all ranks to be there")
        return process, ranks_of(process)

    def end_of(self, process, ranks):
        """The exit code and kolo-bench's own error lines, after all ranks have gone."""
        _, errors = process.communicate(timeout=PATIENCE_S)
        wait_until(lambda: not any(Path(f"/proc/{rank}").exists() for rank in ranks.values()), "the ranks to go")
        return process.returncode, [line for line in errors.splitlines() if "kolo-bench: " in line]

    def test_a_killed_rank_is_reported_once_with_a_summary(self):
        for transport, more in (("shm", []), ("tcp", []), ("shm", ["--ranks", "3"])):
            with self.subTest(transport=transport, more=more):
                process, ranks = self.start_running("--transport", transport, *more)
                os.kill(ranks[1], signal.SIGKILL)
                code, lines = self.end_of(process, ranks)
                self.assertEqual(code, 128 + signal.SIGKILL, lines)
                self.assertIn("rank 1 was killed by signal 9 (Killed)", lines[-1])
                self.assertLessEqual(len(lines), 2, lines)
                self.assertTrue(all("rank 1" in line for line in lines), lines)

    def test_a_stopped_rank_is_named_by_a_waiting_rank(self):
        for transport in ("shm", "tcp"):
            with self.subTest(transport=transport):
                process, ranks = self.start_running("--transport", transport, "--timeout", "3")
                os.kill(ranks[1], signal.SIGSTOP)
                code, lines = self.end_of(process, ranks)
                self.assertEqual((code, len(lines)), (1, 1), lines)
                self.assertRegex(lines[0], r"rank 0.* rank 1.*(alive|stopped)")

    def test_an_interrupt_is_reported_without_the_signal(self):
        process, ranks = self.start_running("--transport", "shm")
        process.send_signal(signal.SIGINT)
        code, lines = self.end_of(process, ranks)
        self.assertEqual((code, lines), (130, ["kolo-bench: interrupted"]))

    def test_a_rank_0_stopped_while_it_measures_the_limit_is_named(self):
        process = start(["allreduce", "--transport", "shm", "--max-bytes", "64M", "--min-bytes", "64M", "--passes", "1", "--seconds", "60",
                         "--timeout", "2"])
        for line in process.stdout:
            if "bytes" in line:
                break
        ranks = wait_until(lambda: len(ranks_of(process)) == 2 and ranks_of(process), "both ranks to be there")
        os.kill(ranks[0], signal.SIGSTOP)
        code, lines = self.end_of(process, ranks)
        self.assertEqual((code, len(lines)), (1, 1), lines)
        self.assertRegex(lines[0], "rank 1: .*rank 0")

    def test_closed_standard_descriptors_are_not_given_to_sockets(self):
        for closed in ("<&-", ">&-", "<&- >&-", "2>&-"):  # the rows of --json are complete in each case
            for transport in ("inproc", "shm", "tcp"):
                with self.subTest(closed=closed, transport=transport), tempfile.TemporaryDirectory() as folder:
                    words = f'"{BENCH}" allreduce {" ".join(FEW)} --transport {transport} --json {folder}/lines.jsonl {closed}'
                    done = subprocess.run(["sh", "-c", words], capture_output=True, text=True, timeout=PATIENCE_S, check=False)
                    self.assertEqual((done.returncode, done.stderr), (0, ""))
                    self.assertGreater(len(Path(folder, "lines.jsonl").read_text().splitlines()), 0)

    def test_a_killed_guardian_ends_no_other_process(self):
        with tempfile.TemporaryDirectory() as folder:
            gate = Path(folder) / "gate"
            gate.touch()
            process = start(["-n", "2", "sh", "-c", f"while test -e {gate}; do :; done"], program=[str(Path(BENCH).parent / "kolo-run")])
            wait_until(lambda: len(ranks_of(process)) == 2, "both ranks to be there")
            os.kill(wait_until(lambda: guardian_of(process), "the guardian to be there"), signal.SIGKILL)
            gate.unlink()
            _, errors = process.communicate(timeout=PATIENCE_S)
            self.assertEqual((process.returncode, errors), (0, ""))

    def test_threads_report_an_error_once(self):
        process = start(["allreduce", *FEW, "--transport", "inproc", "--ranks", "3", "--json", "/dev/full"])
        _, errors = process.communicate(timeout=PATIENCE_S)
        self.assertEqual((process.returncode, len(errors.splitlines())), (1, 1), errors)
        self.assertIn("No space left", errors)

    def test_ranks_of_a_launcher_report_an_error_of_one_rank_once(self):
        code, _, errors = run("-n", "3", BENCH, "allreduce", *FEW, "--json", "/no/such/folder/file",
                              program=[str(Path(BENCH).parent / "kolo-run")])
        said = [line for line in errors.splitlines() if "kolo-bench: " in line]
        self.assertNotEqual(code, 0)
        self.assertEqual(len(said), 1, errors)
        self.assertIn("/no/such/folder/file: cannot write there: No such file or directory", said[0])

    def test_ranks_of_a_launcher_report_wrong_arguments_once(self):
        for words, about in ((["allreduce", "--rank", "3"], "no option '--rank'"), (["allreduce", "--ranks", "2"], "contradicts"),
                             (["allreduce", "--transport", "inproc"], "joins the threads of one process")):
            with self.subTest(words=words):
                code, _, errors = run("-n", "3", BENCH, *words, program=[str(Path(BENCH).parent / "kolo-run")])
                said = [line for line in errors.splitlines() if "kolo-bench: " in line]
                self.assertEqual((code, len(said)), (2, 1), errors)
                self.assertIn(about, said[0])

    def test_a_rank_that_never_comes_is_named(self):
        with tempfile.TemporaryDirectory() as folder:
            code, _, errors = run("allreduce", "--timeout", "0.2", **by_hand(0, 2, KOLO_STORE=f"file:{folder}/store"))
        self.assertEqual((code, len(errors.splitlines())), (1, 1), errors)
        self.assertIn("rank 1 of 2 to join the benchmark", errors)
        self.assertIn("start it", errors)

    def test_a_rank_that_never_comes_to_a_master_port_is_named(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = str(free.getsockname()[1])
        code, _, errors = run("allreduce", "--timeout", "0.2", **by_hand(0, 2, MASTER_ADDR="127.0.0.1", MASTER_PORT=port))
        self.assertEqual((code, len(errors.splitlines())), (1, 1), errors)
        self.assertIn("rank 1 of 2 to join the benchmark", errors)

    def test_a_rank_0_that_never_comes_is_reported_with_the_stores_address(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = str(free.getsockname()[1])
        code, _, errors = run("allreduce", "--timeout", "0.2", **by_hand(1, 2, MASTER_ADDR="127.0.0.1", MASTER_PORT=port))
        self.assertEqual((code, len(errors.splitlines())), (1, 1), errors)
        self.assertIn(f"127.0.0.1:{port}", errors)
        self.assertIn("start rank 0", errors)

    def test_a_port_in_use_is_named(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            code, _, errors = run("allreduce", "--timeout", "5", **by_hand(0, 2, MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port)))
        self.assertEqual((code, len(errors.splitlines())), (1, 1), errors)
        self.assertIn(f"cannot listen on port {port} of 127.0.0.1", errors)
        self.assertIn("another program has it, choose another port", errors)


if __name__ == "__main__":
    BENCH = sys.argv.pop(1)
    unittest.main(verbosity=2)
