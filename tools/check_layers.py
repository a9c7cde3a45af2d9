#!/usr/bin/env python3
"""Check what the compiler cannot: that the layout is the one that src/README.md describes, and a few bans.

    check_layers.py [ROOT]     prints each fault as FILE:LINE: what, and exits 1 if there is one

 1. src/README.md, the folders of src/ and the libraries of src/CMakeLists.txt are one list in one order. (A folder
    that is split over several libraries stands where the library of its own name is, else where its first is.)
 2. An #include "..." below src/ names a folder: "graph/graph.h", never "graph.h", which would find a neighbour.
 3. No environment variable is read below src/: only programs read them.
 4. No file mentions a path of the machine or the workplace that it was written on, and none leaves work for later.
 5. No source file is longer than 600 lines.
 6. A fused operator (PLOW_FUSED in src/abi/ops.def) is made by src/rewrite/ and nowhere else: what ships names one only
    in the libraries that define, price, check or run operators, and there too nothing builds a node of it.
"""
import os
import re
import sys

MAX_LINES = 600
SKIPPED_FOLDERS = {".git", "build", "__pycache__", ".venv", "golden"}  # golden: texts of others, as data
TEXT_SUFFIXES = {".h", ".cpp", ".def", ".py", ".sh", ".md", ".cmake", ".txt", ".json", ".js", ".css", ".html", ".yml"}
SOURCE_SUFFIXES = {".h", ".cpp", ".py", ".sh", ".js"}
# Written in two halves so that this file does not contain what it bans.
WORKPLACE = re.compile("|".join((r"\.\./" + "shared", "/wo" + "rk/", "/ro" + "ot/")))
LEFT_OVER = re.compile(r"\b(" + "|".join(("TO" + "DO", "FIX" + "ME", "XX" + "X", "HA" + "CK")) + r")\b")
ENVIRONMENT = re.compile(r"\b(secure_)?getenv\b|\benviron\b")
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"')
LIBRARY = re.compile(r"^plow_library\(\s*(\w+)(?:[^)]*?\bFOLDER\s+(\S+))?", re.MULTILINE)
README_ENTRY = re.compile(r"^\| \[?`(\w+)/`", re.MULTILINE)
FUSED = re.compile(r"^PLOW_FUSED\(\s*\d+\s*,\s*(\w+)", re.MULTILINE)
FUSED_KNOWN_IN = {"abi", "bundle", "cost", "interp", "isa", "ops", "rewrite"}  # folders of src/
NOT_SHIPPED = re.compile(r"_test\.cpp$|_fuzz\.cpp$|(^|/)testing/")


def files_below(root, folder=""):
    """Paths of text files relative to root."""
    for here, folders, files in os.walk(os.path.join(root, folder)):
        folders[:] = sorted(f for f in folders if f not in SKIPPED_FOLDERS and not f.startswith("."))
        for file in sorted(files):
            if os.path.splitext(file)[1] in TEXT_SUFFIXES and not os.path.islink(os.path.join(here, file)):
                yield os.path.relpath(os.path.join(here, file), root)


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8") as f:
        return f.read()


def cmake_folders(text):
    """Folders in the order of src/CMakeLists.txt."""
    own, first = {}, {}
    for position, (name, folder) in enumerate(LIBRARY.findall(text)):
        folder = (folder or name).rstrip(")").split("/")[0]
        first.setdefault(folder, position)
        if name == folder:
            own[folder] = position
    return sorted(first, key=lambda folder: own.get(folder, first[folder]))


def check_one_list(root):
    described = README_ENTRY.findall(read(root, "src/README.md"))
    built = cmake_folders(read(root, "src/CMakeLists.txt"))
    there = sorted(f for f in os.listdir(os.path.join(root, "src"))
                   if os.path.isdir(os.path.join(root, "src", f)) and not f.startswith("."))
    if sorted(described) != there:
        yield "src/README.md:1: describes %s, but the folders are %s" % (
            " ".join(sorted(described)), " ".join(there))
    if described != built:
        yield "src/README.md:1: the order is %s, but src/CMakeLists.txt has %s" % (
            " ".join(described), " ".join(built))


def check_lines(root):
    for path in files_below(root):
        suffix = os.path.splitext(path)[1]
        below_src = path.startswith("src" + os.sep)
        lines = read(root, path).split("\n")
        for number, line in enumerate(lines, 1):
            if WORKPLACE.search(line):
                yield "%s:%d: mentions a path of the machine that it was written on" % (path, number)
            if LEFT_OVER.search(line):
                yield "%s:%d: leaves work for later; do it or say in docs/ what is missing" % (path, number)
            if below_src and ENVIRONMENT.search(line):
                yield "%s:%d: reads the environment; only apps/ and scripts may" % (path, number)
            include = INCLUDE.match(line)
            if below_src and include and "/" not in include.group(1):
                yield '%s:%d: #include "%s" names no folder' % (path, number, include.group(1))
        if suffix in SOURCE_SUFFIXES and len(lines) > MAX_LINES:
            yield "%s:%d: longer than %d lines; split it by what it does" % (path, len(lines), MAX_LINES)


def check_fused(root):
    path = "src/abi/ops.def"
    names = FUSED.findall(read(root, path)) if os.path.exists(os.path.join(root, path)) else []
    if not names:
        return
    named = r"Op::k(%s)\b" % "|".join(names)
    mention = re.compile(named)
    # A call that adds a node, or an assignment to a node's operator; also over the end of a line.
    construction = re.compile(r"(\b(add|push|push_back|emplace_back)\s*\(\s*|\bop\s*=\s*|\bNode\s*\{\s*(\.op\s*=\s*)?)" + named)
    for path in [p for folder in ("src", "apps") for p in files_below(root, folder)]:
        parts = path.split(os.sep)
        if os.path.splitext(path)[1] not in (".h", ".cpp", ".def") or NOT_SHIPPED.search(path) or parts[1] == "rewrite":
            continue
        text = read(root, path)
        pattern = construction if parts[0] == "src" and parts[1] in FUSED_KNOWN_IN else mention
        for match in pattern.finditer(text):
            yield "%s:%d: Op::k%s is made or named here; only src/rewrite/ makes fused operators" % (
                path, text.count("\n", 0, match.end()) + 1, match.group(match.lastindex))


def faults(root):
    yield from check_one_list(root)
    yield from check_lines(root)
    yield from check_fused(root)


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
    found = list(faults(root))
    print("\n".join(found) if found else "the layout is as src/README.md says")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
