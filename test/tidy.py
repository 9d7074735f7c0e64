#!/usr/bin/env python3
"""Checker of the house rules, which are in test/house/rules.py.

  test/tidy.py [--root DIR]             checks the rules; prints each finding with its remedy, fails if there is one
  test/tidy.py --format                 checks with clang-format 14 (other versions format differently)
  test/tidy.py --headers COMPILER       checks that each header without a .cpp of its own compiles alone

Exit codes: 0 no findings, 1 findings, 77 skipped (with the reason).
"""

import argparse
import os
import re
import subprocess
import sys
from xml.etree import ElementTree
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path, PurePosixPath

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "house"))
sys.dont_write_bytecode = True

import rules  # noqa: E402

SKIPPED = 77
NOT_OURS = {"build", "report", ".git", ".cache", "__pycache__"}


def files_of(root):
    """Files that git tracks or would add; without git, all files outside of build folders."""
    git = subprocess.run(["git", "-c", "safe.directory=*", "-C", root, "ls-files", "-co", "--exclude-standard", "-z"],
                         capture_output=True, text=True, check=False) if (root / ".git").exists() else None
    if git and git.returncode == 0:
        paths = git.stdout.split("\0")
    else:
        paths = []
        for folder, folders, names in os.walk(root):
            folders[:] = [name for name in folders if name not in NOT_OURS]
            paths += [str(PurePosixPath(folder).relative_to(root) / name) for name in names]
    return sorted(path for path in set(paths) if path and (root / path).is_file())


def read_known(path):
    """Known sizes, from lines such as 'file PATH SIZE' and 'function PATH NAME SIZE'; # begins a comment."""
    known = {}
    for line in path.read_text().splitlines() if path.exists() else []:
        line = line.split("#")[0].strip()
        if line:
            what, size = line.rsplit(" ", 1)
            known[what] = int(size)
    return known


def check_rules(tree):
    findings = [finding for rule in rules.RULES for finding in rule(tree)]
    findings += rules.sizes(tree, read_known(tree.root / "test/house/known_long.txt"))
    for finding in sorted(findings, key=lambda finding: (finding.path, finding.line)):
        print(finding)
    print(f"tidy: {len(findings)} findings in {len(tree.paths)} files")
    return 1 if findings else 0


def check_format(tree):
    try:
        version = subprocess.run(["clang-format", "--version"], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        version = ""
    if not re.search(r"version 14\.", version):
        print(f"skipped: clang-format 14 is needed, found {version.strip() or 'none'}")
        return SKIPPED
    sources = list(tree.sources())
    result = subprocess.run(["clang-format", "--output-replacements-xml", *sources], cwd=tree.root, check=True, capture_output=True)
    unformatted = [path for path, xml in zip(sources, result.stdout.split(b"<?xml")[1:]) if changes(tree.root / path, b"<?xml" + xml)]
    for path in unformatted:
        print(f"{path}: mend with: clang-format -i {path}")
    return 1 if unformatted else 0


def changes(path, xml):
    """Whether the replacements change the file. clang-format 14 replaces comments of inline namespaces by the same text."""
    text = path.read_bytes()
    for replacement in ElementTree.fromstring(xml).iter("replacement"):
        begin = int(replacement.get("offset"))
        if text[begin:begin + int(replacement.get("length"))] != (replacement.text or "").encode():
            return True
    return False


def compile_alone(tree, compiler, folder, header):
    """Compiles a source that includes only the header, to an object, which a compiler cache can keep."""
    source = folder / (header.replace("/", "_") + ".cpp")
    source.write_text(f'#include "{header}"\n')
    command = [*compiler.split(), "-std=c++20", "-I.", "-DKOLO_SOURCE_DIR=\"\"", "-c", os.path.relpath(source, tree.root), "-o",
               os.path.relpath(source.with_suffix(".o"), tree.root)]
    return subprocess.run(command, text=True, capture_output=True, check=False, cwd=tree.root)


def check_headers(tree, compiler, folder):
    """Compiles headers without a .cpp of their own; the others are checked by their .cpp, which includes them first. Headers that
    need torch are left out."""
    folder.mkdir(parents=True, exist_ok=True)
    sources = set(tree.sources())
    headers = [path for path in sources
               if path.endswith(".h") and not path.startswith(("test/support/", "collectives/python/torch/"))
               and str(PurePosixPath(path).with_suffix(".cpp")) not in sources]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        results = pool.map(lambda header: compile_alone(tree, compiler, folder, header), headers)
    failed = 0
    for header, result in zip(headers, results):
        if result.returncode:
            failed += 1
            print(f"{header}: does not compile alone; include what it uses\n{result.stderr}")
    print(f"tidy: {failed} of {len(headers)} headers do not compile alone")
    return 1 if failed else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=Path, default=HERE.parent)
    parser.add_argument("--format", action="store_true")
    parser.add_argument("--headers", metavar="COMPILER", help="a compiler, or a cache and a compiler")
    parser.add_argument("--build", type=Path, default=Path("build/headers"), help="where --headers compiles")
    arguments = parser.parse_args()
    root = arguments.root.resolve()
    tree = rules.Tree(root, files_of(root))
    if arguments.format:
        return check_format(tree)
    if arguments.headers:
        return check_headers(tree, arguments.headers, arguments.build.resolve())
    return check_rules(tree)


if __name__ == "__main__":
    sys.exit(main())
