#!/usr/bin/env python3
"""Tests of train/compare.sh in a tree with fake versions of setup.sh, CMake and kolo-train."""

import os
import pty
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[2] / "train/compare.sh"

CMAKE = r"""#!/bin/sh
# Configures and builds by writing down how it was called; the build leaves a kolo-train.
printf '%s\n' "$@" >>"$CALLS"
case "$1" in
  -S) echo "-- Configuring done"; exit "${CONFIGURE_STATUS:-0}" ;;
  --build) ;;
  *) exit 64 ;;
esac
for step in $(seq "${STEPS:-3}"); do echo "[$step/${STEPS:-3}] Building part $step"; done
[ "${BUILD_STATUS:-0}" -eq 0 ] || for line in $(seq 40); do echo "error $line of 40" >&2; done
mkdir -p "$2/bin"
[ "${BUILD_STATUS:-0}" -ne 0 ] || cp "$STAND_IN" "$2/bin/kolo-train"
printf '%s' "${LAST_WORDS-}"
exit "${BUILD_STATUS:-0}"
"""

KOLO_TRAIN = r"""#!/bin/sh
echo "in $PWD"
printf 'word %s\n' "$@"
exit "${TRAIN_STATUS:-0}"
"""

SETUP = r"""#!/bin/sh
printf 'setup %s\n' "$*" >>"$CALLS"
exit "${SETUP_STATUS:-0}"
"""


def write_program(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


class CompareScript(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name).resolve()
        self.tree = self.folder / "a clone"
        self.script = self.tree / "train/compare.sh"
        self.log = self.tree / "build/release/build.log"
        self.calls = self.folder / "calls"
        self.elsewhere = self.folder / "else where"
        self.elsewhere.mkdir()
        self.script.parent.mkdir(parents=True)
        shutil.copy(SCRIPT, self.script)
        write_program(self.tree / "cmake/setup.sh", SETUP)
        write_program(self.folder / "bin/cmake", CMAKE)
        write_program(self.folder / "stand-in", KOLO_TRAIN)

    def environment(self, variables):
        return os.environ | {"PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}", "CALLS": str(self.calls),
                             "STAND_IN": str(self.folder / "stand-in")} | variables

    def run_script(self, *words, **variables):
        return subprocess.run([self.script, *words], cwd=self.elsewhere, env=self.environment(variables), text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60, check=False)

    def assert_trained(self, ended, *words, status=0):
        self.assertEqual(ended.returncode, status, ended.stderr)
        self.assertEqual(ended.stdout.splitlines(),
                         [f"in {self.elsewhere}", "word compare"] + [f"word {word}" for word in words])

    def assert_refused(self, ended, status=1):
        self.assertEqual(ended.returncode, status, ended.stderr)
        self.assertEqual(ended.stdout, "")

    def test_a_good_build_is_followed_by_the_comparison_where_the_caller_is(self):
        (self.folder / "house numbers").mkdir()
        words = ["--dataset", "svhn:../house numbers", "--report=my report", "--shape", "*", "--ranks", "3"]
        self.assert_trained(self.run_script(*words), *words)
        calls = self.calls.read_text().splitlines()
        self.assertEqual(calls[:5], ["setup --with plots", "-S", str(self.tree), "--preset", "release"])
        self.assertEqual(calls[5:7], ["--build", str(self.tree / "build/release")])
        self.assertEqual(calls[-2:], ["--target", "kolo-train"])

    def test_the_exit_code_is_that_of_kolo_train(self):
        for status in (2, 130):
            self.assert_trained(self.run_script("--ranks", "3", TRAIN_STATUS=str(status)), "--ranks", "3", status=status)

    def test_what_kolo_train_would_refuse_is_refused_before_anything_is_built(self):
        for words, about in ((["--modle", "small"], "there is no option '--modle'; did you mean --model?"),
                             (["--frobnicate=1"], "there is no option '--frobnicate'; train/compare.sh"),
                             (["--model", "vgg"], "--model: unknown 'vgg'; expected one of resnet18, resnet34, resnet50, resnet101, cnn, mlp, small; train/"),
                             (["--stem=x"], "--stem: unknown 'x'"), (["--augment=flip"], "--augment: unknown 'flip'; expected one of none, crop, crop,flip"), (["--lr_schedule", "linear"], "expected one of constant, step, cosine, polynomial"),
                             (["--report"], "--report needs a value"), (["--model", "smal"], "did you mean small?"),
                             (["--strategies", "rign"], "--strategies: unknown 'rign'; expected one of ring, ring_all_reduce, ps, param_server, tree, hierarchical, auto, sharded, local-sgd, pipeline, "
                                                        "dataparallel, data_parallel, torch-ddp, torch-ddp-kolo, torch-ps; "
                                                        "did you mean ring?"),
                             (["--strategy=ring, pss:sharded"], "--strategy: unknown 'pss'"), (["--strategies", ""], "expected arms, as"),
                             (["--strategies=ring,"], "--strategies: unknown ''"), (["--ps_mode", "shard"], "expected one of dedicated, sharded"),
                             (["--ranks", "0"], "--ranks: expected a whole number of at least 1, got '0'"),
                             (["--n_gpus=two"], "--n_gpus: expected a whole number, got 'two'"), (["--steps", "-1"], "--steps: expected"),
                             (["--batch_size", "2.5"], "--batch_size: expected a whole number"), (["--lr=fast"], "--lr: expected a number"),
                             (["--dataset", "letters"], "--dataset: unknown 'letters'; expected one of digits, svhn:DIR, mnist:DIR, cifar10:DIR, imagefolder:DIR, synthetic[:HxWxC[:CLASSES]]"),
                             (["--dataset=svhn:"], "--dataset: unknown 'svhn:'"), (["--transport", "pigeon"], "--transport: unknown 'pigeon'"),
                             (["foo"], "compare does not expect 'foo'"), (["--ranks", "2", "*"], "compare does not expect '*'"), ([""], "expect ''"),
                             (["-n", "2"], "compare does not expect '-n'"),
                             (["--strategies", "ring:lr=0.1,ps"], "'ring:lr=0.1' sets lr=0.1, but arms may differ in their strategy only: give --lr once"),
                             (["--strategies=ring,ps:shardd"], "unknown word 'shardd' in 'ps:shardd'; ps takes dedicated, sharded, everywhere, split, "
                                                               "servers=N, optimizer=worker, optimizer=server, async, ssp=S, backup=B; did you mean sharded?"),
                             (["--strategies=ps:ssp=1001"], "ssp=1001: expected a number from 0 to 1000"),
                             (["--strategies=ps:server=3"], "unknown word 'server=3'"), (["--strategies=ps:servers=0"], "servers=0: expected a number"),
                             (["--strategies=ring:sharded"], "unknown word 'sharded' in 'ring:sharded'; ring takes sync=naive, "),
                             (["--strategies=tree:sync=naiv"], "did you mean sync=naive?"), (["--strategies=ring:servers=2"], "may differ in their strategy only"),
                             (["--strategies=local-sgd"], "'local-sgd' needs a number of steps"),
                             (["--strategies=local-sgd:0"], "'local-sgd:0': expected a number from 1 to 1000000"),
                             (["--strategies=local-sgd:1000001"], "'local-sgd:1000001': expected a number from 1 to 1000000"),
                             (["--strategies=local-sgd:4:8"], "expected a number from 1 to 1000000"),
                             (["--strategies=pipeline"], "'pipeline' needs a number of stages"), (["--strategies=pipeline:1"], "expected a number from 2 to 1024"),
                             (["--strategies=dataparallel:sharded"], "dataparallel takes no words; remove 'sharded'"),
                             (["--strategies=sharded:sync=flat"], "sharded takes no words; remove 'sync=flat'"),
                             (["--strategies=torch-ddp:sync=flat"], "torch-ddp takes no words; remove 'sync=flat'"),
                             (["--compress", "int8"], "--compress: expected none, bfloat16, float16, topk:R, got 'int8'"),
                             (["--reproducibility", "exact"], "expected one of fast, ordered, invariant"),
                             (["--straggle=rank=1"], "--straggle: expected rank=R,factor=F, with a worker R and F from 1 to 1000, as rank=1,factor=1.5; got"),
                             (["--straggle", "rank=1,factor=0.5"], "got 'rank=1,factor=0.5'"),
                             (["--report", "/dev/full"], "--report: the folder '/dev/full' cannot be written: '/dev/full' is not a folder"),
                             (["--report=/dev/full/here"], "'/dev/full' is not a folder"), (["--report", ""], "--report: expected a folder"),
                             (["--dataset", "svhn:/nope"], "--dataset: there is no folder '/nope'"),
                             (["--dataset", "mnist:/nope"], "--dataset: there is no folder '/nope'"),
                             (["--dataset=svhn:/dev/full"], "--dataset: there is no folder '/dev/full'"),
                             (["--transport=smh"], "did you mean shm?"), (["--transport", "*"], "--transport: unknown '*'")):
            with self.subTest(words=words):
                ended = self.run_script("--no-report", *words)
                self.assert_refused(ended, status=2)
                self.assertEqual(len(ended.stderr.splitlines()), 1, ended.stderr)
                self.assertIn(about, ended.stderr)
                self.assertFalse(self.calls.exists())

    def test_the_values_of_options_are_no_options(self):
        (self.elsewhere / "house numbers").mkdir()
        words = ["--report", "--modle", "--strategies=ring, ring:sync=flat,ps:everywhere,ps:ssp=3,ps:split,ps:sharded:servers=3:optimizer=server", "--no-progress-thread", "--model", "small",
                 "--dataset=svhn:house numbers", "--transport", "./libx.so", "--straggle", "rank=1,factor=1.5", "--steps", "0", "--lr", "1e-3", "--seed=0"]
        self.assert_trained(self.run_script(*words), *words)

    def test_without_a_terminal_each_tenth_of_the_build_is_a_line(self):
        ended = self.run_script(STEPS="40")
        self.assert_trained(ended)
        lines = [line for line in ended.stderr.splitlines() if line.startswith("kolo: building, ")]
        self.assertEqual(lines, [f"kolo: building, {4 * tenth}/40" for tenth in range(1, 11)])

    def test_a_good_build_is_one_whatever_its_last_words_are(self):
        for last_words in ("", "\n", "status 1\n", "no end of the line", "trailing backslash \\", "  ", "%s %d\n"):
            with self.subTest(last_words=last_words):
                self.assert_trained(self.run_script(LAST_WORDS=last_words))
                self.assertIn(last_words.strip(), self.log.read_text())

    def test_a_failing_build_shows_the_end_of_its_log_and_where_the_rest_is(self):
        for last_words in ("", "status 0\n", "no end of the line"):
            with self.subTest(last_words=last_words):
                ended = self.run_script(BUILD_STATUS="9", LAST_WORDS=last_words)
                self.assert_refused(ended)
                self.assertIn("error 40 of 40", ended.stderr)
                self.assertNotIn("error 2 of 40", ended.stderr)
                self.assertIn(f"kolo: the build failed; the whole log is in {self.log}", ended.stderr)
                self.assertIn("error 2 of 40", self.log.read_text())

    def test_a_build_that_cannot_be_configured_is_not_tried(self):
        ended = self.run_script(CONFIGURE_STATUS="1")
        self.assert_refused(ended)
        self.assertIn("-- Configuring done", ended.stderr)
        self.assertNotIn("--build", self.calls.read_text())

    def test_a_set_up_that_fails_ends_all(self):
        self.assert_refused(self.run_script(SETUP_STATUS="3"), status=3)
        self.assertEqual(self.calls.read_text(), "setup --with plots\n")

    def test_a_log_holds_the_last_build_alone(self):
        self.run_script(BUILD_STATUS="1")
        self.assert_trained(self.run_script())
        self.assertNotIn("error", self.log.read_text())

    def test_help_before_the_build_says_what_the_script_does_and_builds_nothing(self):
        for word in ("--help", "-h"):
            ended = self.run_script("--ranks", "2", word)
            self.assertEqual(ended.returncode, 0, ended.stderr)
            self.assertIn("train/compare.sh [options of kolo-train compare]", ended.stdout)
            self.assertIn("not built yet", ended.stdout)
            self.assertFalse(self.calls.exists())

    def test_help_after_the_build_is_that_of_kolo_train(self):
        self.run_script()
        self.calls.unlink()
        self.assert_trained(self.run_script("--help"), "--help")
        self.assertFalse(self.calls.exists())

    def test_help_within_a_path_is_no_question(self):
        words = ["--report", "no --help here/nor here"]
        self.assert_trained(self.run_script(*words), *words)

    def test_a_terminal_shows_how_far_the_build_is_in_one_line_that_goes_away(self):
        master, terminal = pty.openpty()
        with subprocess.Popen([self.script], cwd=self.elsewhere, env=self.environment({}), stdout=subprocess.PIPE,
                              stderr=terminal, text=True) as process:
            os.close(terminal)
            shown = b""
            while True:
                try:
                    block = os.read(master, 4096)
                except OSError:  # EIO: the script has closed the terminal
                    break
                if not block:
                    break
                shown += block
            output = process.stdout.read()
        os.close(master)
        self.assertEqual(process.returncode, 0, shown)
        self.assertIn("word compare", output)
        self.assertIn(b"\rkolo: building [2/3] ", shown)
        self.assertTrue(shown.endswith(b"\r\x1b[K"), shown)
        self.assertNotIn(b"\n", shown)


if __name__ == "__main__":
    unittest.main()
