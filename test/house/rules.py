"""House rules that a program can check. Each rule takes a Tree and yields Findings, whose messages name the remedy."""

import posixpath
import re
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

import cpp

FOLDERS = ("collectives", "transports", "tensor", "train", "bench", "test", "cmake")
TOP_LEVEL = FOLDERS + ("CMakeLists.txt", "CMakePresets.json", "README.md", "LICENSE", ".ci", ".clang-format",
                       ".clang-tidy", ".gitignore")
LONGEST_FILE = 500
LONGEST_FUNCTION = 60
LONGEST_LINE = 100
LONGEST_README = 200


@dataclass
class Finding:
    path: str
    line: int
    rule: str
    message: str

    def __str__(self):
        return f"{self.path}:{self.line}: [{self.rule}] {self.message}"


@dataclass
class Tree:
    """Files of a checkout, by paths relative to its root; each is read once."""

    root: Path
    paths: list
    texts: dict = field(default_factory=dict)

    def text(self, path):
        if path not in self.texts:
            self.texts[path] = (self.root / path).read_text(encoding="utf-8", errors="replace")
        return self.texts[path]

    def sources(self, *folders):
        """C++ files, all or those in the given folders."""
        for path in self.paths:
            if path.endswith((".h", ".cpp", ".cu", ".cuh")) and (not folders or path.split("/")[0] in folders):
                yield path

    def cmake_words(self, path, function):
        """The arguments of every call of a CMake function in one file."""
        if path not in self.paths:
            return []
        text = re.sub(r"#[^\n]*", "", self.text(path))
        return [match.split() for match in re.findall(rf"\b{function}\s*\(([^)]*)\)", text)]

    def public_headers(self, folder):
        return {f"{folder}/{word}" for words in self.cmake_words(f"{folder}/CMakeLists.txt", "kolo_public_headers")
                for word in words[1:]}

    def installed_headers(self):
        """Headers of the installed libraries, by their paths below include/kolo."""
        for path in self.paths:
            if path.startswith(("transports/", "collectives/")) and path.endswith("CMakeLists.txt"):
                for words in self.cmake_words(path, "kolo_public_headers"):
                    yield from (str(PurePosixPath(path).parent / word) for word in words[1:])

    def transports(self):
        return {words[1] for words in self.cmake_words("transports/CMakeLists.txt", "kolo_component")
                if words[:1] == ["transport"]}


def line_of(text, offset):
    return text.count("\n", 0, offset) + 1


# --- allowed includes --------------------------------------------------------------------------------------------------

_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(["<])([^">]+)[">]', re.MULTILINE)

# Headers of transports/ for the upper layers, though not for users: checks, waiting, topology, the device of a rank.
FOR_THE_FLOORS_ABOVE = {"transports/base/check.h", "transports/base/waiting.h", "transports/base/event_descriptor.h", "transports/base/topology.h", "transports/posix/host/identity.h",
                         "transports/base/copy_words.h", "transports/launch/report_once.h", "transports/base/suggestion.h",
                         "transports/posix/host/streaming_copy.h", "transports/posix/whole_file.h",
                         "transports/cuda/chosen_device.h", "transports/cuda/device.h", "transports/cuda/library.h",
                         "transports/cuda/peer_access.h"}

# External libraries, and the only files that may include them.
OUTSIDE = (
    (r"catch2/", ("test/support/",), "include \"test/support/catch.h\", which hides the difference between Catch2 2 and 3"),
    (r"fmt/", None, "fmt is for .cpp files: a header that includes it would make every user need it"),
    (r"(CLI/|nlohmann/)", ("train/", "bench/", "test/"), "command lines and JSON belong to the programs"),
    (r"(oneapi/)?dnnl", ("tensor/kernels/onednn/",), "oneDNN is hidden in its one backend"),
    (r"matio", ("train/data/",), "reading .mat files is a data set's business"),
    (r"(jpeglib|jerror|png)\.h", ("train/data/image/",), "decoding images is a data set's business"),
    (r"(cuda|cudnn|cublas|nccl)", (".cu", "transports/cuda/", "tensor/arena"), "CUDA stays in .cu files and transports/cuda"),
)

_SYSTEM = re.compile(r"^(sys/(socket|un|epoll|eventfd|poll|select)\.h|netinet/|arpa/|(unistd|fcntl|poll|netdb|ifaddrs)\.h$)")


def _may_include(tree, path, target):
    """None if path may include target, else the reason."""
    folder, wanted = path.split("/")[0], target.split("/")[0]
    if folder in ("bench", "test"):
        return None
    if wanted in ("bench", "test"):
        return f"nothing includes {wanted}/: it looks at all of it, and nothing looks at it"
    if path.startswith("collectives/algorithms/"):
        own = str(PurePosixPath(path).with_suffix(".h"))
        if target not in (own, "collectives/schedule.h") and not target.startswith("collectives/algorithms/"):
            return "an algorithm is a pure function that writes a schedule: collectives/schedule.h and std are all it needs"
    if folder == wanted:
        return None
    allowed = {"transports": (), "collectives": ("transports",), "tensor": (),
               "train": ("collectives", "tensor", "transports")}.get(folder, FOLDERS)
    if wanted not in allowed:
        return f"{folder}/ may include {' and '.join((folder,) + allowed)} only; arrows point one way"
    if wanted == "transports" and target not in tree.public_headers("transports") | FOR_THE_FLOORS_ABOVE:
        return ("of transports, only public headers (those in kolo_public_headers, and the few that rules.py lists) may be "
                "included from above")
    return None


def _is_of(path, name):
    """Whether the file belongs to the transport of that name: it lies in its folder (cuda_ipc lies in cuda/)."""
    return path.startswith(f"transports/{name.removesuffix('_ipc')}/")


def includes(tree):
    """Includes point one way (table in the README). Paths are root-relative, between public headers relative. The own header
    comes first."""
    transports = tree.transports()
    public = set(tree.installed_headers())
    for path in tree.sources():
        text = tree.text(path)
        code = cpp.without_comments(text)
        own = str(PurePosixPath(path).with_suffix(".h"))
        for index, match in enumerate(_INCLUDE.finditer(code)):
            mark, target = match.groups()
            line = line_of(code, match.start())
            if mark == "<":
                yield from _outside(path, line, target)
                continue
            if index == 0 and path.endswith(".cpp") and own in tree.paths and target != own:
                yield Finding(path, line, "own-header-first", f'include "{own}" first: that proves that it compiles alone')
            if target.endswith(".inc"):
                continue
            if path in public:
                resolved = posixpath.normpath(str(PurePosixPath(path).parent / target))
                if resolved not in public:
                    yield Finding(path, line, "include", f'"{target}": an installed header includes other installed headers, by paths '
                                  "relative to itself, so that a program's own file of the same path is not taken for them")
                    continue
                target = resolved
            if target not in tree.paths:
                yield Finding(path, line, "include", f'"{target}" is not a path from the root of the tree; '
                              "includes are root-relative, as in \"transports/transport.h\"")
                continue
            reason = _may_include(tree, path, target)
            mine = [name for name in transports if _is_of(path, name)]
            theirs = [name for name in transports if _is_of(target, name) and not _is_of(path, name)]
            if mine and theirs:
                reason = f"{mine[0]} knows nothing of its sibling {theirs[0]}; what they share has a file of its own"
            if reason:
                yield Finding(path, line, "include", f'"{target}": {reason}')


def _outside(path, line, target):
    for pattern, places, reason in OUTSIDE:
        if not re.match(pattern, target):
            continue
        if places is None:
            bad = path.endswith(".h")
        else:
            bad = not any(path.startswith(place) or (place.startswith(".") and path.endswith(place)) for place in places)
        if bad:
            yield Finding(path, line, "include", f"<{target}>: {reason}")
    if _SYSTEM.match(target) and path.startswith(("collectives/", "tensor/")):
        yield Finding(path, line, "include", f"<{target}>: {path.split('/')[0]}/ knows no socket and no file descriptor; "
                      "ask the transports for what you need")


_NAMED_FILE = re.compile(r"(?<![\w/.<}])(?:[\w-]+/)*[\w-]+\.(?:md|h|cpp|inc|c|py)(?!\w)")


def installed_headers(tree):
    """An installed header names only files that are installed as well."""
    installed = set(tree.installed_headers())
    for path in sorted(installed & set(tree.paths)):
        text = tree.text(path)
        for match in _NAMED_FILE.finditer(text):
            named = match[0]
            readable = {named, f"transports/{named}", str(PurePosixPath(path).parent / named)}
            if not readable & installed and not named.startswith("share/"):
                yield Finding(path, line_of(text, match.start()), "installed",
                              f"this header is installed, and {named} is not: say it here, or name what is installed")


# --- sizes -------------------------------------------------------------------------------------------------------------

UNCLEAR = re.compile(r"\b(?:who|whoever|whom|nobody|somebody)\b", re.IGNORECASE)


def readmes(tree):
    """Documents with a size limit; pages of results have none, since their tables are long."""
    return [path for path in tree.paths if path.endswith(".md") and not path.startswith("bench/results/")]


def unclear_words(tree, path):
    """Lines of comments, strings and documents with a pronoun in the place of a rank, peer, caller or thread."""
    text = tree.text(path)
    if path.startswith(("bench/results/", "test/house/")):
        return
    if path.endswith((".h", ".cpp", ".cu", ".cuh", ".inc", ".c")):
        readable = cpp.comments_and_strings(text)
    elif path.endswith((".py", ".sh", ".cmake", ".txt", ".md", ".json")):
        readable = text
    else:
        return
    for match in UNCLEAR.finditer(readable):
        yield path, line_of(readable, match.start())


def sizes(tree, known):
    """Limits: 500 lines per file, 60 per function, 200 per README, no unclear words. Exceptions are listed with their size,
    and may only shrink."""
    over = {}
    for path in tree.sources():
        text = tree.text(path)
        lines = text.count("\n")
        if lines > LONGEST_FILE:
            over[f"file {path}"] = (path, 1, lines, LONGEST_FILE)
        for function in cpp.functions(text):
            if function.lines > LONGEST_FUNCTION:
                over[f"function {path} {function.name}"] = (path, function.first_line, function.lines, LONGEST_FUNCTION)
    for path in readmes(tree):
        text = tree.text(path)
        lines = text.count("\n")
        if lines > LONGEST_README:
            over[f"readme {path}"] = (path, 1, lines, LONGEST_README)
        # Tables, URLs, commands and code cannot be wrapped.
        prose = re.sub(r"^```.*?^```", lambda code: "\n" * code[0].count("\n"), text, flags=re.MULTILINE | re.DOTALL)
        wide = [number for number, line in enumerate(prose.split("\n"), 1)
                if len(line) > LONGEST_LINE and "://" not in line and not line.startswith(("|", "    "))]
        if wide:
            over[f"wide {path}"] = (path, wide[0], len(wide), 0)
    for folder in ("",) + FOLDERS:
        found = [finding for path in tree.paths if (path.split("/")[0] if "/" in path else "") == folder
                 for finding in unclear_words(tree, path)]
        if found:
            over[f"unclear {folder or '.'}"] = (*found[0], len(found), 0)
    for what, (path, line, lines, limit) in over.items():
        if what.startswith("unclear") and lines > known.get(what, 0):
            yield Finding(path, line, "unclear", f"{lines} times who, whoever, whom, nobody or somebody in comments, texts and "
                          f"documents of {what[8:]}, {known.get(what, 0)} are known; this is the first: name the rank, the peer, "
                          "the caller or the thread instead")
        elif what not in known:
            advice = "wrap them" if what.startswith("wide") else "something wants out (an idea of its own, a file of its own)"
            yield Finding(path, line, "size", f"{what} has {lines} lines, the limit is {limit}: {advice}")
        elif lines > known[what]:
            yield Finding(path, line, "size", f"{what} has grown from {known[what]} lines to {lines}; known long things "
                          "may only shrink")
        elif lines < known[what]:
            yield Finding(path, line, "size", f"{what} is down from {known[what]} lines to {lines}: well done; lower its "
                          "number in test/house/known_long.txt, so that it stays")
    for what in sorted(set(known) - set(over)):
        yield Finding("test/house/known_long.txt", 1, "size", f"'{what}' is no longer over the limit: well done; remove it")


# --- words and habits in the code --------------------------------------------------------------------------------------

_EVERYWHERE = ("collectives", "transports", "tensor", "train", "bench", "test")

# rule, pattern (on code without comments and strings), folders, exempt paths, message
HABITS = (
    ("environment", r"\b(?:secure_)?getenv\s*\(", ("collectives", "transports", "tensor", "train", "bench"),
     ("transports/settings.cpp",),
     "only transports/settings.cpp reads the environment; each variable is documented there"),
    ("sleep", r"\bthis_thread::sleep_\w+\s*\(|\b(?:usleep|nanosleep)\s*\(", ("test",), (),
     "tests do not sleep: wait for the thing itself, with a deadline"),
    ("naked-new", r"\bnew\s+[A-Za-z_:][\w:<>, ]*|\bdelete(?:\[\])?\s+[A-Za-z_*]", _EVERYWHERE, (),
     "no naked new or delete: std::make_unique, or a value"),
    ("assert", r"(?<![\w.>:])assert\s*\(", _EVERYWHERE, (), "checks stay on in release: throw, or use transports/base/check.h"),
    ("exit", r"\bstd::(?:exit|quick_exit|abort)\s*\(|(?<![\w.>:\s])\s*exit\s*\(", ("collectives", "transports", "tensor"), (),
     "a library does not end its host program: throw kolo::Error"),
    ("format", r"\bstd::(?:format|print|println|vformat)\b", _EVERYWHERE, (), "g++ 12 has no <format>: use fmt, in a .cpp"),
    ("catch", r"\bCatch::(?:(?:Matchers::)?Contains|StartsWith|EndsWith|Equals|Matches)\s*\(", ("test",), ("test/support/catch.h",),
     "Catch2 2 and 3 agree on ContainsSubstring (test/support/catch.h) and on Catch::Matchers::StartsWith and the like"),
    ("using-namespace", r"\busing\s+namespace\s+std\b(?!::)", _EVERYWHERE, (), "name what you use"),
    ("feature-test", r"#\s*(?:el)?if.*(?:KOLO_(?:HAVE|WITH|USE)_|__has_include)", _EVERYWHERE,
     ("test/support/catch.h", "tensor/kernels/onednn/"),
     "presence of an optional part is decided by which files CMake compiles, never by #if"),
)

# Environment variables KOLO_* that a program, a script or the build reads.
_READS = re.compile(r"""(?:getenv\(|environ(?:\.get)?[\[(]|\$ENV\{)\s*["']?(KOLO_\w+)""")
_SHELL_READS = re.compile(r"\$\{?(KOLO_\w+)")


def known_variables(tree):
    """Each variable that is read is listed in settings.cpp, which warns of unknown ones."""
    settings = "transports/settings.cpp"
    known = set(re.findall(r'"(KOLO_\w+)"', tree.text(settings))) if settings in tree.paths else set()
    for path in tree.paths:
        if not path.endswith((".h", ".cpp", ".py", ".sh", ".txt", ".cmake")) or path.startswith((settings, "test/house/")):
            continue
        text = tree.text(path)
        for match in (_SHELL_READS if path.endswith(".sh") else _READS).finditer(text):
            if match[1] not in known:
                yield Finding(path, line_of(text, match.start()), "variable",
                              f"{match[1]} is read here and not known to {settings}, which would warn of it: add it there")


BANNED_WORDS = ("ctx", "mgr", "util", "utils", "helper", "helpers", "misc", "common")
_NAMES_OF_LIBRARIES = {"common_type", "common_type_t", "common_reference", "common_reference_t", "common_with",
                   "j_common_ptr", "jpeg_error_mgr", "jpeg_progress_mgr"}


def habits(tree):
    """Patterns that are forbidden, or allowed in certain files only."""
    for rule, pattern, folders, exempt, message in HABITS:
        compiled = re.compile(pattern)
        for path in tree.sources(*folders):
            if path.startswith(tuple(exempt)):
                continue
            code = cpp.without_comments_and_strings(tree.text(path))
            for match in compiled.finditer(code):
                yield Finding(path, line_of(code, match.start()), rule, message)


def _words_of(name):
    return [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)]


def words(tree):
    """Names of files and identifiers contain no banned word."""
    for path in tree.paths:
        for part in PurePosixPath(path).parts:
            bad = set(_words_of(part)) & set(BANNED_WORDS)
            if bad:
                yield Finding(path, 1, "words", f"a file called '{part}' says nothing about what is in it; name the idea")
    for path in tree.sources():
        code = cpp.without_comments_and_strings(tree.text(path))
        for match in re.finditer(r"\b[A-Za-z_]\w*\b", code):
            name = match[0]
            bad = set(_words_of(name)) & set(BANNED_WORDS)
            if bad and name not in _NAMES_OF_LIBRARIES:
                yield Finding(path, line_of(code, match.start()), "words",
                              f"'{name}': '{sorted(bad)[0]}' says nothing; name the idea (one word per idea, everywhere)")


def transport_names(tree):
    """Upper layers choose by the abilities of a channel, never by the name of its transport. (A tcp_store is no transport.)"""
    names = tree.transports()
    pattern = re.compile(rf"(?<![A-Za-z0-9])(?:{'|'.join(sorted(names))})(?![A-Za-z0-9]|_store)", re.IGNORECASE)
    for path in tree.sources("collectives", "tensor"):
        if path.startswith("collectives/examples/"):
            continue
        code = cpp.without_comments(tree.text(path))
        for match in pattern.finditer(code):
            yield Finding(path, line_of(code, match.start()), "transport-name",
                          f"'{match[0]}' is named outside transports/: ask Capabilities what the channel can do")


# --- the form of files -------------------------------------------------------------------------------------------------

_TEXT = (".h", ".cpp", ".cu", ".cuh", ".py", ".sh", ".cmake", ".txt", ".md", ".json", ".in", ".yml")


# A comment after nothing but directives and an opened namespace.
_OPENING = re.compile(r"(?:\s|#[^\n]*\n|namespace [\w: ]* ?\{)*(?://|/\*)")


def _is_explained_by_a_header(path, code):
    """Whether a .cpp includes a header of its own name or folder, which documents what it implements."""
    stem = str(PurePosixPath(path).with_suffix(""))
    places = (f"{stem}.h", f"{stem}/", f"{PurePosixPath(path).parent}/")
    return not path.endswith(".h") and any(target.startswith(places) for _, target in _INCLUDE.findall(code))


def form(tree):
    """Opening comment, #pragma once, no tabs, no trailing blanks, a newline at the end, at most 100 columns."""
    for path in tree.paths:
        if path.endswith(_TEXT) or "." not in PurePosixPath(path).name:
            yield from _blanks(path, tree.text(path))
    for path in tree.sources():
        text = tree.text(path)
        code = cpp.without_comments(text).lstrip()
        if path.endswith(".h") and not code.startswith("#pragma once"):
            yield Finding(path, 1, "pragma-once", "a header's first line of code is #pragma once")
        if not _OPENING.match(text) and not _is_explained_by_a_header(path, code):
            yield Finding(path, 1, "opening", "a file opens with a comment: its idea, its words, its cost (a .cpp may leave "
                          "that to the header that it implements)")
        long_lines = [number for number, line in enumerate(text.split("\n"), 1) if len(line) > LONGEST_LINE and "://" not in line]
        if long_lines:
            yield Finding(path, long_lines[0], "columns", f"{len(long_lines)} lines are longer than {LONGEST_LINE} columns, "
                          "this is the first; clang-format -i mends them")


def _blanks(path, text):
    for number, line in enumerate(text.split("\n"), 1):
        if "\t" in line:
            yield Finding(path, number, "blanks", "a tab; indent with spaces")
        if line.endswith("\r"):
            yield Finding(path, number, "blanks", "a carriage return; lines end in a newline only")
        elif line != line.rstrip() and not path.endswith(".md"):
            yield Finding(path, number, "blanks", "blanks at the end of the line")
    if text and not text.endswith("\n"):
        yield Finding(path, text.count("\n") + 1, "blanks", "no newline at the end of the file")


def layout(tree):
    """Only known entries at the top level, and a README in each folder."""
    for entry in sorted({path.split("/")[0] for path in tree.paths}):
        if entry not in TOP_LEVEL:
            yield Finding(entry, 1, "layout", "does not belong at the top: a newcomer reads the architecture there. "
                          f"It belongs into one of {', '.join(FOLDERS)}")
    for folder in FOLDERS:
        if f"{folder}/README.md" not in tree.paths:
            yield Finding(f"{folder}/README.md", 1, "layout", "missing: the picture, the contract, and how to add one")


RULES = (includes, installed_headers, habits, known_variables, words, transport_names, form, layout)
