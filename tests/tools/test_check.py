"""`tidelane check`: what is usable is proven by a file; what is not is named with what to do."""

import ctypes
import json
import os
import pathlib
import subprocess
import sys

import pytest
from conftest import CC, REPO

PLUGINS = os.environ["TIDELANE_TEST_PLUGIN_DIR"]


def findings(done):
    result = json.loads(done.stdout)
    assert result["ok"] == (done.returncode == 0)
    assert result["ok"] == all(finding["state"] != "FAILED" for finding in result["findings"])
    for finding in result["findings"]:
        assert finding["state"] != "FAILED" or finding["advice"], finding
    return {finding["check"]: finding for finding in result["findings"]}


def library(tidelane, code, name="libhdf5.so"):
    """A library that somebody could take for HDF5, or for another one by its name."""
    source = tidelane.folder / "fake.c"
    source.write_text(code)
    path = tidelane.folder / name
    subprocess.run([CC, "-shared", "-fPIC", "-o", path, source], check=True, timeout=60)
    return path


VERSION = "int H5get_libversion(unsigned *a, unsigned *b, unsigned *c) {{ *a = {}; *b = {}; *c = {}; return 0; }}\n"


def test_pythons_hdf5(tidelane):
    done = tidelane("check", "--", sys.executable)
    assert done.returncode == 0, done.stdout
    assert "\nOK: " in done.stdout and "FAILED" not in done.stdout
    assert "of h5py in" in done.stdout.replace("\n                   ", " ")
    assert [path for path in tidelane.folder.iterdir() if path.name.startswith("tidelane-check")] == []


def test_the_self_test_is_asynchronous_and_compared(tidelane):
    env = {"TIDELANE_MODE": "sync", "TIDELANE_TRACE": "no.trace", "HDF5_VOL_CONNECTOR": "tidelane close=deferred"}
    done = tidelane("check", "--json", "--", sys.executable, **env)  # the user's own settings do not get in
    found = findings(done)
    assert "written asynchronously" in found["self-test"]["text"]
    assert "native HDF5 read all of it back" in found["self-test"]["text"]
    assert {"lanes", "plugin", "HDF5", "storage", "compression"} <= found.keys()
    assert not (tidelane.folder / "no.trace").exists()


def test_an_hdf5_by_its_prefix(tidelane):
    root = os.environ.get("TIDELANE_HDF5_ROOT", "")
    found = findings(tidelane("check", "--json", "--hdf5", root))
    assert found["HDF5"]["state"] == "ok" and root in found["HDF5"]["text"]
    tool = pathlib.Path(root, "bin", "h5dump")
    if tool.exists():
        env = {"LD_LIBRARY_PATH": os.path.join(root, "lib")}
        assert root in findings(tidelane("check", "--json", "--", tool, **env))["HDF5"]["text"]


def test_too_old(tidelane):
    path = library(tidelane, VERSION.format(1, 10, 8))
    done = tidelane("check", "--json", "--hdf5", path)
    assert done.returncode == 1
    found = findings(done)["HDF5"]
    assert "1.10.8" in found["text"] and "1.14.1 or newer" in found["advice"]


def test_one_that_cannot_load_the_plugin(tidelane):
    path = library(tidelane, VERSION.format(1, 14, 6))
    found = findings(tidelane("check", "--json", "--hdf5", path))["HDF5"]
    assert "cannot load the plugin" in found["text"]


def test_one_that_crashes_when_it_is_loaded(tidelane):
    path = library(tidelane, "#include <stdlib.h>\n__attribute__((constructor)) static void now(void) { abort(); }\n")
    found = findings(tidelane("check", "--json", "--hdf5", path))["HDF5"]
    assert found["state"] == "FAILED" and "cannot be loaded" in found["text"]


def test_what_is_no_hdf5(tidelane):
    for words, said in [
        (["--hdf5", "/nonexistent"], "does not exist"),
        (["--hdf5", tidelane.folder], "no libhdf5.so under"),
        (["--hdf5", tidelane.writer], "cannot be loaded"),
        (["--", "true"], "not linked to a shared libhdf5"),
        (["--", "nonexistent-program"], "there is no program"),
    ]:
        done = tidelane("check", "--json", *words)
        assert done.returncode == 1 and said in findings(done)["HDF5"]["text"], words


def test_a_folder_that_cannot_be_written_to(tidelane):
    done = tidelane("check", "--json", "--dir", "/nonexistent", "--", sys.executable)
    found = findings(done)
    assert "No such file" in found["storage"]["text"] and "self-test" not in found


def test_a_plugin_that_is_missing_or_damaged(tidelane):
    found = findings(tidelane("check", "--json", "--plugins", "/nonexistent", "--", sys.executable))
    assert "no libtidelane.so" in found["plugin"]["text"]
    (tidelane.folder / "libtidelane.so").write_bytes(pathlib.Path(PLUGINS, "libtidelane.so").read_bytes()[:5000])
    found = findings(tidelane("check", "--json", "--plugins", tidelane.folder, "--", sys.executable))
    assert found["plugin"]["state"] == "FAILED"


def test_wrong_settings_are_said(tidelane):
    done = tidelane("check", "--json", "--", sys.executable, TIDELANE_LANES="many")
    assert "accepted are a number from 1 to 64" in findings(done)["settings"]["text"]


def gpu(tidelane, folder):
    """What is said of GPUs, with the driver that lies in a folder; the rest is over at once."""
    done = tidelane("check", "--json", "--plugins", "/nonexistent", "--hdf5", "/nonexistent", LD_LIBRARY_PATH=str(folder))
    return findings(done)["GPU"]


def test_the_gpus_are_named(tidelane):
    driver = pathlib.Path(os.environ["TIDELANE_TEST_LIBCUDA"])
    found = findings(tidelane("check", "--json", "--", sys.executable, LD_LIBRARY_PATH=str(driver.parent)))
    assert found["GPU"]["state"] == "ok" and "stand-in 0 with 8.0 GiB, stand-in 1 with 8.0 GiB" in found["GPU"]["text"]
    assert found["self-test"]["state"] == "ok"


DRIVER = """
#include <stddef.h>
#include <string.h>
int cuInit(unsigned flags) {{ return {started}; }}
int cuGetErrorName(int error, const char **name) {{ *name = "CUDA_ERROR_SYSTEM_NOT_READY"; return 0; }}
int cuDeviceGetCount(int *count) {{ *count = {count}; return 0; }}
int cuDeviceGet(int *device, int i) {{ *device = i; return 0; }}
int cuDeviceGetName(char *name, int size, int device) {{ strcpy(name, "Some GPU"); return 0; }}
int cuDeviceTotalMem_v2(size_t *bytes, int device) {{ *bytes = (size_t)80 << 30; return 0; }}
"""


@pytest.mark.parametrize(
    "code, state, text",
    [
        (DRIVER.format(started=0, count=4), "ok", "4 x Some GPU with 80.0 GiB: H5Dwrite and H5Dread take pointers to their memory"),
        (DRIVER.format(started=0, count=1), "ok", "Some GPU with 80.0 GiB: H5Dwrite and H5Dread take pointers to its memory"),
        (DRIVER.format(started=100, count=9), "ok", "none: the CUDA driver tells of no device"),
        (DRIVER.format(started=802, count=9), "note", "cuInit says CUDA_ERROR_SYSTEM_NOT_READY"),
        ("int cuInit(unsigned flags) { return 0; }\n", "note", "the library has no cuGetErrorName"),
        ("#include <stdlib.h>\n__attribute__((constructor)) static void now(void) { abort(); }\n", "note", "ended by signal 6"),
    ],
)
def test_what_a_driver_may_say(tidelane, code, state, text):
    library(tidelane, code, "libcuda.so.1")
    found = gpu(tidelane, tidelane.folder)
    assert found["state"] == state and text in found["text"], found


def test_no_driver(tidelane):
    try:
        ctypes.CDLL("libcuda.so.1")
        pytest.skip("this machine has a driver")
    except OSError:
        assert gpu(tidelane, tidelane.folder)["text"] == "none: there is no driver of CUDA (libcuda.so.1) or HIP (libamdhip64.so)"


HIP = """
#include <stddef.h>
#include <string.h>
int hipInit(unsigned flags) {{ return {started}; }}
const char *hipGetErrorName(int error) {{ return "hipErrorUnknown"; }}
int hipGetDeviceCount(int *count) {{ *count = {count}; return 0; }}
int hipDeviceGet(int *device, int i) {{ *device = i; return 0; }}
int hipDeviceGetName(char *name, int size, int device) {{ strcpy(name, "Some AMD GPU"); return 0; }}
int hipDeviceTotalMem(size_t *bytes, int device) {{ *bytes = (size_t)64 << 30; return 0; }}
"""


@pytest.mark.parametrize("version", [5, 6, 7])
@pytest.mark.parametrize(
    "started, count, state, text",
    [
        (0, 2, "ok", "2 x Some AMD GPU with 64.0 GiB: H5Dwrite and H5Dread take pointers to their memory"),
        (100, 2, "ok", "none: the HIP driver tells of no device"),
        (999, 2, "note", "HIP's driver does not answer: it ended with status 1: hipInit says hipErrorUnknown"),
    ],
)
def test_what_hip_may_say(tidelane, version, started, count, state, text):
    library(tidelane, HIP.format(started=started, count=count), f"libamdhip64.so.{version}")
    found = gpu(tidelane, tidelane.folder)
    assert found["state"] == state and text in found["text"], found


@pytest.mark.skipif(not (REPO / "build" / "env.sh").exists(), reason="no build/env.sh: not set up by make")
def test_the_shells_environment_leaves_the_loader_alone():
    """What a program is linked to stays what it loads; HDF5's tools find theirs all the same."""
    code = '. build/env.sh && printf "%s\\n" "${LD_LIBRARY_PATH-unset}" && { ! [ -x "$TIDELANE_HDF5_ROOT/bin/h5dump" ] || h5dump --version; }'
    for given in ("unset", "/somewhere/lib"):
        env = {name: value for name, value in os.environ.items() if name != "LD_LIBRARY_PATH"}
        if given != "unset":
            env["LD_LIBRARY_PATH"] = given
        done = subprocess.run(["sh", "-c", code], cwd=REPO, env=env, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        assert done.stdout.splitlines()[0] == given
