"""Turning it on: in time, too late, with settings, for one file, from the command line."""

import json
import os
import sys

import pytest

WRITES = """
import numpy as np, tidelane, {module}
with h5py.File("out.h5", "w"{more}) as file:
    file["x"] = np.arange(1 << 18)
counters = tidelane.stats()["counters"]
assert counters["files_opened"] == {opened}, counters
assert (counters["bytes_deferred"] > 1 << 20) == {deferred}, counters
"""


def test_auto_before_h5py(program):
    program("import tidelane.auto\n" + WRITES.format(module="h5py", more="", opened=1, deferred=True))


def test_importing_it_brings_little_with_it(program):
    """Jobs of a second import it, too: no more than what calls the plugin and reads its answers."""
    done = program("import sys; before = set(sys.modules); import tidelane.auto; print(*sorted(set(sys.modules) - before))")
    brought = set(done.stdout.split())
    assert "tidelane._wait" in brought
    assert not brought & {"asyncio", "importlib.metadata", "email", "socket", "ssl", "subprocess", "inspect", "logging"}, brought
    assert len(brought) < 70, sorted(brought)


def test_without_it_nothing_changes(program):
    program(WRITES.format(module="h5py", more="", opened=0, deferred=False))


def test_the_callers_folders_stay_on_the_path(program):
    done = program(
        "import tidelane.auto, os; print(os.environ['HDF5_PLUGIN_PATH'])", env={"HDF5_PLUGIN_PATH": "/one:/two"}
    )
    first, *others = done.stdout.strip().split(":")
    assert first.endswith("tidelane/plugin") and others == ["/one", "/two"]
    done = program("import tidelane.auto, tidelane, os; tidelane.enable(); print(os.environ['HDF5_PLUGIN_PATH'])")
    assert done.stdout.count("tidelane/plugin") == 1 and "/usr/local/hdf5/lib/plugin" in done.stdout


def test_netcdf4s_own_filters_are_found(program):
    """Its wheel points HDF5 to them, but only where the variable is not set."""
    code = "import netCDF4; print(netCDF4.Dataset('x.nc', 'w').has_zstd_filter(), netCDF4.Dataset('y.nc', 'w').has_blosc_filter())"
    assert program("import tidelane.auto;" + code).stdout == program(code, native=True).stdout == "True True\n"


def test_another_connector_is_left_alone(program):
    done = program("import tidelane.auto", env={"HDF5_VOL_CONNECTOR": "pass_through"}, rc=1)
    assert "pass_through" in done.stderr


def test_settings_are_the_plugins(program):
    program(
        """
        import tidelane
        assert tidelane.settings()["close"]["accepted"] == "wait, deferred, tier or tier_deferred"
        tidelane.enable(close="deferred", arena="64M", parallel_reads=False, summary=None)
        import h5py, os
        h5py.File("out.h5", "w").close()
        used = {item["name"]: item["value"] for item in tidelane.stats()["settings"]}
        assert (used["close"], used["parallel_reads"]) == ("deferred", "off"), used
        """
    )


@pytest.mark.parametrize(
    "options, words",
    [("cloze='deferred'", "the nearest is close"), ("close='defered'", "the nearest is deferred"), ("lanes=0", "from 1 to")],
)
def test_a_typo_is_told_with_the_nearest_word(program, options, words):
    done = program(f"import tidelane, os\ntry: tidelane.enable({options})\nexcept tidelane.SettingError as e: print(e)\n"
                   "assert 'HDF5_VOL_CONNECTOR' not in os.environ")  # fmt: skip
    assert words in done.stdout


def test_the_environment_wins_over_an_option(program):
    done = program(
        """
        import tidelane
        tidelane.enable(close="deferred")
        import h5py
        h5py.File("out.h5", "w").close()
        print([item for item in tidelane.stats()["settings"] if item["name"] == "close"][0]["value"])
        """,
        env={"TIDELANE_CLOSE": "wait"},
    )
    assert done.stdout.strip() == "wait"


def test_too_late_says_whose_and_what_works(program):
    done = program("import h5py, tidelane\ntry: tidelane.enable()\nexcept tidelane.TooLateError as e: print(e)")
    for words in ("h5py.libs/libhdf5", "(of h5py)", "import tidelane.auto", 'driver="tidelane"'):
        assert words in done.stdout
    done = program(
        """
        import tidelane.auto, h5py, tidelane
        tidelane.enable()  # again: nothing to do
        try: tidelane.enable(close="deferred")
        except tidelane.TooLateError as error: print(error)
        """
    )
    assert "change its settings" in done.stdout


@pytest.mark.parametrize("first", ["h5py, tidelane", "tidelane, h5py"])
def test_one_file_by_its_driver(program, first):
    text = WRITES.format(module="h5py", more=', driver="tidelane", mode_="async"', opened=1, deferred=True)
    program(f"import {first}\n" + text.replace('mode_="async"', 'close="deferred"'))
    program(
        f"import {first}\n"
        """
import numpy as np
with h5py.File("native.h5", "w") as file: file["x"] = 1
assert tidelane.stats()["counters"]["files_opened"] == 0
for options in ({"clos": "wait"}, {"lanes": 2}):
    try: h5py.File("out.h5", "w", driver="tidelane", **options)
    except tidelane.SettingError as error: print(error)
    else: raise SystemExit("taken")
"""
    )


def test_run_and_env(program):
    (program.folder / "script.py").write_text(
        "import sys, tidelane, h5py\nassert __name__ == '__main__' and sys.argv[1:] == ['--set', 'x'], sys.argv\n"
        "h5py.File('out.h5', 'w').close()\nassert tidelane.stats()['counters']['files_opened'] == 1\n"
    )
    program("", command=[sys.executable, "-m", "tidelane", "run", "--set", "close=deferred", "script.py", "--set", "x"])
    done = program("", command=[sys.executable, "-m", "tidelane", "run", "--set", "close=defered", "script.py"], rc=1)
    assert len(done.stderr.splitlines()) == 1 and "the nearest is deferred" in done.stderr
    lines = program("", command=[sys.executable, "-m", "tidelane", "env", "--set", "arena=64M"]).stdout
    shell = f'{lines}\n{sys.executable} -c "import tidelane, h5py; h5py.File(\'o.h5\', \'w\'); print(tidelane.stats()[\'counters\'])"'
    done = program("", command=["sh", "-c", shell])
    assert json.loads(done.stdout.replace("'", '"'))["arena_cap_bytes"] == 64 << 20


def test_children_inherit_it(program):
    done = program(
        """
        import tidelane.auto, subprocess, sys
        print(subprocess.run([sys.executable, "-c", "import tidelane, h5py; print(tidelane.stats() and tidelane.enabled())"]))
        """
    )
    assert "True" in done.stdout and os.path.exists(program.folder)


def test_a_plugin_file_that_is_replaced_is_still_the_one(program):
    """An upgrade under a running process: the functions are those of the image that HDF5 has."""
    program("""
        import os, shutil, tidelane
        from tidelane import _plugin
        shutil.copytree(_plugin.FOLDER, "plugin")
        os.environ.update(HDF5_PLUGIN_PATH=os.path.abspath("plugin"), HDF5_VOL_CONNECTOR="tidelane")
        import h5py
        file = h5py.File("out.h5", "w")
        file["x"] = list(range(1000))
        shutil.copy(f"plugin/{_plugin.NAME}", "plugin/new")
        os.replace("plugin/new", f"plugin/{_plugin.NAME}")
        assert _plugin.loaded() is not None
        assert tidelane.stats()["counters"]["files_opened"] == 1
        tidelane.wait(file)
        """)
