#!/usr/bin/env python3
"""Tests of test/rerun.py: which failed tests are run again, and the text of the report."""

import contextlib
import io
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import rerun  # noqa: E402  # pylint: disable=wrong-import-position

CATCH_DEADLINE = """-----
a_test.cpp:20: FAILED:
due to unexpected exception with message:
  rank 1 (host): receive from rank 0 (tcp) timed out after 30.0 s in all_reduce #3

===============================================================================
"""
CATCH_VALUE = """-----
a_test.cpp:21: FAILED:
  REQUIRE( sum == 3 )
with expansion:
  2 == 3

===============================================================================
"""
PYTHON_DEADLINE = """ERROR: test_x (__main__.X)
----
Traceback (most recent call last):
subprocess.TimeoutExpired: Command 'kolo-bench' timed out after 240 seconds
"""
LOG = """1/2 Test: group.a name (with signs)
Command: "x"
Output:
----------------------------------------------------------
{}<end of output>
Test time =   0.01 sec
2/2 Test: group.another
Command: "y"
Output:
----------------------------------------------------------
{}<end of output>
Test time =   0.01 sec
"""


class Rerun(unittest.TestCase):
    def test_only_expired_deadlines_may_run_again(self):
        for output in (CATCH_DEADLINE, PYTHON_DEADLINE, "rank 2: measuring the channel to rank 1 did not end in 8.0 s\n"):
            self.assertTrue(rerun.missed_a_deadline(output), output)
        for output in (CATCH_VALUE, CATCH_DEADLINE + CATCH_VALUE, CATCH_DEADLINE + "SIGSEGV - Segmentation violation signal\n",
                       CATCH_DEADLINE + "WARNING: ThreadSanitizer: data race\n", "", "wrong: 3 elements\n"):
            self.assertFalse(rerun.missed_a_deadline(output), output)

    def report(self, outputs, passes, attempts=2):
        asked = []
        text = io.StringIO()
        with contextlib.redirect_stdout(text):
            bad = rerun.report("release", list(outputs), outputs, attempts,
                               lambda preset, name, attempts: asked.append(name) or passes)
        return bad, asked, text.getvalue()

    def test_a_test_that_passes_alone_is_named_as_flaky(self):
        outputs = rerun.outputs_of(LOG.format(CATCH_DEADLINE, CATCH_VALUE))
        bad, asked, text = self.report(outputs, passes=1)
        self.assertEqual(asked, ["group.a name (with signs)"])
        self.assertEqual(bad, ["group.another"])
        self.assertIn("flaky", text)
        self.assertIn("2 == 3", text)

    def test_a_test_that_fails_alone_has_failed(self):
        outputs = rerun.outputs_of(LOG.format(CATCH_DEADLINE, CATCH_DEADLINE))
        self.assertEqual(len(self.report(outputs, passes=0)[0]), 2)
        self.assertEqual(self.report(outputs, passes=1, attempts=0)[1], [])


if __name__ == "__main__":
    unittest.main()
