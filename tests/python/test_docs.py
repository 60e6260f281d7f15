"""The examples of docs/python.md and of README.md: each runs natively and under Tidelane, and writes the same.

Those for GPUs run with stand-ins (standins/), which natively keep their arrays in host memory.
"""

import os
import pathlib
import re

import pytest
from conftest import GPU, STANDINS

REPO = pathlib.Path(os.environ["TIDELANE_TEST_SOURCE_DIR"])
PAGE = (REPO / "docs/python.md").read_text()
EXAMPLES = dict(re.findall(r"<!-- example: (\w+) -->\n```python\n(.*?)```", PAGE, re.S))
EXAMPLES["readme"] = re.search(r"```python\n(import tidelane\.auto.*?)```", (REPO / "README.md").read_text(), re.S)[1]

DIGEST = """
import glob, hashlib, h5py, json
found = {}
def note(name, item):
    if isinstance(item, h5py.Dataset):
        found[path + name] = [str(item.dtype), item.shape, hashlib.sha256(item[()].tobytes()).hexdigest()]
for path in sorted(glob.glob("*.h5") + glob.glob("*.nc")):
    with h5py.File(path) as file: file.visititems(note)
assert found
print(json.dumps(found, sort_keys=True))
"""
CHECK = """
import tidelane
counters = tidelane.stats()["counters"]
assert counters["bytes_deferred"] > 1 << 16 and counters["errors"] == 0, counters
assert counters["lane_busy_ns"] > 0, counters
"""


def contents(program, code, **how):
    program(code, **how)
    found = program(DIGEST, native=True).stdout
    for path in program.folder.glob("*.*"):
        path.unlink()
    return found


@pytest.mark.parametrize("name", EXAMPLES)
def test_example(program, name):
    code = EXAMPLES[name]
    natively = code.replace("import tidelane.auto", "").replace('driver="tidelane", close="deferred"', "")
    native = contents(program, natively, env=STANDINS)
    under = contents(program, code + CHECK, env=GPU)
    assert under == native


def test_every_example_is_run():
    """What stands unmarked on a page is imports."""
    for page in [REPO / "README.md", *REPO.glob("docs/**/*.md")]:
        for code in re.findall(r"```python\n(.*?)```", page.read_text(), re.S):
            if code not in EXAMPLES.values():
                assert all(line.startswith("import ") for line in code.splitlines()), f"{page}: give it a name\n{code}"
