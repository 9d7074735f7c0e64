"""Just enough of C++ to keep house: where comments are, what is code, where functions begin and end."""

import re
from dataclasses import dataclass

# A comment, a raw string, a string, or a character; tried in this order wherever one can begin.
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
    """The code, with comments blanked out; lines keep their numbers, strings stay."""
    return _TOKEN.sub(lambda m: _blank(m[0]) if m["comment"] else m[0], text)


def without_comments_and_strings(text):
    """The code, with comments and the insides of strings blanked out; includes stay readable elsewhere."""
    return _TOKEN.sub(lambda m: _blank(m[0]), text)


def comments_and_strings(text):
    """What people read: the code blanked out, comments and the insides of strings kept; lines keep their numbers."""
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
    """Whether the text before an opening brace is a function's signature (or a test case's)."""
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
    """Every function with a body that is not inside another one, in order; lines from its signature to its brace."""
    code = without_comments_and_strings(text)
    found = []
    opened = []  # of each open brace: does it hold a function's body, an initializer, or other things
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
