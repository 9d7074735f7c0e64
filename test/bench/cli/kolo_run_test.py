#!/usr/bin/env python3
"""Contract of kolo-run: output, exit codes, signals, and no leftovers.

  kolo_run_test.py KOLO_RUN [test...]
"""

import fcntl
import json
import os
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import unittest
from pathlib import Path

from processes import PATIENCE_S, guardian_of, living_with, ranks_of, wait_until

F_GETPIPE_SZ = 1032  # in the module fcntl since Python 3.10
KOLO_RUN = ""


def start(*words, **options):
    # Python's tests may run with SIGINT ignored; ranks inherit that.
    return subprocess.Popen([KOLO_RUN, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler), **options)


def run(*words, **options):
    process = start(*words, **options)
    output, errors = process.communicate(timeout=PATIENCE_S)
    return process.returncode, output, errors


def living_groups():
    """The process groups that have a member other than a zombie."""
    groups = set()
    for entry in Path("/proc").iterdir():
        try:
            state, _, group = (entry / "stat").read_text().rsplit(")", 1)[1].split()[:3]
        except (OSError, IndexError, ValueError):
            continue
        if state not in "ZX":
            groups.add(int(group))
    return groups


class Output(unittest.TestCase):
    def test_every_line_has_its_rank_and_streams_stay_separate(self):
        code, output, errors = run("-n", "3", "sh", "-c", "echo out of $RANK; echo err of $RANK >&2")
        self.assertEqual(code, 0)
        self.assertEqual(sorted(output.splitlines()), [f"[{r}] out of {r}" for r in range(3)])
        self.assertEqual(sorted(errors.splitlines()), [f"[{r}] err of {r}" for r in range(3)])

    def test_lines_stay_whole_while_all_ranks_write(self):
        program = "import sys\nfor i in range(2000): sys.stdout.write('x' * (i % 97) + '|\\n')"
        code, output, _ = run("-n", "4", "python3", "-c", program)
        self.assertEqual(code, 0)
        lines = output.splitlines()
        self.assertEqual(len(lines), 8000)
        for rank in range(4):
            prefix = f"[{rank}] "
            mine = [line[len(prefix):] for line in lines if line.startswith(prefix)]
            self.assertEqual(mine, ["x" * (i % 97) + "|" for i in range(2000)])

    def test_output_that_cannot_be_written_is_reported_and_fails(self):
        with open("/dev/full", "w", encoding="utf-8") as full:
            done = subprocess.run([KOLO_RUN, "-n", "2", "sh", "-c", "echo said"], stdout=full, stderr=subprocess.PIPE, text=True,
                                  timeout=PATIENCE_S, check=False)
        self.assertEqual((done.returncode, len(done.stderr.splitlines())), (1, 1), done.stderr)
        self.assertIn("No space left on device", done.stderr)

    def test_closed_or_full_output_fails_whatever_is_written(self):
        for words in ("--help", "--version", "-n 2 echo said"):
            for output in (">&-", ">/dev/full"):
                with self.subTest(words=words, output=output):
                    done = subprocess.run(["sh", "-c", f'"{KOLO_RUN}" {words} {output}'], stderr=subprocess.PIPE, text=True,
                                          timeout=PATIENCE_S, check=False)
                    self.assertEqual((done.returncode, len(done.stderr.splitlines())), (1, 1), done.stderr)
                    self.assertIn("cannot write", done.stderr)
                    if output == ">/dev/full":
                        self.assertIn("No space left on device", done.stderr)

    def test_a_short_stack_is_enough(self):
        done = subprocess.run(["sh", "-c", f'ulimit -s 64; "{KOLO_RUN}" -n 1 echo said'], capture_output=True, text=True,
                              timeout=PATIENCE_S, check=False)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "[0] said\n", ""))

    def test_version_is_printed(self):
        code, output, _ = run("--version")
        self.assertEqual(code, 0)
        self.assertRegex(output, r"^kolo \d+\.\d+\.\d+$")

    def test_a_last_line_without_newline_is_not_lost(self):
        _, output, _ = run("-n", "1", "printf", "no newline")
        self.assertEqual(output, "[0] no newline\n")

    def test_plain_output_of_rank_0_has_no_prefix(self):
        _, output, _ = run("-n", "2", "--plain", "sh", "-c", "echo $RANK")
        self.assertEqual(sorted(output.splitlines()), ["0", "[1] 1"])

    def test_a_rank_gets_its_number_in_the_environment(self):
        _, output, _ = run("-n", "2", "env")
        for rank in range(2):
            found = dict(line[4:].split("=", 1) for line in output.splitlines() if line.startswith(f"[{rank}] ") and "=" in line)
            self.assertEqual((found["RANK"], found["WORLD_SIZE"]), (str(rank), "2"))
            self.assertEqual((found["LOCAL_RANK"], found["LOCAL_WORLD_SIZE"]), (str(rank), "2"))
            self.assertRegex(found["KOLO_STORE"], r"^tcp://127\.0\.0\.1:\d+$")
            self.assertNotEqual(found["KOLO_STORE"].rsplit(":", 1)[1], found["MASTER_PORT"])

    def test_the_master_port_can_be_bound_by_a_rank(self):
        program = ("import os, socket; s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1); "
                   "s.bind((os.environ['MASTER_ADDR'], int(os.environ['MASTER_PORT']))); s.listen(); print('bound')")
        _, output, errors = run("-n", "1", "python3", "-c", program)
        self.assertEqual(output, "[0] bound\n", errors)

    def test_ranks_have_no_input(self):
        self.assertEqual(run("-n", "2", "cat")[:2], (0, ""))


class Endings(unittest.TestCase):
    def test_the_exit_code_of_the_failed_rank_is_the_jobs(self):
        code, _, errors = run("-n", "3", "sh", "-c", "[ $RANK = 1 ] && exit 7; exec sleep 1000")
        self.assertEqual(code, 7)
        self.assertIn("rank 1 exited with code 7; the other 2 ranks were ended", errors)

    def test_a_killed_rank_is_named_with_its_signal(self):
        code, _, errors = run("-n", "4", "sh", "-c", "[ $RANK = 2 ] && kill -9 $$; exec sleep 1000")
        self.assertEqual(code, 128 + 9)
        self.assertIn("rank 2 was killed by signal 9 (Killed); the other 3 ranks were ended", errors)

    def run_where_rank_0_ends_after_rank_1(self, first, then):
        # Rank 0 waits until rank 1 is a zombie or reaped, so that the launcher learns of rank 1 first. Closed files of rank 1
        # would not be enough: a process closes them before its parent learns of its end.
        with tempfile.TemporaryDirectory() as folder:
            pipe = os.path.join(folder, "pipe")
            os.mkfifo(pipe)
            code, _, errors = run("-n", "3", "sh", "-c", f"""
                case $RANK in
                0) pid=$(cat {pipe}); while grep -qs ') [^ZX]' /proc/$pid/stat; do :; done; {then};;
                1) echo $$ >{pipe}; {first};;
                esac
                exec sleep 1000""")
        return code, errors

    def test_a_killed_rank_is_named_even_if_a_peer_ended_first(self):
        for first in ("exit 1", "kill -ABRT $$"):
            code, errors = self.run_where_rank_0_ends_after_rank_1(first, "kill -9 $$")
            self.assertIn("rank 0 was killed by signal 9 (Killed); the other 2 ranks were ended", errors)
            self.assertEqual(code, 128 + 9)

    def test_a_rank_that_aborts_because_a_peer_exited_is_not_blamed(self):
        code, errors = self.run_where_rank_0_ends_after_rank_1("exit 3", "kill -ABRT $$")
        self.assertIn("rank 1 exited with code 3; the other 2 ranks were ended", errors)
        self.assertEqual(code, 3)

    def test_ranks_that_do_not_end_are_killed_after_the_grace_time(self):
        code, _, _ = run("-n", "2", "--grace", "0.1", "sh", "-c",
                         "trap '' TERM INT; [ $RANK = 0 ] && exit 3; while :; do sleep 1000; done")
        self.assertEqual(code, 3)

    def test_a_command_that_does_not_exist_is_reported_once(self):
        code, _, errors = run("-n", "4", "no-such-command-here")
        self.assertEqual(code, 127)
        self.assertEqual(errors, "kolo-run: cannot start 'no-such-command-here': No such file or directory\n")

    def test_a_command_that_is_no_program_is_reported(self):
        code, _, errors = run("-n", "1", "/")
        self.assertEqual(code, 126)
        self.assertIn("cannot start '/'", errors)

    def cores_of_ranks(self, *words):
        """The cores of each rank of a job with these options, by rank."""
        code, output, errors = run(*words, sys.executable, "-c", "import os; print(sorted(os.sched_getaffinity(0)))")
        self.assertEqual(code, 0, errors)
        return {int(line[1:line.index("]")]): set(json.loads(line.split(" ", 1)[1])) for line in output.splitlines()}

    def test_ranks_are_bound_to_cores_of_their_own_if_there_are_enough(self):
        cores = os.sched_getaffinity(0)
        for words in (["-n", str(len(cores))], ["-n", "1"], ["-n", str(len(cores)), "--bind", "cores"]):
            bound = self.cores_of_ranks(*words)
            self.assertEqual(set().union(*bound.values()), cores)
            self.assertEqual(sum(map(len, bound.values())), len(cores))
        for words in (["-n", str(len(cores) + 1)], ["-n", "2", "--bind", "none"]):
            for of_rank in self.cores_of_ranks(*words).values():
                self.assertEqual(of_rank, cores)
        code, _, errors = run("-n", "2", "--bind", "stars", "true")
        self.assertEqual((code, errors), (2, "kolo-run: --bind: there is no 'stars'; expected one of auto, cores, nodes, none; see kolo-run --help\n"))

    def test_bad_arguments_print_one_line(self):
        for words in (["-n", "0", "true"], ["-n", "two", "true"], ["true"], ["-n", "2"], ["-n"], ["--what", "true"], []):
            code, _, errors = run(*words)
            self.assertEqual(code, 2, words)
            self.assertEqual(len(errors.splitlines()), 1, errors)

    def test_an_error_names_what_is_expected(self):
        for words, about in ((["-n", "two", "true"], "-n: 'two' is not a number from 1 to 4096"),
                             (["-n", "2", "--grace", "nan", "true"], "--grace: 'nan' is not a number from 0 to 3600"),
                             (["true"], "-n N is missing"), (["-n"], "--ranks needs a value"), (["--what", "true"], "no option '--what'; see"),
                             (["--rank", "2", "true"], "no option '--rank'; did you mean --ranks?; see"),
                             (["-n", "2", "--bind", "core", "true"], "expected one of auto, cores, nodes, none; did you mean cores?; see"),
                             (["-n", "2"], "there is no command to run")):
            _, _, errors = run(*words)
            self.assertIn(about, errors)

    def test_a_transport_for_threads_is_refused_once_before_ranks_start(self):
        code, output, errors = run("-n", "2", "echo", "started", env=dict(os.environ, KOLO_TRANSPORT="inproc"))
        self.assertEqual((code, output, len(errors.splitlines())), (2, "", 1), errors)
        self.assertIn("KOLO_TRANSPORT: inproc joins threads of one process", errors)
        self.assertEqual(run("-n", "1", "echo", "alone", env=dict(os.environ, KOLO_TRANSPORT="inproc"))[1], "[0] alone\n")

    def test_an_unusable_transport_is_reported_once_before_ranks_start(self):
        for name, about in (("smh", "unknown transport 'smh'"), ("./no/such.so", "./no/such.so: it cannot be loaded"),
                            ("cuda_ipc", "KOLO_TRANSPORT: cuda_ipc cannot be used here: ")):
            with self.subTest(name=name):
                code, output, errors = run("-n", "3", "echo", "started", env=dict(os.environ, KOLO_TRANSPORT=name))
                if name == "cuda_ipc" and code == 0:
                    continue  # this machine has a device
                self.assertEqual((code, output, len(errors.splitlines())), (2, "", 1), errors)
                self.assertIn(about, errors)

    def test_one_rank_of_kolo_train_reports_an_error_of_all(self):
        train = Path(KOLO_RUN).with_name("kolo-train")
        if not train.exists():
            self.skipTest("kolo-train is not in this build")
        for words, about in ((["--transport", "smh"], "unknown transport 'smh'"), (["--transport", "inproc"], "it connects threads"),
                             (["--transport", "./no/such.so"], "it cannot be loaded"), (["--modle=small"], "did you mean --model?"),
                             (["--ranks", "5"], "ring needs 5 ranks")):
            with self.subTest(words=words):
                code, output, errors = run("-n", "4", str(train), "train", "--model", "small", *words)
                said = [line for line in errors.splitlines() if line.startswith("[")]
                self.assertEqual((code, output, len(said)), (2, "", 1), errors)
                self.assertIn(about, said[0])
                self.assertEqual(len(errors.splitlines()), 2, errors)  # the error, and the launcher's line

    def test_options_after_the_command_belong_to_the_command(self):
        self.assertEqual(run("-n", "1", "echo", "-n", "3", "--help")[1], "[0] 3 --help\n")
        self.assertEqual(run("-n", "1", "--", "echo", "--", "x")[1], "[0] -- x\n")


class Signals(unittest.TestCase):
    # Each rank prints that it is ready, and starts a process of its own.
    WAITING = "trap 'echo got USR1' USR1; sleep 1000 & echo ready $$; while :; do wait; done"

    def start_waiting(self, *options):
        process = start("-n", "2", *options, "sh", "-c", self.WAITING)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stderr.close)
        lines = [process.stdout.readline() for _ in range(2)]
        return process, {int(line.split()[-1]) for line in lines}

    def assert_nothing_left(self, groups):
        wait_until(lambda: not groups & living_groups(), f"the end of the process groups {groups}")

    def test_signals_are_passed_on_to_every_rank(self):
        process, _ = self.start_waiting()
        process.send_signal(signal.SIGUSR1)
        self.assertEqual(sorted(process.stdout.readline() for _ in range(2)), ["[0] got USR1\n", "[1] got USR1\n"])
        process.terminate()
        self.assertEqual(process.wait(PATIENCE_S), 128 + signal.SIGTERM)

    def test_requests_to_end_reach_the_processes_that_ranks_started(self):
        for request in (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
            process, groups = self.start_waiting("--grace", "1")
            process.send_signal(request)
            self.assertEqual(process.wait(PATIENCE_S), 128 + request)
            self.assertIn("was passed on", process.stderr.read())
            self.assert_nothing_left(groups)

    def test_a_forwarded_signal_decides_even_if_another_rank_ended_first(self):
        with tempfile.TemporaryDirectory() as folder:
            follower = "echo $$ > $0/pid; trap 'exit 1' TERM; echo ready; while :; do sleep 0.01; done"
            # Ends by the signal after the follower has ended.
            leader = ("trap 'while grep -q \"^State:.[^Z]\" /proc/$(cat $0/pid)/status; do sleep 0.01; done; trap - TERM; "
                      "kill -TERM $$' TERM; while [ ! -s $0/pid ]; do sleep 0.01; done; echo ready; while :; do sleep 0.01; done")
            process = start("-n", "2", "--grace", "60", "sh", "-c",
                            f"if [ $RANK = 0 ]; then {leader}; else {follower}; fi", folder)
            self.addCleanup(process.stdout.close)
            self.addCleanup(process.stderr.close)
            for _ in range(2):
                process.stdout.readline()
            process.terminate()
            self.assertEqual(process.wait(PATIENCE_S), 128 + signal.SIGTERM)
            self.assertIn("rank 0 was killed by signal 15", process.stderr.read())

    def test_nothing_is_left_when_a_rank_is_killed(self):
        process, groups = self.start_waiting()
        os.kill(min(groups), signal.SIGKILL)
        self.assertEqual(process.wait(PATIENCE_S), 128 + signal.SIGKILL)
        self.assert_nothing_left(groups)

    def test_nothing_is_left_when_the_launcher_itself_is_killed(self):
        process, groups = self.start_waiting()
        process.kill()
        process.wait(PATIENCE_S)
        self.assert_nothing_left(groups)

    def start_with_strays(self, code=0):
        """A job whose ranks start processes in groups and sessions of their own, one of them an orphan. Returns the job, and a
        text in the command lines of these processes."""
        # Each stray prints "ready" when it has left the rank's group. On SIGUSR1 the ranks end with the code.
        mark = f"stray {self.id()} {os.getpid()}"
        stray = "trap '' TERM HUP INT; echo ready; while :; do read line <$1; done"
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        os.mkfifo(f"{folder.name}/pipe")  # which nothing writes to
        words = f'sh -c "$0" "{mark}" "$1"'
        script = f"setsid {words} & timeout 1000 {words} & (setsid {words} &) ; trap 'exit {code}' USR1; while :; do wait; done"
        process = start("-n", "2", "--grace", "0.1", "sh", "-c", script, stray, f"{folder.name}/pipe")
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stderr.close)
        for _ in range(6):
            self.assertIn("ready", process.stdout.readline())
        return process, mark

    def test_processes_with_a_group_of_their_own_end_with_the_job(self):
        for request in (signal.SIGTERM, signal.SIGINT, signal.SIGKILL):
            with self.subTest(request=request):
                process, mark = self.start_with_strays()
                process.send_signal(request)
                process.wait(PATIENCE_S)
                wait_until(lambda: not living_with(mark), "the end of processes with other groups")

    def test_processes_with_a_group_of_their_own_end_when_ranks_have_ended(self):
        for code in (0, 3):
            with self.subTest(code=code):
                process, mark = self.start_with_strays(code)
                process.send_signal(signal.SIGUSR1)
                self.assertEqual(process.wait(PATIENCE_S), code)
                wait_until(lambda: not living_with(mark), "the end of processes with other groups")

    def start_blocked(self, script):
        """A job whose output is not read. Returns when the pipe is full."""
        process = start("-n", "2", "--grace", "1", "sh", "-c", script)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stderr.close)
        capacity = fcntl.fcntl(process.stdout, F_GETPIPE_SZ)

        def is_full():
            return struct.unpack("i", fcntl.ioctl(process.stdout, termios.FIONREAD, b"1234"))[0] > capacity - 4096

        wait_until(is_full, "a full pipe")
        return process

    def test_a_request_to_end_is_heard_while_the_output_is_blocked(self):
        process = self.start_blocked("exec yes")
        process.terminate()
        self.assertEqual(process.wait(PATIENCE_S), 128 + signal.SIGTERM)
        self.assertEqual(len(process.stderr.read().splitlines()), 1)

    def test_a_failed_rank_ends_the_others_while_the_output_is_blocked(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        ready = f"{folder.name}/ready"  # the signal must not come before the trap
        process = self.start_blocked(f"[ $RANK = 1 ] && until [ -e {ready} ]; do :; done && exec yes\n"
                                     f"trap 'exit 3' USR1; : > {ready}; while :; do wait; done")
        ranks = wait_until(lambda: len(ranks_of(process)) == 2 and ranks_of(process), "the ranks")
        os.kill(ranks[0], signal.SIGUSR1)
        wait_until(lambda: not ranks_of(process), "the end of all ranks")
        self.assertIsNone(process.poll())  # it waits for the reader
        process.communicate(timeout=PATIENCE_S)
        self.assertEqual(process.returncode, 3)

    def test_the_last_output_is_given_up_on_request(self):
        process = self.start_blocked("head -c 20000 /dev/zero | tr '\\0' '\\n'")
        wait_until(lambda: not ranks_of(process), "the end of all ranks")
        process.terminate()
        self.assertEqual(process.wait(PATIENCE_S), 128 + signal.SIGTERM)
        self.assertIn("which is lost", process.stderr.read())

    def test_a_stopped_guardian_is_killed_and_named(self):
        process, groups = self.start_waiting()
        guardian = wait_until(lambda: guardian_of(process), "the guardian to be there")
        os.kill(guardian, signal.SIGSTOP)
        process.terminate()
        self.assertEqual(process.wait(PATIENCE_S), 128 + signal.SIGTERM)
        self.assertIn(f"the launcher's reaper process, pid {guardian}, did not end", process.stderr.read())
        self.assert_nothing_left(groups)

    def test_background_processes_of_ranks_that_ended_well_are_ended(self):
        code, output, _ = run("-n", "2", "sh", "-c", "sleep 1000 & echo $$")
        self.assertEqual(code, 0)
        self.assert_nothing_left({int(line.split()[-1]) for line in output.splitlines()})


if __name__ == "__main__":
    KOLO_RUN = sys.argv.pop(1)
    unittest.main(verbosity=2)
