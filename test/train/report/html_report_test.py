#!/usr/bin/env python3
"""Tests kolo-train report: the HTML page of several runs. Usage: html_report_test.py KOLO_TRAIN page|chromium.

page: the contents. chromium: in a browser, the width of the page on a phone, and on paper.
"""

import html
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

KOLO_TRAIN = sys.argv[1]
PHONE = 390  # pixels
BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
IN_BROWSER = sys.argv[2] == "chromium"
SMALL = ["--model", "small", "--train-size", "64", "--test-size", "8", "--batch-size", "16"]
# Writes the width of the page in a frame as wide as a phone: windows of a browser are not as narrow.
FRAME = """<!DOCTYPE html><meta charset="utf-8"><iframe id="phone" style="width:{width}px;height:800px;border:0" srcdoc="{page}"></iframe><p id="width"></p>
<script>onload = () => {{ const root = document.getElementById("phone").contentDocument.documentElement;
document.getElementById("width").textContent = "measured " + root.scrollWidth + " of " + root.clientWidth; }}</script>"""


def kolo_train(*words, folder, code=0):
    ended = subprocess.run([KOLO_TRAIN, *words], cwd=folder, capture_output=True, text=True, timeout=240)
    if ended.returncode != code:
        raise AssertionError(f"{words}: exit code {ended.returncode}\n{ended.stdout}{ended.stderr}")
    return ended.stdout + ended.stderr


class HtmlReport(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        made = tempfile.TemporaryDirectory(prefix="kolo-html-report-")
        cls.addClassCleanup(made.cleanup)
        cls.folder = Path(made.name)
        kolo_train("compare", *SMALL, "--epochs", "1", "--strategies", "ring,ps,ps:everywhere,ring:sync=flat,local-sgd:2", "--report", "compare",
                   folder=cls.folder)
        kolo_train("scale", *SMALL, "--steps", "3", "--skip-steps", "1", "--threads", str(os.cpu_count()), "--ranks", "1,2", "--report", "scale", folder=cls.folder)
        kolo_train("report", "compare", "scale", "--output", "page.html", folder=cls.folder)
        cls.page = (cls.folder / "page.html").read_text(encoding="utf-8")


@unittest.skipIf(IN_BROWSER, "the other tests")
class Page(HtmlReport):
    def test_has_the_tables_findings_and_facts_of_each_run(self):
        for part in ("Comparison of strategies", "Weak scaling: small", "images/s, all workers", "efficiency, %", "What the numbers mean",
                     "Machine and versions", "<h2 id=run-2>", '<a href="#run-2">', "WARNING: more busy threads than cores"):
            self.assertIn(part, self.page)
        self.assertRegex(self.page, r"<li class=doubt>WARNING: more busy")
        self.assertNotRegex(self.page, r"\|---|\*\*|&amp;nbsp;|!\[")  # no Markdown is left

    def test_needs_no_other_file(self):
        self.assertNotRegex(self.page, r"(?i)https?:|@import|url\(|<script|<link")
        for place in re.findall(r'(?:src|href)="([^"]*)"', self.page):
            self.assertTrue(place.startswith(("#run-", "data:image/svg+xml;base64,", "data:image/png;base64,")), place[:60])

    def test_has_the_plots_or_says_why_not(self):
        plots = [plot for name in ("compare", "scale") for plot in (self.folder / name).glob("*.svg")]
        self.assertEqual(self.page.count("<figure>"), len(plots))
        if not plots:
            self.assertIn("no plots", self.page)

    def test_escapes_what_it_reads(self):
        folder = self.folder / "odd"
        shutil.copytree(self.folder / "scale", folder)
        text = (folder / "report.md").read_text(encoding="utf-8")
        (folder / "report.md").write_text(text.replace("Weak scaling", "<script>alert(1)</script> & more"), encoding="utf-8")
        kolo_train("report", "odd", "--output", "odd.html", folder=self.folder)
        page = (self.folder / "odd.html").read_text(encoding="utf-8")
        self.assertNotIn("<script>", page)
        self.assertIn("&lt;script&gt;alert(1)&lt;/script&gt; &amp; more", page)

    def test_warns_of_runs_of_different_builds(self):
        folder = self.folder / "older"
        shutil.copytree(self.folder / "scale", folder)
        text = (folder / "report.json").read_text(encoding="utf-8")
        (folder / "report.json").write_text(re.sub(r'"commit": "[^"]*"', '"commit": "123abc"', text), encoding="utf-8")
        kolo_train("report", "older", "scale", "--output", "older.html", folder=self.folder)
        self.assertIn("WARNING: the runs do not have the same commit", (self.folder / "older.html").read_text(encoding="utf-8"))

    def test_is_refused_without_a_report_and_leaves_an_older_page(self):
        (self.folder / "empty").mkdir()
        self.assertIn("'empty' has no report.json", kolo_train("report", "scale", "empty", "--output", "page.html", folder=self.folder, code=2))
        self.assertIn("expected one folder", kolo_train("report", folder=self.folder, code=2))
        self.assertIn("cannot be written", kolo_train("report", "scale", "--output", "missing/page.html", folder=self.folder, code=1))
        shutil.copytree(self.folder / "scale", self.folder / "broken")
        (self.folder / "broken" / "report.json").write_text('{"format": "kolo-', encoding="utf-8")
        self.assertIn("broken: its report cannot be read", kolo_train("report", "broken", "--output", "page.html", folder=self.folder, code=1))
        self.assertEqual((self.folder / "page.html").read_text(encoding="utf-8"), self.page)
        self.assertEqual(list(self.folder.glob(".*.part")), [])


@unittest.skipUnless(IN_BROWSER, "the other tests")
@unittest.skipUnless(BROWSER, "skipped: no chromium")
class Browser(HtmlReport):
    def browse(self, *words):
        profile = self.folder / "profile"
        return subprocess.run([BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", f"--user-data-dir={profile}", *words],
                              capture_output=True, text=True, timeout=120, check=True).stdout

    def width_of(self, page):
        frame = self.folder / "frame.html"
        frame.write_text(FRAME.format(width=PHONE, page=html.escape(page, quote=True)), encoding="utf-8")
        found = re.search(r"measured (\d+) of (\d+)", self.browse("--dump-dom", frame.as_uri()))
        self.assertIsNotNone(found)
        self.assertLessEqual(int(found[2]), PHONE)
        return int(found[1])

    def test_is_as_wide_as_a_phone(self):
        self.assertLessEqual(self.width_of(self.page), PHONE)
        self.assertGreater(self.width_of(self.page + "<div style='width: 600px'>a wide thing</div>"), PHONE)  # it would be seen

    def test_is_printed(self):
        paper = self.folder / "page.pdf"
        self.browse(f"--print-to-pdf={paper}", (self.folder / "page.html").as_uri())
        self.assertTrue(paper.read_bytes().startswith(b"%PDF"))
        self.assertGreater(paper.stat().st_size, 10_000)


if __name__ == "__main__":
    if IN_BROWSER and not BROWSER:
        print("skipped: no chromium")
    unittest.main(argv=sys.argv[:1])
