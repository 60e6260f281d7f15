#!/usr/bin/env bash
# What is too slow for every change (`make test-long`, hours): everything twenty times under a time limit, the long stress
# runs, all of HDF5's own test programs, netCDF-C's own tests, h5py's by ranks, programs of ranks on thread-safe and on asserting parallel HDF5, the clients under
# the address sanitizer, and the plugin on an HDF5 that is itself built with the thread sanitizer.
# REPEATS (20) sets the repeats, WHEELS_SECONDS (600: an hour for all six) how long random programs run through the wheels
# of each library, QUERY_PAIRS (100000) how many random queries are compared.
set -uo pipefail
. "$(dirname "$0")/setup/lib.sh"
. "$repo/scripts/stages.sh"
cd "$repo"
repeats=${REPEATS:-20}

stage "HDF5's test programs" scripts/setup/hdf5-tests.sh all
stage "netCDF-C with its tests" scripts/setup/netcdf-tests.sh
for mpi in mpich openmpi; do stage "h5py for ranks, $mpi" scripts/setup/h5py-parallel.sh "$mpi"; done
stage "build (release)" compile release
stage "tests, long ones included" tests release
stage "tests x$repeats (release)" tests release -LE 'long|client' --repeat "until-fail:$repeats"
for kind in threadsafe debug; do  # of parallel HDF5
  for mpi in mpich openmpi; do stage "parallel HDF5, $mpi, $kind" scripts/setup/hdf5-parallel.sh "$mpi" "$kind"; done
  stage "build (mpi-$kind)" compile "mpi-$kind"
  stage "programs of ranks (mpi-$kind)" tests "mpi-$kind" -L parallel
done
stage "build (asan)" compile asan
stage "all tests (asan)" tests asan
stage "tests x3 (asan)" tests asan -LE 'long|client' --repeat until-fail:3
if [ -e "$build/hdf5/own" ]; then
  stage "HDF5 with the thread sanitizer" scripts/setup/hdf5-build.sh thread
  stage "build (tsan-hdf5)" compile tsan-hdf5
  stage "tests (tsan, HDF5 too)" tests tsan-hdf5 -L 'unit|conformance|faults|stress' -LE 'client'
fi
stage "build (tsan)" compile tsan tidelane_core_tests
stage "core tests x$repeats (tsan)" tests tsan -L core --repeat "until-fail:$repeats"
finish
