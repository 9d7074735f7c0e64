#!/usr/bin/env python3
"""kolo-bench plot: lines and bars, peers and limits.

  plot_test.py KOLO_BENCH [test...]
"""

import contextlib
import io
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import unittest
from importlib.util import find_spec
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "bench/output"))
import plot  # noqa: E402  # pylint: disable=wrong-import-position
from rows import bandwidth, message_rate, size_text  # noqa: E402  # pylint: disable=wrong-import-position

BENCH = ""
PATIENCE_S = 240
# The units of the pictures.
KOLO, LIMIT, FLOOR, WHITE = "#0b6e4f", "#404040", "#6b6b6b", "#ffffff"
PNG_END = b"IEND\xaeB`\x82"
HOLLOW = "hollow: cores moved or were disturbed"


def row(library, transport, size, median, **more):
    return {"library": library, "transport": transport, "collective": "allreduce", "algorithm": "ring", "ranks": 2, "bytes": size,
            "iterations": 9, "median_us": median, "p10_us": median, "p90_us": median, "algbw_GBps": size / median / 1e3,
            "busbw_GBps": size / median / 1e3, "wrong": 0, **more}


def styled(picture, tag, *styles):
    """The elements of an SVG with this style, without those of the legend."""
    axes = picture.split('<g id="legend_')[0]
    return [element for element in re.findall(rf"<{tag} [^>]*>", axes) if all(style in element for style in styles)]


def dashed(picture, color):
    """The number of points in each unbroken piece of a dashed line."""
    lines = styled(picture, "path", "stroke-dasharray", f"stroke: {color}")
    drawn = [re.search(r' d="([^"]*)"', line).group(1) for line in lines]
    return [len(re.findall("[ML]", piece)) for path in drawn for piece in re.findall("M[^M]*", path)]


def markers(picture, color, fill=None):
    return len(styled(picture, "use", f"fill: {fill or color}", f"stroke: {color}"))


def height_of(picture, text):
    """The distance of the text from the picture's top."""
    place = re.search(rf'<!-- {re.escape(text)} -->\s*<g [^>]*translate\(([-\d.]+) ([-\d.]+)\)', picture)
    return float(place.group(2))


def draw_here(*words):
    """Runs plot.py in this process, because a new process takes a second to import matplotlib. Returns exit code and standard
    error."""
    said = io.StringIO()
    with mock.patch.object(sys, "argv", ["plot.py", *words]), contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(said):
        try:
            plot.main()
        except SystemExit as end:
            return end.code, said.getvalue()
    return 0, said.getvalue()


class Drawing(unittest.TestCase):
    """Makes pictures of rows."""

    errors = ""  # standard error of the last plot

    def files(self, rows, *more, only=None):
        """Returns {name: bytes}. A picture takes a tenth of a second, so `only` names the kinds that a test looks at."""
        kinds = {"PICTURES": only or plot.PICTURES, "PAGES": only or plot.PAGES}
        with tempfile.TemporaryDirectory() as folder, mock.patch.multiple(plot, **kinds):
            path = Path(folder) / "rows"
            path.write_text("".join(json.dumps(line) + "\n" for line in rows))
            code, self.errors = draw_here(str(path), "--out", folder + "/plots", *more)
            if "matplotlib is missing" in self.errors:
                self.skipTest("matplotlib is not installed")
            self.assertEqual(code, 0, self.errors)
            return {entry.name: entry.read_bytes() for entry in (Path(folder) / "plots").iterdir()}

    def plot(self, rows, *only):
        """Returns {name: SVG}: all pictures, or only those of these kinds."""
        return {name: content.decode() for name, content in self.files(rows, "--format", "svg", only=only).items()}

    def time_of(self, rows):
        """The picture of an all-reduce's times."""
        return self.plot(rows, "time")["allreduce_2_ranks_time.svg"]

    def bars_of(self, rows):
        return self.plot(rows, "bars")["allreduce_2_ranks_bars.svg"]


class Plot(Drawing):
    def test_pictures_have_the_requested_formats(self):
        rows = [row("kolo", "shm", 8, 5)]
        for asked, suffixes in (([], {".png", ".svg"}), (["--format=pdf,png,pdf"], {".pdf", ".png"})):
            files = self.files(rows, *asked, only=["time"])
            self.assertEqual(({Path(name).suffix for name in files}, len(files)), (suffixes, 2))
            self.assertTrue(all(content.startswith((b"%PDF", b"\x89PNG", b"<?xml")) for content in files.values()))
        self.assertEqual({Path(name).suffix for name in self.files(rows, "--overview", "--format", "svg", only=["time"])}, {".svg"})
        done = subprocess.run([BENCH, "plot", "rows", "--format", "png,jpg"], capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        self.assertEqual((done.returncode, done.stderr), (2, "kolo-bench plot: --format jpg: expected one of png, svg, pdf\n"))

    def test_peers_and_limits_are_lines_and_bars(self):
        rows = [row(library, transport, size, size / 10 + 5, limit_us=size / 20 + 1)
                for library, transport in (("kolo", "shm"), ("openmpi", "shm"), ("mpich", "shm"), ("gloo", "tcp"))
                for size in (8, 4096, 1 << 20, 1 << 24)]
        pictures = self.plot(rows)
        self.assertEqual(set(pictures), {f"allreduce_2_ranks_{what}.svg" for what in ("time", "bandwidth", "bars")})
        for text in pictures.values():
            for name in ("kolo over shm", "openmpi over shm", "mpich over shm", "gloo over tcp", "limit over shm"):
                self.assertIn(f"<!-- {name}", text)

    def test_a_choice_of_algorithm_that_changes_with_the_size_is_one_line(self):
        rows = [row("kolo", "shm", size, size, algorithm=name) for size, name in ((8, "one_shot"), (64, "ring"), (512, "ring"))]
        picture = self.time_of(rows)
        self.assertIn("<!-- kolo over shm -->", picture)
        both = rows + [row("kolo", "shm", 8, 9, algorithm="ring")]  # both algorithms were named, so each has a line
        picture = self.time_of(both)
        self.assertIn("<!-- kolo over shm, ring -->", picture)
        self.assertIn("<!-- kolo over shm, one_shot -->", picture)

    def test_peers_of_one_library_and_other_settings_have_separate_lines(self):
        sizes = (8, 4096)
        rows = [row("openmpi", "shm", size, 2 * size, **more) for size in sizes for more in ({"peer": "openmpi"}, {"peer": "openmpi:ring"})]
        rows += [row("kolo", "shm", size, size, limit_us=1, **more) for size in sizes
                 for more in ({}, {"form": "persistent"}, {"memory": "allocated"}, {"type": "float64"}, {"network": "1Gbit,10ms"})]
        rows += [row("kolo", "tcp", 8, 5, window=window) for window in (1, 64)]
        picture = self.time_of(rows)
        for name in ("openmpi over shm", "openmpi:ring over shm", "kolo over shm", "kolo over shm, persistent", "kolo over shm, allocated",
                     "kolo over shm, float64", "kolo over shm, network 1Gbit,10ms", "limit over shm", "limit over shm, allocated", "limit over shm, float64",
                     "kolo over tcp, 1", "kolo over tcp, 64"):
            self.assertIn(f"<!-- {name} -->", picture)
        self.assertNotIn("limit over shm, persistent", picture)

    def test_no_two_lines_have_the_same_color(self):
        rows = [row(library, transport, 8, 5, limit_us=1, form=form) for library in ("kolo", "gloo", *(f"peer{i}" for i in range(6)))
                for transport in ("shm", "tcp") for form in ("blocking", "async", "persistent")]
        rows += [row("floor", transport, 8 << i, 1, memory=f"kind {i}") for transport in ("shm", "tcp") for i in range(4)]
        looks = plot.looks_of(plot.series_of(rows).values())
        self.assertEqual(len(looks), 58)
        self.assertEqual(len({look.color for look in looks.values()}), 58)

    def test_lines_of_one_library_have_different_markers(self):
        rows = [row("kolo", "tcp", 8, 5, algorithm=f"algorithm {i}") for i in range(9)]
        rows += [row("kolo", "tcp", 8, 5, form="async", progress=progress, hidden=0.5, alone_us=9, compute_us=9)
                 for progress in ("none", "polling", "thread")]
        for lines in plot.series_of(rows).values():
            markers_of = [look.marker for look in plot.looks_of([lines]).values() if not look.dashes]
            self.assertEqual(len(set(markers_of)), len(markers_of))
            self.assertGreaterEqual(len(markers_of), 3)

    def test_a_name_has_the_same_style_in_every_picture_and_legend(self):
        ways = {"allreduce": ("both ways, bbr", "both ways, reno"), "broadcast": ("one way, reno", "one way, bbr")}
        rows = [row("floor", "tcp", size, 5, collective=collective, algorithm=algorithm)
                for collective, algorithms in ways.items() for size, algorithm in zip((8, 64), algorithms)]
        rows += [row("kolo", "tcp", size, 9, collective=collective) for collective in ways for size in (8, 64)]
        pictures = self.plot(rows, "time")
        drawn = [path for collective in ways for path in re.findall(r"<path [^>]*dasharray[^>]*>", pictures[f"{collective}_2_ranks_time.svg"])]
        self.assertEqual(len(drawn), 4)  # a line and its legend entry each
        self.assertEqual(len({re.search('style="([^"]*)"', path).group(1).replace("; stroke-linecap: butt", "") for path in drawn}), 1)

    def test_more_than_five_lines_have_strokes_in_place_of_bands(self):
        for count in (5, 6):
            rows = [row("kolo", "shm", size, 50 + i, p10_us=9, p90_us=99, algorithm=f"algorithm {i}") for size in (8, 64) for i in range(count)]
            pictures = self.plot(rows, "time", "bandwidth")
            for what in ("time", "bandwidth"):
                picture = pictures[f"allreduce_2_ranks_{what}.svg"]
                strokes = styled(picture, "path", "stroke-opacity: 0.8")
                self.assertEqual(len(styled(picture, "use", "fill-opacity: 0.15")), 5 if count == 5 else 0)
                self.assertEqual(len(strokes), 0 if count == 5 else 2 * count)
                places = {re.search(r' d="M ([-\d.]+)', stroke).group(1) for stroke in strokes}
                self.assertEqual(len(places), len(strokes))  # no two at the same place
            shown = "band" if count == 5 else "strokes"
            self.assertIn(f"<!-- time, us (median; {shown}: 10th to 90th percentile) -->", pictures["allreduce_2_ranks_time.svg"])

    def test_a_computation_has_no_transport_and_is_named_if_there_are_several(self):
        both = [row("kolo", transport, 8, 5, form="async", progress="none", hidden=0.5, alone_us=9, compute_us=compute)
                for transport, compute in (("shm", 4), ("tcp", 6))]
        one, two = (list(plot.series_of(rows)["allreduce_overlap", 2]) for rows in (both[:1], both))
        self.assertEqual([name for name in one if "computation" in name], ["computation alone"])
        self.assertEqual([name for name in two if "computation" in name], ["computation alone, for shm, async", "computation alone, for tcp, async"])

    def test_numbers_have_three_digits(self):
        self.assertEqual([plot.time_text(time) for time in (0.2, 9.996, 22, 99.96, 245, 3997.6)], ["0.200", "10.0", "22.0", "100", "245", "3,998"])

    def test_numbers_below_a_panel_without_sizes_do_not_overlap(self):
        if find_spec("matplotlib") is None:
            self.skipTest("matplotlib is not installed")
        os.environ["MPLBACKEND"] = "Agg"
        from matplotlib import pyplot
        figure, axes = pyplot.subplots(figsize=(5.6, 4.2))
        self.addCleanup(pyplot.close, figure)
        rows = [{"library": f"peer{i}", "transport": "shm", "bytes": 0, "median_us": time} for i, time in enumerate((0.2, 0.5, 4000))]
        lines = {line["library"]: [line] for line in rows}
        plot.fill_without_sizes(pyplot, axes, lines, plot.looks_of([lines]))
        figure.canvas.draw()
        low, high = axes.get_xlim()
        labels = [label for label in axes.get_xticklabels(which="both") if label.get_text() and low <= label.get_position()[0] <= high]
        boxes = sorted((label.get_window_extent().x0, label.get_window_extent().x1) for label in labels)
        self.assertGreater(len(boxes), 3)
        self.assertTrue(all(one[1] < other[0] for one, other in zip(boxes, boxes[1:])), [label.get_text() for label in labels])

    def test_closed_standard_output_is_reported_and_leaves_whole_pictures(self):
        reader, writer = os.pipe()
        os.close(reader)
        with tempfile.TemporaryDirectory() as folder:
            path, plots = Path(folder) / "rows", Path(folder) / "plots"
            path.write_text(json.dumps(row("kolo", "shm", 8, 5)) + "\n")
            done = subprocess.run([BENCH, "plot", str(path), "--out", str(plots)], stdout=writer, stderr=subprocess.PIPE, text=True,
                                  timeout=PATIENCE_S, check=False)
            os.close(writer)
            if "matplotlib is missing" in done.stderr:
                self.skipTest("matplotlib is not installed")
            self.assertEqual((done.returncode, done.stderr), (1, "kolo-bench plot: cannot write to standard output: Broken pipe\n"))
            self.assertEqual([entry.name for entry in plots.iterdir()], ["allreduce_2_ranks_time.png"])
            self.assertTrue((plots / "allreduce_2_ranks_time.png").read_bytes().endswith(PNG_END))

    def drawn_on_a_disk_of(self, size):
        """Returns standard error, and the remaining files as {name: bytes}. No file can have more than `size` bytes."""
        with tempfile.TemporaryDirectory() as folder:
            path, plots = Path(folder) / "rows", Path(folder) / "plots"
            path.write_text(json.dumps(row("kolo", "shm", 8, 5)) + "\n")
            before = resource.getrlimit(resource.RLIMIT_FSIZE)
            resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
            try:
                code, said = draw_here(str(path), "--out", str(plots))
            finally:
                resource.setrlimit(resource.RLIMIT_FSIZE, before)
            self.assertEqual((code, len(said.splitlines())), (1, 1), said)
            return said, {entry.name: entry.read_bytes() for entry in plots.iterdir()} if plots.exists() else None

    def test_a_full_disk_leaves_no_partial_picture(self):
        most = max(map(len, self.files([row("kolo", "shm", 8, 5)]).values())) - 1
        said, left = self.drawn_on_a_disk_of(most)
        self.assertRegex(said, "^kolo-bench plot: cannot write to .*/plots: File too large\n$")
        for name, content in left.items():
            self.assertTrue(content.endswith((PNG_END, b"</svg>\n")), name)

    def test_a_plot_without_pictures_leaves_no_folder(self):
        if find_spec("matplotlib") is None:
            self.skipTest("matplotlib is not installed")
        said, left = self.drawn_on_a_disk_of(9)
        self.assertIn("File too large", said)
        self.assertIsNone(left)

    def test_overlapped_operations_have_pictures_of_their_own(self):
        sizes = (8, 4096)
        rows = [row("kolo", "tcp", size, size + 5, form="async", progress=progress, hidden=hidden, alone_us=size + 1, compute_us=size)
                for size in sizes for progress, hidden in (("none", -0.02), ("thread", 0.8))]
        pictures = self.plot(rows + [row("kolo", "tcp", size, size) for size in sizes])
        self.assertEqual({name for name in pictures if "overlap" in name},
                         {f"allreduce_overlap_2_ranks_{what}.svg" for what in ("time", "hidden")})
        time, hidden = (pictures[f"allreduce_overlap_2_ranks_{what}.svg"] for what in ("time", "hidden"))
        for name in ("kolo over tcp, async, progress by none", "kolo over tcp, async, progress by thread"):
            self.assertIn(f"<!-- {name} -->", time)
            self.assertIn(f"<!-- {name} -->", hidden)
        for name in ("operation alone over tcp, async", "computation alone"):
            self.assertIn(f"<!-- {name} -->", time)
            self.assertNotIn(f"<!-- {name} -->", hidden)
        self.assertIn("<!-- 100 % -->", hidden)
        self.assertIn("<!-- allreduce beside a computation, 2 ranks -->", hidden)
        self.assertNotIn("progress", pictures["allreduce_2_ranks_time.svg"])

    def test_floors_have_no_picture_beside_libraries_and_a_page_if_alone(self):
        floors = [row("floor", "shm", size, 5, collective=collective, ranks=ranks, algorithm="through slots")
                  for size in (8, 64) for collective in ("allreduce", "broadcast") for ranks in (2, 4)]
        names = self.files(floors + [row("kolo", "shm", size, 5) for size in (8, 64)], only=["time"])
        self.assertEqual({name.split("_ranks_")[0] for name in names}, {"allreduce_2"})
        self.assertEqual(set(self.files(floors)), {f"floors_{ranks}_ranks_{what}.png" for ranks in (2, 4) for what in ("time", "bandwidth")})

    def test_sizes_and_counts_are_printed_as_words(self):
        self.assertEqual([size_text(size) for size in (0, 1023, 32768, 32772, 3 << 19, 1023 << 10, (1 << 20) - 4, (3 << 40) + 1)],
                         ["0 B", "1023 B", "32 KiB", "32.0 KiB", "1.5 MiB", "1023 KiB", "1.0 MiB", "3072.0 GiB"])
        rows = [row("kolo", "shm", size, size, ranks=1, collective="push", servers=1, run={"machine": "M", "cores": 1, "kernel": "K", "commit": "c"})
                for size in (8, 32772)]
        picture = self.plot(rows, "time")["push_1_ranks_time.svg"]
        for text in ("kolo over shm, 1 server", "32.0 KiB", "push, 1 rank", "M, 1 core, K, kolo at c"):
            self.assertIn(f"<!-- {text} -->", picture)

    def test_an_overview_has_a_picture_for_each_transport_and_number_of_ranks(self):
        rows = [row(library, "tcp" if library == "gloo" else transport, size, size + 5, ranks=ranks, collective=collective, limit_us=1)
                for transport, ranks in (("shm", 2), ("tcp", 2), ("shm", 4))
                for collective, sizes in (("allreduce", (8, 4096)), *([("barrier", (0,))] if ranks == 4 else []))
                for size in sizes for library in ("kolo", "gloo")]
        names = [f"{page}_{what}.png" for page in ("shm_2_ranks", "shm_4_ranks", "tcp_2_ranks") for what in ("bandwidth", "time")]
        self.assertEqual(sorted(self.files(rows, "--overview")), names)

    def test_a_limit_is_drawn_only_where_it_is_known(self):
        known = (1, 2, None, 3, 4, 5, None, 6)  # the last one has no neighbor
        rows = [row("kolo", "shm", 8 << 2 * i, 10 + i, limit_us=limit) for i, limit in enumerate(known)]
        pictures = self.plot(rows, "time", "bandwidth")
        self.assertEqual(len(pictures), 2)
        for picture in pictures.values():
            self.assertEqual(dashed(picture, LIMIT), [2, 3, 1])
            self.assertEqual(markers(picture, LIMIT), 1)
        nowhere = self.plot([row("kolo", "shm", size, 5, limit_us=None) for size in (8, 64)])
        for picture in nowhere.values():
            self.assertNotIn("limit", picture)

    def test_a_form_without_a_known_limit_removes_no_other_limit(self):
        rows = [row("kolo", "shm", size, 5, limit_us=limit, form=form)
                for size in (8, 64, 512) for form, limit in (("blocking", 2), ("persistent", None))]
        self.assertEqual(dashed(self.time_of(rows), LIMIT), [3])

    def test_a_single_size_is_visible(self):
        pictures = self.plot([row("kolo", "shm", 4096, 20, p10_us=10, p90_us=40, limit_us=9)], "time", "bandwidth")
        self.assertEqual(len(pictures), 2)
        for picture in pictures.values():
            self.assertEqual((markers(picture, LIMIT), markers(picture, KOLO)), (1, 1))
            self.assertEqual(len(styled(picture, "path", f"stroke: {KOLO}", "stroke-opacity: 0.3")), 1)

    def test_points_measured_while_cores_moved_are_hollow(self):
        sizes = (8, 64, 512, 4096)
        rows = [row("kolo", "shm", size, 5, regime=regime) for size, regime in zip(sizes, ("near", "moved", "far", "disturbed"))]
        pictures = self.plot(rows)
        for what in ("time", "bandwidth"):
            self.assertEqual(markers(pictures[f"allreduce_2_ranks_{what}.svg"], KOLO, WHITE), 2)
        self.assertEqual(len(styled(pictures["allreduce_2_ranks_bars.svg"], "path", f"fill: {WHITE}", f"stroke: {KOLO}")), 2)
        for picture in pictures.values():
            self.assertEqual(picture.count(f"<!-- {HOLLOW} -->"), 1)
        for picture in self.plot([{**line, "regime": "near"} for line in rows]).values():
            self.assertNotIn(HOLLOW, picture)
            self.assertEqual(markers(picture, KOLO, WHITE), 0)

    def test_an_overview_marks_points_where_cores_moved(self):
        for size, collective in ((8, "allreduce"), (0, "barrier")):
            still, moved = (self.files([row("kolo", "shm", size, 5, collective=collective, regime=regime)], "--overview", only=["time"])
                            for regime in ("near", "moved"))
            self.assertEqual(set(still), set(moved))
            self.assertNotEqual(still["shm_2_ranks_time.png"], moved["shm_2_ranks_time.png"])

    def test_a_disturbed_floor_is_discarded(self):
        regimes = ("near", "near", "disturbed", "near", "moved", "near")
        rows = [row("floor", "shm", 8 << 2 * i, 5.25 + i, algorithm="in one line", regime=regime)
                for i, regime in enumerate(regimes)]
        pictures = self.plot(rows, "time", "bars")
        picture = pictures["allreduce_2_ranks_time.svg"]
        self.assertEqual(dashed(picture, FLOOR), [2, 3])
        self.assertEqual((markers(picture, FLOOR), markers(picture, FLOOR, WHITE)), (0, 1))
        self.assertNotIn("<!-- 7.25 -->", pictures["allreduce_2_ranks_bars.svg"])
        rows.append({**rows[2], "regime": "far"})  # the same point measured again
        self.assertEqual(dashed(self.time_of(rows), FLOOR), [6])

    def test_legends_are_below_the_axes(self):
        rows = [row(library, "shm", size, 5) for library in ("kolo", "mpich") for size in (8, 64)]
        pictures = self.plot(rows)
        for what, lowest in (("time", "size"), ("bandwidth", "size"), ("bars", "64 B")):
            picture = pictures[f"allreduce_2_ranks_{what}.svg"]
            for name in ("kolo over shm", "mpich over shm"):
                self.assertGreater(height_of(picture, name), height_of(picture, lowest))

    def test_numbers_have_one_format(self):
        far_apart = [row("kolo", "shm", 8 << 5 * i, 5000) for i in range(5)]  # 1.6e-6 GB/s at least
        pictures = self.plot(far_apart + [row("mpich", "shm", 8, 999.7)])
        self.assertIn("<!-- 0.00001 -->", pictures["allreduce_2_ranks_bandwidth.svg"])
        self.assertIn("<!-- 5,000 -->", pictures["allreduce_2_ranks_bars.svg"])
        near_each_other = self.plot([row("kolo", "shm", size, 5000 + size) for size in (8, 64)])  # no power of ten between the values
        self.assertRegex(near_each_other["allreduce_2_ranks_time.svg"], r"<!-- \d,\d{3} -->")
        for picture in (*pictures.values(), *near_each_other.values()):
            texts = re.findall("<!-- (.*) -->", picture)
            self.assertEqual([text for text in texts if re.search(r"\de[-+]\d|\^|(?<![\d.])\d{4}", text)], [])

    def test_a_dollar_sign_starts_no_formula(self):
        odd = r"$\frac{$_^"
        names = ("transport", "library", "peer", "algorithm", "form", "network", "type")
        rows = [row("kolo", "shm", 8, 6), *({**row("kolo", "shm", 8, 5), name: odd + name} for name in names)]
        pictures = self.plot(rows)
        self.assertEqual(len(pictures), 3)
        for picture in pictures.values():
            for name in names:
                self.assertRegex(picture, f"<!-- .*{re.escape(odd + name)}.* -->")
        run = {"machine": "M$a$" * 300, "cores": 2, "kernel": "K\n", "commit": "$c$"}
        self.assertTrue(self.files([row("kolo", "$x$", 0, 5, collective="barrier", busbw_GBps=None, run=run)], "--overview"))

    def test_hidden_values_beyond_the_axis_are_marked_and_reported(self):
        rows = [row("kolo", "tcp", 8 << i, 9, form="async", progress="thread", hidden=hidden, alone_us=9, compute_us=9)
                for i, hidden in enumerate((0.5, 6.72, -459.1))]
        self.assertIn("<!-- beyond the axis -->", self.plot(rows, "hidden")["allreduce_overlap_2_ranks_hidden.svg"])
        self.assertIn("2 shares of what is hidden are beyond the axis", self.errors)
        self.assertNotIn("<!-- beyond", self.plot(rows[:1], "hidden")["allreduce_overlap_2_ranks_hidden.svg"])
        self.assertEqual(self.errors, "")

    def test_the_last_size_has_a_label(self):
        sizes = [8 << 2 * i for i in range(13)] + [256 << 20]
        pictures = self.plot([row("kolo", "shm", size, 5 + size) for size in sizes], "time", "bandwidth")
        self.assertEqual(len(pictures), 2)
        for picture in pictures.values():
            self.assertIn("<!-- 256 MiB -->", picture)

    def test_a_legend_of_bars_shows_what_is_drawn(self):
        sizes = [8 << i for i in range(8)]
        rows = [row("kolo", "shm", size, 5, limit_us=1 if size == 32 else None, regime="moved") for size in sizes]  # 32 B has no bar
        picture = self.bars_of(rows)
        self.assertNotIn("limit", picture)
        self.assertNotIn(f"fill: {KOLO}", picture)

    def bars_at(self, rows):
        """The left edges of kolo's bars, and the labels below the groups."""
        picture = self.bars_of(rows).split('<g id="legend_')[0]
        edges = [float(edge) for edge in re.findall(rf'<path d="M ([\d.]+) [^"]*"[^>]*style="fill: {KOLO}"', picture)]
        return edges, re.findall(r"<!-- (\d+ (?:B|KiB|MiB)) -->", picture)

    def test_bars_are_drawn_only_at_measured_sizes_without_gaps(self):
        rows = [row(library, transport, size, 5 + size / 1e3) for library, transport, sizes in
                (("kolo", "shm", (8, 4096, 1 << 18, 1 << 22)), ("gloo", "tcp", (8, 4096, 1 << 18, 1 << 22)), ("mpich", "shm", (8, 1 << 22)))
                for size in sizes]
        floors = [row("floor", "shm", 8 << i, 1 + i, algorithm="through slots") for i in range(20)]
        edges, sizes = self.bars_at(rows[:8] + [floor for floor in floors if floor["bytes"] != 1 << 18])
        self.assertEqual((len(edges), sizes), (4, ["8 B", "4 KiB", "256 KiB", "4 MiB"]))
        self.assertGreater(edges[2] - edges[1], edges[1] - edges[0] + 1)  # without a floor the group is narrower and begins later
        self.assertEqual(self.bars_at(rows)[1], ["8 B", "4 MiB"])  # the sizes that all of them have

    def test_messages_of_two_ranks_name_the_direction(self):
        rows = [row("kolo", "shm", size, 20000 + size, collective="p2p_bandwidth", algorithm="segments", window=64, messages_per_s=1e6)
                for size in (8, 64)]
        picture = self.plot(rows, "bars")["p2p_bandwidth_2_ranks_bars.svg"]
        self.assertIn("<!-- kolo over shm, segments -->", picture)
        self.assertIn("<!-- 10,000 -->", picture)

    def test_a_window_of_messages_uses_the_rows_own_bandwidth_and_rate(self):
        fast = row("kolo", "shm", 1024, 64.0, collective="p2p_message-rate", window=64, algbw_GBps=1.024, busbw_GBps=1.024,
                   messages_per_s=1e6)
        pictures = self.plot([fast])
        self.assertEqual({"p2p_message-rate_2_ranks_" + what for what in ("time", "bandwidth", "rate", "bars")},
                         {name.removesuffix(".svg") for name in pictures})
        self.assertIn("<!-- time of 64 messages, us (median; band: 10th to 90th percentile) -->",
                      pictures["p2p_message-rate_2_ranks_time.svg"])
        self.assertIn("<!-- bandwidth, GB/s -->", pictures["p2p_message-rate_2_ranks_bandwidth.svg"])
        self.assertIn("<!-- million messages a second -->", pictures["p2p_message-rate_2_ranks_rate.svg"])
        self.assertAlmostEqual(1.024, bandwidth(fast, "median_us"))
        self.assertAlmostEqual(2.048, bandwidth({**fast, "p10_us": 32.0}, "p10_us"))
        self.assertAlmostEqual(1.0, message_rate(fast, "median_us"))

    def test_an_overview_of_floors_only_is_marked(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "rows"
            path.write_text(json.dumps(row("floor", "shm", 8, 1.0)) + "\n")
            code, said = draw_here("--overview", str(path), "--out", folder + "/plots")
            self.assertEqual((code, len(said.splitlines())), (2, 1), said)
            self.assertIn("an overview takes rows of kolo's or of peers", said)

    def test_rows_that_move_no_data_have_no_bandwidth(self):
        alone = [row("kolo", "inproc", size, 5, ranks=1, algbw_GBps=None, busbw_GBps=None) for size in (8, 64)]
        self.assertEqual(set(self.plot(alone)), {"allreduce_1_ranks_time.svg", "allreduce_1_ranks_bars.svg"})
        self.assertEqual(set(self.files(alone, "--overview")), {"inproc_1_ranks_time.png"})


def use_matplotlib():
    """Restarts under the system's Python if this Python has no matplotlib."""
    if find_spec("matplotlib") is None and sys.executable != plot.SYSTEM_PYTHON and os.path.exists(plot.SYSTEM_PYTHON):
        os.execv(plot.SYSTEM_PYTHON, [plot.SYSTEM_PYTHON, "-B", *sys.argv])


if __name__ == "__main__":
    use_matplotlib()
    BENCH = sys.argv.pop(1)
    unittest.main(verbosity=2)
