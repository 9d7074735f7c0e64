#!/usr/bin/env python3
"""Tests of the house rules: each violation planted in a small temporary tree is found once, in its place."""

import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))

import cpp  # noqa: E402
import rules  # noqa: E402

CLEAN = {f"{folder}/README.md": "# What and how\n" for folder in rules.FOLDERS} | {
    "transports/CMakeLists.txt": "kolo_public_headers(transports transport.h)\n"
                                 "kolo_component(transport tcp)\nkolo_component(transport shm)\n",
    "transports/transport.h": "// The contract.\n#pragma once\n",
    "transports/base/adapter.h": "// Private.\n#pragma once\n",
    "transports/tcp/transport.h": "// TCP.\n#pragma once\n",
    "transports/shm/transport.h": "// Memory.\n#pragma once\n",
    "collectives/schedule.h": "// The language.\n#pragma once\n",
    "tensor/shape.h": "// Shapes.\n#pragma once\n",
}


def findings_in(files, known=None):
    """Findings in a clean tree with these files added or replaced."""
    with tempfile.TemporaryDirectory() as folder:
        contents = CLEAN | files
        for path, text in contents.items():
            target = Path(folder) / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text)
        tree = rules.Tree(Path(folder), sorted(contents))
        found = [finding for rule in rules.RULES for finding in rule(tree)]
        return found + list(rules.sizes(tree, known or {}))


def cpp_file(body, path="collectives/x.cpp"):
    return {path: "// An idea.\n" + body + "\n"}


class Rules(unittest.TestCase):
    def assert_one(self, files, rule, words, known=None):
        found = findings_in(files, known)
        self.assertEqual([finding.rule for finding in found], [rule], "\n".join(map(str, found)))
        self.assertIn(words, found[0].message)

    def assert_clean(self, files, known=None):
        self.assertEqual(list(map(str, findings_in(files, known))), [])

    def test_a_clean_tree_has_no_findings(self):
        self.assert_clean({})

    def test_arrows_point_one_way(self):
        include = '#include "{}"'.format
        self.assert_one(cpp_file(include("collectives/schedule.h"), "transports/x.cpp"), "include", "one way")
        self.assert_one(cpp_file(include("tensor/shape.h")), "include", "one way")
        self.assert_one(cpp_file(include("transports/transport.h"), "tensor/x.cpp"), "include", "one way")
        self.assert_one(cpp_file(include("transports/base/adapter.h")), "include", "only public headers")
        self.assert_one(cpp_file(include("transport.h"), "transports/x.cpp"), "include", "root-relative")
        self.assert_one(cpp_file(include("transports/shm/transport.h"), "transports/tcp/lanes.cpp"), "include", "sibling")
        self.assert_one(cpp_file(include("transports/transport.h"), "collectives/algorithms/ring.cpp"), "include", "pure")
        self.assert_clean(cpp_file(include("transports/transport.h")))
        itself = {"transports/transport.h": "// The contract.\n#pragma once\n" + include("transports/transport.h") + "\n"}
        self.assert_one(itself, "include", "installed")
        self.assert_clean(cpp_file(include("transports/base/adapter.h"), "test/x.cpp"))

    def test_nothing_includes_tests(self):
        files = cpp_file('#include "test/y.h"') | {"test/y.h": "// For tests.\n#pragma once\n"}
        self.assert_one(files, "include", "nothing includes test/")

    def test_libraries_stay_in_their_places(self):
        self.assert_one(cpp_file("#include <sys/socket.h>"), "include", "no socket")
        self.assert_one(cpp_file("#include <dnnl.hpp>", "tensor/x.cpp"), "include", "one backend")
        self.assert_one(cpp_file("#include <nlohmann/json.hpp>"), "include", "programs")
        self.assert_one({"collectives/x.h": "// X.\n#pragma once\n#include <fmt/format.h>\n"}, "include", "fmt")

    def test_installed_headers_name_what_is_installed(self):
        for named in ("README.md", "adapter.h", "transports/base/adapter.h", "test/x.cpp"):
            self.assert_one({"transports/transport.h": f"// See {named}.\n#pragma once\n"}, "installed", named)
        self.assert_clean({"transports/transport.h": "// See transports/transport.h, share/doc/kolo/transports/GUIDE.md, libx.so.\n"
                                                     "#pragma once\n"})
        self.assert_clean({"transports/base/adapter.h": "// See README.md.\n#pragma once\n"})

    def test_own_header_comes_first(self):
        files = cpp_file('#include "collectives/schedule.h"\n#include "collectives/x.h"')
        self.assert_one(files | {"collectives/x.h": "// X.\n#pragma once\n"}, "own-header-first", "compiles alone")

    def test_long_things_may_only_shrink(self):
        long_file = cpp_file("\n" * 600)
        self.assert_one(long_file, "size", "something wants out")
        self.assert_one(long_file, "size", "grown", {"file collectives/x.cpp": 550})
        self.assert_one(long_file, "size", "lower", {"file collectives/x.cpp": 700})
        self.assert_clean(long_file, {"file collectives/x.cpp": 602})
        self.assert_one({}, "size", "remove it", {"file collectives/gone.cpp": 600})
        function = "int f(int a) {\n" + "  a++;\n" * 70 + "  return a;\n}"
        self.assert_one(cpp_file(f"namespace kolo {{\nclass A {{\n{function}\n}};\n}}"), "size", "function collectives/x.cpp f")

    def test_readmes_are_short_and_narrow(self):
        self.assert_one({"bench/README.md": "a line\n" * 300}, "size", "readme bench/README.md has 300 lines")
        self.assert_one({"bench/README.md": "word " * 30 + "\n"}, "size", "wide bench/README.md")
        self.assert_clean({"bench/README.md": "word " * 30 + "\n"}, {"wide bench/README.md": 1})
        self.assert_clean({"bench/README.md": "| " + "cell | " * 30 + "\n    " + "command " * 30 + "\n"})
        self.assert_clean({"bench/results/2026/README.md": "word " * 30 + "\n" * 300})

    def test_unclear_words_may_only_become_fewer(self):
        for text in ("// Whoever sends.\n", "// An idea.\nauto x = \"nobody sends\";\n"):
            self.assert_one({"transports/x.cpp": text}, "unclear", "name the rank")
        self.assert_one({"train/x.py": "# who sends\n"}, "unclear", "1 times")
        one = {"transports/x.cpp": "// Whom it knows.\nint who = 1;\n"}
        self.assert_clean(one, {"unclear transports": 1})
        self.assert_one(one, "size", "lower its number", {"unclear transports": 2})
        self.assert_one({}, "size", "remove it", {"unclear transports": 2})

    def test_habits(self):
        for body, rule in (
            ('auto x = std::getenv("X");', "environment"),
            ("auto x = new Thing;", "naked-new"),
            ("void f() { std::abort(); }", "exit"),
            ("auto x = std::format(1);", "format"),
            ("using namespace std;", "using-namespace"),
            ("#ifdef KOLO_HAVE_JPEG\n#endif", "feature-test"),
            ("int f(int x) { assert(x); return x; }", "assert"),
            ("int ctx = 1;", "words"),
            ("void makeHelper();", "words"),
            ('auto x = "tcp";', "transport-name"),
            ("int tcp_port = 1;", "transport-name"),
            ("int x;\t", "blanks"),
            ("int x; ", "blanks"),
            ("int x;" + " " * 100 + "int y;", "columns"),
        ):
            with self.subTest(body):
                found = {finding.rule for finding in findings_in(cpp_file(body))}
                self.assertEqual(found, {rule})
        self.assert_one(cpp_file("void f() { std::this_thread::sleep_for(x); }", "test/x.cpp"), "sleep", "do not sleep")
        self.assert_one(cpp_file('auto x = Catch::Contains("y");', "test/x.cpp"), "catch", "ContainsSubstring")

    def test_variables_are_known_where_unknown_ones_are_told(self):
        for path, text in (("test/x.sh", '#!/bin/sh\necho "${KOLO_SPEED:-1}"\n'), ("bench/x.py", 'os.environ.get("KOLO_SPEED")\n'),
                           ("bench/y.py", "os.environ['KOLO_SPEED']\n"), ("CMakeLists.txt", "set(X $ENV{KOLO_SPEED})\n"),
                           ("test/x.h", '// X.\n#pragma once\nauto x = std::getenv("KOLO_SPEED");\n')):
            with self.subTest(path):
                self.assert_one({path: text}, "variable", "KOLO_SPEED is read here")
                self.assert_clean({path: text, "transports/settings.cpp": '// X.\nauto x = "KOLO_SPEED";\n'})
        self.assert_clean({"CMakeLists.txt": "set(X ${KOLO_SPEED})\n"})

    def test_comments_and_strings_are_not_code(self):
        self.assert_clean(cpp_file('// new things, as with tcp; assert(x)\nauto x = "new Thing, assert(x)";'))
        self.assert_clean(cpp_file("int x = 1'000'000;\nstd::common_type_t<int> y;\nvoid abort(int reason);"))

    def test_headers_begin_well(self):
        self.assert_one({"tensor/x.h": "// X.\n#ifndef X\n#define X\n#endif\n"}, "pragma-once", "#pragma once")
        self.assert_one({"tensor/x.h": "#pragma once\nint x;\n"}, "opening", "opens with a comment")
        self.assert_clean({"tensor/x.h": "#pragma once\n#include <vector>\nnamespace kolo {\n// X.\nint x;\n}\n"})

    def test_the_top_level_stays_clean(self):
        self.assert_one({"notes.txt": "todo\n"}, "layout", "at the top")
        self.assert_one({"tensor/misc.txt": "x\n"}, "words", "name the idea")


class Functions(unittest.TestCase):
    def test_are_found_wherever_they_are(self):
        text = """
namespace kolo {
struct Plain { int x = f({1}); };
enum class E { a };
template <typename T>
  requires std::integral<T>
T add(T a, T b) {
  if (a) { return b; }
  return [&] { return a; }();
}
Thing::Thing(int a) : a_(a), b_{a} {
}
const int table[] = {f(1), 2};
constexpr auto kRaw = R"(void g() { )";
bool operator==(const Plain& a, const Plain& b) { return a.x == b.x; }
}
TEST_CASE("a statement") {
  REQUIRE(true);
}
"""
        found = [(function.name, function.lines) for function in cpp.functions(text)]
        self.assertIn(("add", 6), found)
        self.assertIn(("Thing", 2), found)
        self.assertIn(("a statement", 3), found)
        self.assertIn("operator==", [name for name, _ in found])


if __name__ == "__main__":
    unittest.main()
