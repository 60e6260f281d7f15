"""What the sources under src/ declare and define, as universal-ctags reads it: for the checks of structure.

Tests and benches are left out. Needs no compiler; macros of base/annotations.h are skipped.
"""

import collections
import dataclasses
import json
import pathlib
import re
import subprocess

ANNOTATIONS = "TL_GUARDED_BY+,TL_REQUIRES+,TL_EXCLUDES+,TL_ACQUIRE+,TL_RELEASE+,TL_CAPABILITY+,TL_NO_ANALYSIS,TL_SCOPED_CAPABILITY"
APART = re.compile(r"_(test|bench)\.\w+$|/(simulator|file_fixture|roomy_device)\.h$")
INCLUDE = re.compile(r'^#include "([^"]+)"', re.M)


@dataclasses.dataclass
class Symbols:
    members: dict  # class -> names of its fields
    methods: dict  # class -> names and signatures of its functions
    declared: dict  # function -> headers
    defined: dict  # function -> files


def sources(repo):
    """{path from the repository: text}"""
    found = {}
    for path in sorted((repo / "src").rglob("*")):
        name = path.relative_to(repo).as_posix()
        if path.suffix in {".h", ".cc"} and not APART.search(name):
            found[name] = path.read_text()
    return found


def read(repo, names):
    command = ["ctags-universal", "--output-format=json", "-f", "-", "--languages=C++", "--map-C++=+.h", "--kinds-C++=+p", "--fields=+KZSsn",
               "-I", ANNOTATIONS, *names]
    listed = subprocess.run(command, cwd=repo, capture_output=True, text=True, check=True).stdout
    tables = [collections.defaultdict(set) for _ in range(4)]
    members, methods, declared, defined = tables
    for line in listed.splitlines():
        tag = json.loads(line)
        scope = tag.get("scope", "")
        if tag.get("_type") != "tag" or "__anon" in scope:
            continue
        header = tag["path"].endswith(".h")
        inside_class = tag.get("scopeKind") in {"class", "struct"}
        if header and inside_class and tag["kind"] == "member":
            members[scope].add(tag["name"])
        if tag["kind"] in {"prototype", "function"}:
            function = f"{scope}::{tag['name']}"
            if header and inside_class:
                methods[scope].add(tag["name"] + tag.get("signature", ""))
            if header and tag["kind"] == "prototype":
                declared[function].add(tag["path"])
            if tag["kind"] == "function":
                defined[function].add(tag["path"])
    return Symbols(*map(dict, tables))


def includes(text):
    return ["src/" + target for target in INCLUDE.findall(text)]
