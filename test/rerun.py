#!/usr/bin/env python3
"""Report of the failed tests of a ctest run; tests that only missed a deadline are run again.

  test/rerun.py PRESET [--attempts N]

Reads ctest's logs in build/PRESET. If all failures of a test are expired deadlines, as on a busy machine, the test is run again
alone, up to N times (default: 0). All other failures remain: a wrong value, a crash, a sanitizer's report, or a test that ctest
ended. Prints the last lines of each failed test, the tests that passed in a later run under "flaky", and ctest's summary line with
the final counts. Exits with 1 if a test has finally failed.
"""

import argparse
import re
import subprocess
import sys
from pathlib import Path

LINES_OF_EACH = 40
DEADLINE = re.compile(r"timed out|TimeoutExpired|kDeadline|within the deadline|did not \w+(?: \w+)? (?:in|within) [\d.]+ s\b")
FATAL = re.compile(r"SIG[A-Z]{3,4}\b|Sanitizer|runtime error:|terminate called|Segmentation fault|core dumped|double free|corruption")
# One failure report, from its first line to its end, in the output of Catch2 and of Python's unittest.
FAILURE = re.compile(r"^(?:\S+:\d+: FAILED:|(?:ERROR|FAIL): \w+ \(|Traceback ).*?(?=^\s*$\n^\S+:\d+: |^={20,}|^-{60,}|\Z)",
                     re.MULTILINE | re.DOTALL)
_BLOCK = re.compile(r"^\d+/\d+ Test: (?P<name>[^\n]*)\n.*?^Output:\n-+\n(?P<output>.*?)^<end of output>$", re.MULTILINE | re.DOTALL)


def missed_a_deadline(output):
    """Whether every failure in a test's output is an expired deadline."""
    if FATAL.search(output):
        return False
    failures = [match[0] for match in FAILURE.finditer(output)] or [output]
    return all(DEADLINE.search(failure) for failure in failures)


def outputs_of(log):
    return {match["name"]: match["output"] for match in _BLOCK.finditer(log)}


def passes_alone(preset, name, attempts):
    """The number of the attempt that passed; 0 if none did."""
    escaped = re.sub(r"([\\.^$*+?()\[\]{}|])", r"\\\1", name)
    for attempt in range(1, attempts + 1):
        print(f"Again, alone: {name} (attempt {attempt} of {attempts})", flush=True)
        done = subprocess.run(["ctest", "--preset", preset, "--no-tests=error", "-R", f"^{escaped}$"],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        if done.returncode == 0:
            return attempt
    return 0


def report(preset, failed, outputs, attempts, again=passes_alone):
    """Prints the report; returns the names of the tests that finally failed."""
    flaky, bad = [], []
    for name in failed:
        may_rerun = attempts and missed_a_deadline(outputs.get(name, ""))
        if may_rerun and again(preset, name, attempts):
            flaky.append(name)
        else:
            bad.append(name)
    if bad:
        print(f"Failed in {preset}, and the last lines of each:")
    for name in bad:
        print("\n".join([f"--- {name}", *outputs.get(name, "(no output)").splitlines()[-LINES_OF_EACH:]]))
    if flaky:
        print("flaky: these tests missed a deadline and passed when run alone (test/flaky.md says what to do):")
        print("\n".join(f"  {name}" for name in flaky))
    return bad


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("preset")
    parser.add_argument("--attempts", type=int, default=0)
    arguments = parser.parse_args()
    temporary = Path("build", arguments.preset, "Testing/Temporary")
    failed_log = temporary / "LastTestsFailed.log"
    failed = [line.split(":", 1)[1] for line in failed_log.read_text().splitlines()] if failed_log.exists() else []
    outputs = outputs_of((temporary / "LastTest.log").read_text(errors="replace"))
    count = len(re.findall(r"^\d+/\d+ Test: ", (temporary / "LastTest.log").read_text(errors="replace"), re.MULTILINE))
    bad = report(arguments.preset, failed, outputs, arguments.attempts)
    percent = 100 * (count - len(bad)) // count if count else 0
    print(f"{percent}% tests passed, {len(bad)} tests failed out of {count}")
    return 1 if bad or not failed else 0


if __name__ == "__main__":
    sys.exit(main())
