"""One rank of h5py's own test suite: pytest, with a report of this rank's own.

h5py_ranks_suite.py FOLDER [ARGUMENT OF PYTEST ...]
"""

import os
import pathlib
import sys
import tempfile

import pytest
from mpi4py import MPI

rank = MPI.COMM_WORLD.rank
folder = pathlib.Path(sys.argv[1])
# Files of all ranks have one name, which rank 0 finds; others are each rank's own.
own = folder / f"rank{rank}"
own.mkdir()
os.environ["TMPDIR"] = tempfile.tempdir = str(own)
words = ["-q", "--with-mpi", "-p", "no:cacheprovider", "-p", "no:warnings", "-o", "junit_family=xunit1"]
status = pytest.main([*words, f"--junitxml={folder}/rank{rank}.xml", "--pyargs", "h5py", *sys.argv[2:]])
sys.exit(0 if status in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED) else int(status))
