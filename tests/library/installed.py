"""An installed Tidelane serves programs of other people: built with CMake and with pkg-config, in C, C++ and Fortran,
run with the plugin and without.

usage: installed.py <build folder> <HDF5's include folder> <HDF5's library> <C compiler> <C++ compiler>

Invariant: nothing but the installed tree is used; the tree is moved before it is, so that no path of the build is in it.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys

CONSUMER = pathlib.Path(__file__).resolve().parent / "consumer"
EXPECTED = [
    "include/tidelane.h",
    "include/tidelane_query.h",
    "include/h5_async_lib.h",
    "share/tidelane/tidelane.f90",
    "share/doc/tidelane/README.md",
    "share/doc/tidelane/docs/library.md",
    "bin/tidelane",
    "share/man/man1/tidelane.1",
    "share/bash-completion/completions/tidelane",
    "share/zsh/site-functions/_tidelane",
    "share/fish/vendor_completions.d/tidelane.fish",
]


def run(*command, env=None):
    done = subprocess.run([str(word) for word in command], env=env, capture_output=True, text=True, timeout=200)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: status {done.returncode}\n{done.stdout}{done.stderr}")
    return done


def install(build):
    first, prefix = pathlib.Path("first").resolve(), pathlib.Path("prefix").resolve()
    for old in (first, prefix):
        shutil.rmtree(old, ignore_errors=True)
    run("cmake", "--install", build, "--prefix", first)
    first.rename(prefix)
    for name in EXPECTED:
        if not (prefix / name).exists():
            sys.exit(f"{name} is not installed")
    return prefix


def folder_of(prefix, pattern):
    """The folder of the one installed file that matches: the library folder's name is CMake's to choose."""
    return next(prefix.rglob(pattern)).parent


def with_cmake(prefix, include, library, cc, cxx, fortran):
    shutil.rmtree("by-cmake", ignore_errors=True)
    options = [f"-DCMAKE_PREFIX_PATH={prefix}", f"-DHDF5_INCLUDE={include}", f"-DHDF5_LIBRARY={library}"]
    options += [f"-DCMAKE_C_COMPILER={cc}", f"-DCMAKE_CXX_COMPILER={cxx}", f"-DWITH_FORTRAN={'ON' if fortran else 'OFF'}"]
    run("cmake", "-S", CONSUMER, "-B", "by-cmake", *options)
    run("cmake", "--build", "by-cmake")
    names = ["consumer_c", "consumer_cxx"] + (["consumer_fortran"] if fortran else [])
    return [pathlib.Path("by-cmake", name).resolve() for name in names]


def with_pkg_config(prefix, include, library, cc, fortran):
    if not shutil.which("pkg-config"):
        print("pkg-config: skipped: there is none")
        return []
    env = dict(os.environ, PKG_CONFIG_PATH=str(folder_of(prefix, "tidelane.pc")))
    ask = lambda *question: run("pkg-config", *question, "tidelane", env=env).stdout.split()
    hdf5 = [library, f"-Wl,-rpath,{pathlib.Path(library).parent}"]
    program = pathlib.Path("by-pkg-config").resolve()
    run(cc, "-o", program, CONSUMER / "consumer.c", "-isystem", include, *ask("--cflags", "--libs"), *hdf5)
    programs = [program]
    if fortran:
        program = pathlib.Path("by-pkg-config-fortran").resolve()
        module = ask("--variable=fortranmodule")[0]
        run(fortran, "-o", program, module, CONSUMER / "consumer.f90", *ask("--libs"), *hdf5)
        programs.append(program)
    return programs


def check(program, prefix):
    """Runs a consumer in the three situations that a program may find."""
    plugins = folder_of(prefix, "libtidelane.so")
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("TIDELANE_", "HDF5_VOL", "HDF5_PLUGIN"))}
    summary = pathlib.Path(f"{program.name}.json").resolve()
    for situation, extra, expected in [
        ("without the plugin", {"HDF5_PLUGIN_PATH": "/nowhere"}, "stored"),
        ("in the plugin path", {"HDF5_PLUGIN_PATH": str(plugins)}, "pending"),
        ("chosen by the environment", {"HDF5_PLUGIN_PATH": str(plugins), "HDF5_VOL_CONNECTOR": "tidelane"}, "pending"),
    ]:
        summary.unlink(missing_ok=True)
        env = dict(clean, **extra)
        if expected == "pending":
            env["TIDELANE_SUMMARY"] = str(summary)
        data = pathlib.Path(f"{program.name}.h5").resolve()
        told = run(program, data, expected, env=env).stderr
        if bool(told) != (expected == "stored") or (told and "HDF5_PLUGIN_PATH" not in told):
            sys.exit(f"{program.name}, {situation}: says {told!r}")
        if data.stat().st_size < 4 << 20:
            sys.exit(f"{program.name}, {situation}: the file is too short")
        if expected == "pending" and json.loads(summary.read_text())["counters"]["bytes_deferred"] < 4 << 20:
            sys.exit(f"{program.name}, {situation}: nothing was deferred")
        print(f"{program.name}, {situation}: good")


def main():
    build, include, library, cc, cxx = sys.argv[1:]
    fortran = shutil.which("gfortran")
    if fortran is None:
        print("Fortran: skipped: no gfortran")
    prefix = install(build)
    programs = with_cmake(prefix, include, library, cc, cxx, fortran)
    programs += with_pkg_config(prefix, include, library, cc, fortran)
    for program in programs:
        check(program, prefix)


if __name__ == "__main__":
    main()
