#!/usr/bin/env python3
"""Tests `kolo-train fetch` with a local HTTP server. Usage: fetch_program_test.py KOLO_TRAIN FOLDER_OF_REAL_DATA."""

import functools
import http.server
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import unittest
from pathlib import Path

KOLO_TRAIN = sys.argv[1]
REAL = Path(os.environ.get("KOLO_TEST_DATA", sys.argv[2])) / "mnist"
# The file of training images there has the official contents, but was compressed anew.
OFFICIAL = ("t10k-labels-idx1-ubyte.gz", "t10k-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz")


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


class Fetch(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.served, self.target = Path(scratch.name) / "served", Path(scratch.name) / "target"
        self.served.mkdir()
        handler = functools.partial(QuietHandler, directory=str(self.served))
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        self.url = f"http://127.0.0.1:{server.server_port}"

    def fetch(self, *words):
        return subprocess.run([KOLO_TRAIN, "fetch", *words], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              env=os.environ | {"no_proxy": "127.0.0.1"}, timeout=60, check=False)

    def test_a_missing_file_is_reported_with_its_address(self):
        ended = self.fetch("mnist", str(self.target), "--from", self.url)
        self.assertEqual(ended.returncode, 1, ended.stderr)
        self.assertIn(f"kolo-train: {self.url}/t10k-labels-idx1-ubyte.gz cannot be downloaded", ended.stderr)
        self.assertEqual(os.listdir(self.target), [])

    def test_a_file_with_other_bytes_is_not_kept(self):
        (self.served / "cifar-10-binary.tar.gz").write_bytes(b"<html>not found</html>")
        ended = self.fetch("cifar10", str(self.target), f"--from={self.url}/")
        self.assertEqual(ended.returncode, 1, ended.stderr)
        self.assertIn("but c32a1d4ab5d03f1284b67883e8d87530 was expected", ended.stderr)
        self.assertEqual(os.listdir(self.target), [])

    def test_wrong_words_are_refused_before_anything_is_written(self):
        for words, about in ((["mnits", "x"], "unknown data set 'mnits'; expected one of svhn, mnist, cifar10; did you mean mnist?"),
                             (["mnist"], "DIR is required"), ([], "DATASET is required"),
                             (["mnist", "x", "--from", "here"], "expected a URL that begins with one of http://"),
                             (["mnist", "x", "--form=y"], "did you mean --from?")):
            ended = self.fetch(*words)
            self.assertEqual(ended.returncode, 2, ended.stderr)
            self.assertEqual(ended.stderr.count("\n"), 1, ended.stderr)
            self.assertIn(about, ended.stderr)
            self.assertFalse(Path("x").exists())

    def test_without_curl_and_wget_the_message_says_what_to_install(self):
        ended = subprocess.run([KOLO_TRAIN, "fetch", "mnist", str(self.target)], text=True, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, env={"PATH": str(self.served)}, timeout=60, check=False)
        self.assertEqual(ended.returncode, 1, ended.stderr)
        self.assertIn("cannot be downloaded: there is neither curl nor wget; install one", ended.stderr)

    @unittest.skipUnless(REAL.is_dir(), f"no {REAL}")
    def test_official_files_are_kept_and_not_downloaded_twice(self):
        for name in OFFICIAL:
            shutil.copy(REAL / name, self.served)
        for expected in ("-> ", "exists, with the right MD5"):
            ended = self.fetch("mnist", str(self.target), "--from", self.url)
            self.assertEqual(ended.returncode, 1, ended.stderr)  # there are no training images
            for line, name in zip(ended.stderr.splitlines(), OFFICIAL):
                self.assertIn(name, line)
                self.assertIn(expected, line)
            self.assertEqual(sorted(os.listdir(self.target)), sorted(OFFICIAL))


if __name__ == "__main__":
    if shutil.which("curl") is None:
        print("skipped: there is no curl")
        sys.exit(0)
    unittest.main(argv=sys.argv[:1])
