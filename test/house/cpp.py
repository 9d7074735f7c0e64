"""Minimal C++ scanner for the house rules: comments, strings, and the extent of functions."""

import re
from dataclasses import dataclass

# A comment, raw string, string or character literal, tried in this order at each position.
_TOKEN = re.compile(
    r"""(?P<comment>//[^\n]*|/\*.*?\*/)
      |(?P<raw>R"(?P<tag>[^\s()\\]{0,16})\(.*?\)(?P=tag)")
      |(?P<string>"(?:\\.|[^"\\\n])*")
      |(?P<char>(?<![0-9A-Fa-f])'(?:\\.|[^'\\\n])+')""",
    re.VERBOSE | re.DOTALL,
)


def _blank(text):
    return re.sub(r"[^\n]", " ", text)


def without_comments(text):
    """The code with comments blanked; strings and line numbers are kept."""
    return _TOKEN.sub(lambda m: _blank(m[0]) if m["comment"] else m[0], text)


def without_comments_and_strings(text):
    """The code with comments and strings blanked, includes in quotes too; line numbers are kept."""
    return _TOKEN.sub(lambda m: _blank(m[0]), text)


def comments_and_strings(text):
    """Comments and strings with the code blanked; line numbers are kept."""
    kept, at = [], 0
    for match in _TOKEN.finditer(text):
        kept += [_blank(text[at:match.start()]), match[0]]
        at = match.end()
    return "".join(kept) + _blank(text[at:])


@dataclass
class Function:
    name: str
    first_line: int
    lines: int


_NOT_A_FUNCTION = re.compile(
    r"^\s*(?:(?:inline|export|typedef|static|constexpr|const)\s+)*(?:namespace|class|struct|union|enum|extern)\b"
)


def _is_function(head):
    """Whether the text before an opening brace is the signature of a function or a test case."""
    head = re.sub(r"^\s*#.*$", "", head, flags=re.MULTILINE)  # directives
    head = re.sub(r"\b(?:public|private|protected)\s*:", "", head)
    while re.search(r"<[^<>]*>", head):  # template arguments, from the inside out
        head = re.sub(r"<[^<>]*>", " ", head)
    head = re.sub(r"^\s*(?:template\s*|\[\[[^\]]*\]\]\s*)*", "", head)
    return "(" in head and not _NOT_A_FUNCTION.match(head)


def _name_of(head):
    string = re.search(r'TEST_CASE\w*\s*\(\s*"([^"]*)"', head)
    if string:
        return string[1]
    words = re.findall(r"(operator\s*\S+?|~?\w+)\s*\(", head)
    words = [word for word in words if word not in ("noexcept", "requires", "alignas", "decltype", "explicit")]
    return words[0] if words else "?"


def functions(text):
    """All functions with a body that are not inside another one, in order; lines from the signature to the closing brace."""
    code = without_comments_and_strings(text)
    found = []
    opened = []  # for each open brace: body of a function, initializer, or other
    head_start = 0
    for match in re.finditer(r"[{};]", code):
        at = match.start()
        if match[0] == "{":
            head = code[head_start:at]
            if re.search(r"[\w>]$", head) and "(" in head:
                opened.append("initializer")  # as in `Thing::Thing() : member_{1} {`, where the head goes on
            elif "body" not in opened and head.count("(") == head.count(")") and _is_function(head):
                opened.append("body")
                start = head_start + len(head) - len(head.lstrip())
            else:
                opened.append("other")
        closed = opened.pop() if match[0] == "}" and opened else ""
        if closed == "body":
            first = code.count("\n", 0, start) + 1
            last = code.count("\n", 0, at) + 1
            found.append(Function(_name_of(text[start:at]), first, last - first + 1))
        if "initializer" not in opened and closed != "initializer" and "body" not in opened:
            head_start = at + 1
    return found
