"""Runs PyTorch's own tests of torch.distributed (distributed_test.py, in the wheel) with one backend.

Usage, by pytorch_suite.py:  BACKEND=kolo WORLD_SIZE=3 suite_of_torch.py RESULTS.jsonl [PATTERN]...

Many tests run for backends of certain names only, and others look names up in tables. Where "gloo" is named there, "kolo"
is added: what gloo can do is tested. Tests of all-to-all on the CPU, which name MPI alone, are opened for both. The ranks of
a test are forked, as their start by spawn takes most of the time.
"""

import fnmatch
import importlib.util
import json
import os
import re
import sys
import time
import traceback
import unittest
from pathlib import Path

BACKEND = os.environ["BACKEND"]

import torch  # noqa: E402
from torch.testing._internal import common_distributed  # noqa: E402

NAME = "torch.testing._internal.distributed.distributed_test"
GATES = (
    (r'BACKEND != "gloo"', 'BACKEND not in ("gloo", "kolo")'),
    (r'BACKEND == "gloo"', 'BACKEND in ("gloo", "kolo")'),
    (r'require_backend_is_available\(\{"gloo"\}\)', 'require_backend_is_available({"gloo", "kolo"})'),
    (r"(PROFILING_SUPPORTED_BACKENDS = \[\n)", r'\1    "kolo",\n'),
    # torch names each backend that it does not know "custom" there.
    (r'(ddp_logging_data.get\("backend_name"\), dist.get_backend\(group_id\))', r'\1.replace("kolo", "custom")'),
)


FOR_BOTH = ((r'BACKEND != "mpi", ("Only MPI supports (CPU )?all_to_all)', r'BACKEND not in ("mpi", "gloo", "kolo"), \1'),)


def gated_source():
    """Source of the tests with kolo beside gloo, and the number of places that were changed."""
    source = Path(importlib.util.find_spec(NAME).origin).read_text()
    changed = 0
    for pattern, text in FOR_BOTH + (GATES if BACKEND == "kolo" else ()):
        source, count = re.subn(pattern, text, source)
        changed += count
    return source, changed


def register_kolo():
    import kolo_torch  # noqa: F401

    for feature in common_distributed.DistTestCases.backend_feature.values():
        if "gloo" in feature:
            feature.add("kolo")
    common_distributed.DistTestCases.backend_feature["plugin"].add("kolo")


def load_tests():
    source, changed = gated_source()
    spec = importlib.util.find_spec(NAME)
    module = importlib.util.module_from_spec(spec)
    sys.modules[NAME] = module
    exec(compile(source, spec.origin, "exec"), module.__dict__)
    print(f"{changed} places of the tests are changed", flush=True)
    return module


if BACKEND == "kolo":
    register_kolo()
tests = load_tests()


class TestOfBackend(tests.TestDistBackend, tests.DistributedTest._DistTestBase):
    def setUp(self):
        super().setUp()
        self._start_processes(torch.multiprocessing.get_context("fork").Process)


class Recorder(unittest.TestResult):
    """Writes a line for each test as soon as it ends."""

    def __init__(self, path):
        super().__init__()
        self.file = path.open("w")
        self.outcome = None

    def startTest(self, test):
        super().startTest(test)
        self.began = time.monotonic()
        self.outcome = ("passed", "")

    def addSkip(self, test, reason):
        self.outcome = ("skipped", reason)

    def addFailure(self, test, error):
        self.outcome = ("failed", "".join(traceback.format_exception(*error)))

    addError = addFailure

    def addExpectedFailure(self, test, error):
        self.outcome = ("passed", "")

    def stopTest(self, test):
        super().stopTest(test)
        name = test.id().rsplit(".", 1)[-1]
        outcome, reason = self.outcome
        row = {"test": name, "backend": BACKEND, "outcome": outcome, "seconds": round(time.monotonic() - self.began, 1),
               "reason": reason}
        self.file.write(json.dumps(row) + "\n")
        self.file.flush()
        print(f"{outcome:8} {name}", flush=True)


def main():
    patterns = sys.argv[2:] or ["*"]
    names = unittest.TestLoader().getTestCaseNames(TestOfBackend)
    chosen = [name for name in names if any(fnmatch.fnmatch(name, pattern) for pattern in patterns)]
    unittest.TestSuite(TestOfBackend(name) for name in chosen).run(Recorder(Path(sys.argv[1])))


if __name__ == "__main__":
    main()
