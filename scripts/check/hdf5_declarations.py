#!/usr/bin/env python3
"""Holds src/h5/declarations.h against HDF5's own headers; --fix writes it anew.

    hdf5_declarations.py <folder with hdf5.h> [--fix]

The plugin is compiled with that file where there is no HDF5 (`pip install .`): types, constants and functions of HDF5's
interface that src/ names, and what those are made of, with their layouts and values and nothing else. What is needed is
found by name, so that a source that begins to use another function needs no more than --fix.

Needs pycparser (scripts/setup/requirements.txt) and a C compiler.
"""

import argparse
import pathlib
import re
import subprocess
import sys
import tempfile
import textwrap

from pycparser import c_ast, c_generator, c_parser

REPO = pathlib.Path(__file__).resolve().parents[2]
VERSION = "1.14.6"  # whose headers it is made from
OUTPUT = REPO / "src/h5/declarations.h"
HEADERS = ("H5FDdevelop.h", "H5PLextern.h", "H5VLconnector.h", "H5VLconnector_passthru.h", "H5VLnative.h", "hdf5.h")
# What the system's headers declare and ours must not: names for pycparser, which sees none of them.
SYSTEM = """
typedef int int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t, intptr_t, uintptr_t;
typedef int size_t, ssize_t, ptrdiff_t, wchar_t, off_t, time_t, bool, FILE, va_list;
"""
EMPTY = ("stdint.h", "inttypes.h", "stddef.h", "stdbool.h", "stdarg.h", "stdio.h", "stdlib.h", "string.h", "limits.h",
         "errno.h", "unistd.h", "features.h", "sys/types.h", "sys/time.h", "sys/stat.h", "time.h", "float.h", "math.h", "mpi.h")  # fmt: skip
HEAD = """\
/// \\file
/// HDF5's interface as far as src/ uses it, for machines without HDF5's headers: layouts and values that are the same in
/// 1.14.1 to 2.2. Written by scripts/check/hdf5_declarations.py, which also says when it is out of date; not by hand.
///
/// Invariant: what the same names mean in HDF5 {version}'s headers. Include h5/hdf5.h, never this. Thread safety:
/// declarations only.
// clang-format off
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

extern "C" {{

"""
TAIL = '\n}  // extern "C"\n// clang-format on\n'
TOKEN = re.compile(r"\b[A-Za-z_]\w*\b")
MACRO = re.compile(r"^#define (H\w+) (.+)$", re.M)


def preprocess(include, *flags):
    with tempfile.TemporaryDirectory() as fake:
        for name in EMPTY:
            path = pathlib.Path(fake, name)
            path.parent.mkdir(exist_ok=True)
            path.touch()
        source = "".join(f"#include <{name}>\n" for name in HEADERS)
        command = ["cc", "-E", "-P", "-nostdinc", "-D__attribute__(x)=", "-D__extension__=", "-DSIZE_MAX=1", "-w",
                   f"-I{fake}", f"-I{include}", *flags, "-x", "c", "-"]  # fmt: skip
        return subprocess.run(command, input=source, stdout=subprocess.PIPE, text=True, check=True).stdout


def wanted_names():
    """Names in the sources; in the table of functions (h5/functions.h) they stand without their H5."""
    names = set()
    for path in (REPO / "src").rglob("*"):
        if path.suffix not in (".h", ".cc") or re.search(r"_(test|bench|fixture)\.", path.name) or path == OUTPUT:
            continue
        text = re.sub(r"//.*", "", path.read_text())
        names.update(TOKEN.findall(text))
        if path.name == "functions.h":
            names.update(f"H5{name}" for name in re.findall(r"\bX\((\w+)\)", text))
    return names


def name_of(node):
    """What a declaration declares; several for an enumeration."""
    names = {node.name} if node.name else set()
    kind = node.type
    while not isinstance(kind, (c_ast.Struct, c_ast.Union, c_ast.Enum)) and hasattr(kind, "type"):
        kind = kind.type
    if getattr(kind, "name", None):
        names.add(kind.name)
    if isinstance(kind, c_ast.Enum) and kind.values:
        names.update(item.name for item in kind.values.enumerators)
    return names


class NoNames(c_ast.NodeVisitor):
    """Takes the names of parameters away: they mean nothing to a compiler."""

    def visit_ParamList(self, node):
        for parameter in node.params:
            if isinstance(parameter, c_ast.Decl):
                parameter.name, kind = None, parameter.type
                while not isinstance(kind, c_ast.TypeDecl):
                    kind = kind.type
                kind.declname = None
        self.generic_visit(node)


class Declarations:
    """HDF5's, by the names they declare, in their order."""

    def __init__(self, include):
        tree = c_parser.CParser().parse(SYSTEM + preprocess(include))
        generator = c_generator.CGenerator()
        self.texts, self.by_name = [], {}
        for node in tree.ext:
            names = name_of(node)
            NoNames().visit(node)
            text = generator.visit(node) + ";"
            for name in names:
                self.by_name.setdefault(name, []).append(len(self.texts))
            self.texts.append(text)
        self.first = next(i for i, text in enumerate(self.texts) if "H5" in text or "herr_t" in text)
        self.macros = dict(MACRO.findall(preprocess(include, "-dM")))
        self.macros.pop("H5CHECK", None), self.macros.pop("H5OPEN", None)

    def needed_by(self, names):
        """Indices of declarations, and macros, with all that they are made of."""
        found, macros, todo = set(), set(), list(names)
        seen = set()
        while todo:
            name = todo.pop()
            if name in seen:
                continue
            seen.add(name)
            if name in self.macros:
                macros.add(name)
                todo += TOKEN.findall(self.macros[name])
            for index in self.by_name.get(name, []):
                if index >= self.first and index not in found:
                    found.add(index)
                    todo += TOKEN.findall(self.texts[index])
        return found, macros


def on_few_lines(text):
    return textwrap.fill(" ".join(text.split()), 100, subsequent_indent="  ", break_long_words=False)


def version_of(include):
    text = pathlib.Path(include, "H5public.h").read_text()
    return ".".join(re.search(rf"#define H5_VERS_{part}\s+(\d+)", text)[1] for part in ("MAJOR", "MINOR", "RELEASE"))


def write(include):
    declarations = Declarations(include)
    found, macros = declarations.needed_by(wanted_names())
    lines = [f"#define {name} {declarations.macros[name]}" for name in sorted(macros)]
    body = "\n".join(on_few_lines(declarations.texts[index]) for index in sorted(found))
    body = body.replace("_Bool", "bool").replace("(void)", "()")
    return HEAD.format(version=version_of(include)) + "\n".join(lines) + "\n\n" + body + TAIL


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("include", help="the folder with hdf5.h, of 1.14.6")
    parser.add_argument("--fix", action="store_true", help="write the file")
    args = parser.parse_args()
    if version_of(args.include) != VERSION:
        print(f"note: src/h5/declarations.h is made from HDF5 {VERSION}; this is {version_of(args.include)}, so it was not looked at")
        return
    text = write(args.include)
    if args.fix:
        OUTPUT.write_text(text)
        return
    if not OUTPUT.exists() or OUTPUT.read_text() != text:
        sys.exit("src/h5/declarations.h is out of date: scripts/check/hdf5_declarations.sh --fix writes it")


if __name__ == "__main__":
    main()
