#!/usr/bin/env python3
"""Check that a change touches comments and documents only.

  test/house/comments_only.py [--strings] [BASE [HEAD]]

Compares each file that differs between BASE (default: HEAD) and HEAD (default: the working tree) without comments and white
space. If code has changed, it prints the first difference of each such file and exits with 1. With --strings the texts of string
literals may change as well. Documents (.md, .txt except CMakeLists.txt, .svg) have no code.
"""

import ast
import re
import subprocess
import sys

import cpp

CPP = (".h", ".cpp", ".cu", ".cuh", ".inc", ".c")
HASH = (".sh", ".cmake", ".in", "CMakeLists.txt", "run")
_LITERAL = re.compile(r'"(?:\\.|[^"\\\n])*"')
_WORD = re.compile(r'"(?:\\.|[^"\\\n])*"|\w+|[^\w\s]')


def joined(tokens):
    """Tokens with adjacent string literals joined, since comments and line breaks between them have no meaning."""
    result = []
    for token in tokens:
        if result and token[0] == '"' and result[-1][0] == '"':
            result[-1] = result[-1][:-1] + token[1:]
        else:
            result.append(token)
    return result


def cpp_tokens(text):
    return joined(_WORD.findall(cpp.without_comments(text)))


def python_tokens(text):
    """The syntax tree without docstrings."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list) and body and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant) \
                and isinstance(body[0].value.value, str):
            body[0].value.value = ""
    return ast.dump(tree, indent=0).split("\n")


def hash_tokens(text):
    """Lines that are not comments. A comment behind code is kept, since it may be part of a string."""
    return [line.strip() for line in text.split("\n") if line.strip() and not re.match(r"\s*#(?!!)", line)]


def tokens_of(path, text, ignore_strings):
    if path.endswith(CPP):
        tokens = cpp_tokens(text)
    elif path.endswith(".py"):
        tokens = python_tokens(text)
    elif path.endswith(HASH):
        tokens = hash_tokens(text)
    elif path.endswith((".md", ".txt", ".svg")):
        tokens = []
    else:
        tokens = text.split("\n")
    if ignore_strings:
        tokens = [_LITERAL.sub('""', re.sub(r"value='(?:\\.|[^'\\])*'", '""', token)) for token in tokens]
    return tokens


def git(*words):
    return subprocess.run(["git", *words], check=True, capture_output=True, text=True).stdout


def text_at(revision, path):
    if revision is None:
        with open(path, encoding="utf-8") as file:
            return file.read()
    return git("show", f"{revision}:{path}")


def first_difference(before, after):
    for index, (old, new) in enumerate(zip(before, after)):
        if old != new:
            return " ".join(before[max(0, index - 5):index + 5]), " ".join(after[max(0, index - 5):index + 5])
    return " ".join(before[len(after):][:10]), " ".join(after[len(before):][:10])


def main():
    words = sys.argv[1:]
    ignore_strings = "--strings" in words
    words = [word for word in words if word != "--strings"]
    base = words[0] if words else "HEAD"
    head = words[1] if len(words) > 1 else None
    changed = git("diff", "--name-status", "--no-renames", base, *([head] if head else [])).splitlines()
    failures = 0
    for line in changed:
        status, path = line.split("\t")
        if status != "M":
            print(f"{path}: added or removed")
            failures += 1
            continue
        before = tokens_of(path, text_at(base, path), ignore_strings)
        after = tokens_of(path, text_at(head, path), ignore_strings)
        if before != after:
            old, new = first_difference(before, after)
            print(f"{path}: code has changed\n  before: {old}\n  after:  {new}")
            failures += 1
    print(f"{len(changed)} files, {failures} of them with other changes than in comments")
    return failures != 0


if __name__ == "__main__":
    sys.exit(main())
