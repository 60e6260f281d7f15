"""Journalled files from Python: settings for the process and for a file, and commits with the files of each library."""

import pytest
from conftest import ASYNC

LIBRARIES = {
    "h5py": "import h5py; file = h5py.File('out.h5', 'w'); part = file.create_dataset('x', data=data)",
    "h5py's low level": "import h5py; low = h5py.File('out.h5', 'w'); file = low.id; part = low.create_dataset('x', data=data).id",
    "h5netcdf": "import h5netcdf; file = h5netcdf.File('out.h5', 'w'); file.dimensions = {'d': len(data)}; "
    "part = file.create_variable('x', ('d',), data=data)",
    "netCDF4": "import netCDF4; file = netCDF4.Dataset('out.h5', 'w'); file.createDimension('d', len(data)); "
    "part = file.createVariable('x', 'i8', ('d',)); part[:] = data",
    "tables": "import tables; file = tables.open_file('out.h5', 'w'); part = file.create_carray('/', 'x', obj=data)",
}


@pytest.mark.parametrize("way", ["under Tidelane", "natively"])
@pytest.mark.parametrize("library", LIBRARIES)
def test_what_is_committed_is_whole(program, library, way):
    """Without a journal a commit is a flush: what it leaves in the file can be read, by another process."""
    program(
        f"""
        {"import tidelane.auto" if way == "under Tidelane" else ""}
        import tidelane, numpy as np, shutil
        data = np.arange(1 << 18)
        {LIBRARIES[library]}
        for target in (file, part): tidelane.commit(target)
        shutil.copy("out.h5", "copy.h5")
        file.close()
        """,
        env=ASYNC if way == "under Tidelane" else {},
    )
    program("import h5py, numpy as np; assert (h5py.File('copy.h5')['x'][:] == np.arange(1 << 18)).all()", native=True)


def test_a_commit_wants_an_open_file(program):
    program("""
        import tidelane.auto, tidelane
        for target in ("out.h5", None, 7):
            try: tidelane.commit(target)
            except TypeError: pass
            else: raise SystemExit(f"{target} was committed")
        """)


def test_settings_for_the_process_and_for_a_file(program):
    program(
        """
        import tidelane
        tidelane.enable(journal="off", journal_required=False, journal_commits=10)
        import h5py
        with h5py.File("a.h5", "w", driver="tidelane", journal="off", journal_commits="250ms") as file: file["x"] = 1
        found = {one["name"]: one["value"] for one in tidelane.stats()["settings"]}
        assert (found["journal"], found["journal_required"], found["journal_commits"]) == ("off", "off", "10"), found
        for mistake in ({"journal": "on"}, {"journal_commits": 0}, {"journal_required": "maybe"}):
            try: h5py.File("b.h5", "w", driver="tidelane", **mistake)
            except tidelane.SettingError as error: assert "accepted are" in str(error), error
            else: raise SystemExit(f"{mistake} was taken")
        """,
        env={},
    )
    assert not (program.folder / "b.h5").exists()
