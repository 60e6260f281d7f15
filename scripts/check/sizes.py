#!/usr/bin/env python3
"""Checks the size limits of the house style: no file over 800 lines (a note from 450), no function over 70.

C and C++ functions are found by their braces, after comments, literals and preprocessor lines are blanked out: exact
enough for formatted code, and it needs no compiler. A function's length is that of its body with both brace lines.
"""

import ast
import pathlib
import re
import subprocess
import sys

REPO = pathlib.Path(__file__).resolve().parents[2]
FILE_MAX, FILE_NOTE, FUNCTION_MAX = 800, 450, 70
CODE = {".cc", ".h", ".c", ".py", ".sh", ".cmake"}

LITERALS = re.compile(
    r'R"(?P<tag>[^()\\\s]{0,16})\(.*?\)(?P=tag)"'  # raw strings
    r'|"(?:\\.|[^"\\\n])*"'
    r"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'"  # not the digit separators of 1'000
    r"|//[^\n]*|/\*.*?\*/"
    r"|^[ \t]*\#(?:[^\n\\]|\\\n|\\.)*",
    re.S | re.M,
)
NOT_A_FUNCTION = re.compile(r"^\s*(?:inline\s+)?(?:namespace|class|struct|union|enum|extern)\b(?![^{]*\)\s*(?:const|noexcept|override|final|\s)*$)")


def blank(text):
    """The same text, line for line, with everything that could hide a brace replaced by spaces."""
    return LITERALS.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), text)


def opens_function(head):
    return "(" in head and not NOT_A_FUNCTION.match(head.strip())


def cpp_functions(text):
    """Yields (first line, lines, name) for every outermost function body."""
    text = blank(text)
    depth, inside, start, head = 0, None, 0, ""
    line = 1
    for char in text:
        if char == "\n":
            line += 1
        if char == "{":
            if inside is None and opens_function(head):
                names = re.findall(r"([~\w:]+|operator\S+)\s*\(", head)
                inside, start, name = depth, line, (names[0] if names else "?")
            depth, head = depth + 1, ""
        elif char == "}":
            depth, head = depth - 1, ""
            if inside == depth:
                yield start, line - start + 1, name
                inside = None
        elif char == ";" and head.count("(") <= head.count(")"):
            head = ""
        else:
            head += char


def python_functions(text):
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node.lineno, node.end_lineno - node.lineno + 1, node.name


def functions(path, text):
    if path.suffix in {".cc", ".h", ".c"}:
        return cpp_functions(text)
    return python_functions(text) if path.suffix == ".py" else []


def sources():
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=REPO, capture_output=True, text=True)
    for name in sorted(set(listed.stdout.split("\n"))):
        path = REPO / name
        if path.suffix in CODE and path.is_file():
            yield pathlib.Path(name), path.read_text()


def main():
    errors = []
    for name, text in sources():
        lines = text.count("\n")
        if lines > FILE_MAX:
            errors.append(f"{name}: {lines} lines, the limit is {FILE_MAX}")
        elif lines > FILE_NOTE:
            print(f"note: {name}: {lines} lines; most files stay under {FILE_NOTE}")
        for start, length, function in functions(name, text):
            if length > FUNCTION_MAX:
                errors.append(f"{name}:{start}: {function} has {length} lines, the limit is {FUNCTION_MAX}")
    print("\n".join(errors), file=sys.stderr, end="\n" if errors else "")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
