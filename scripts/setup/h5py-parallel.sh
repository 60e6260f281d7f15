#!/usr/bin/env bash
# A Python environment with mpi4py and h5py built against the parallel HDF5 of this MPI: build/h5py/<mpi>.
#
#   h5py-parallel.sh mpich|openmpi
#
# Their sources are PyPI's. Where those cannot be had nothing is built, and the tests say that they are skipped.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
mpi=${1:-}
case $mpi in mpich | openmpi) ;; *) die "h5py-parallel.sh: mpich or openmpi, not '$mpi'" ;; esac
"$repo/scripts/setup/hdf5-parallel.sh" "$mpi"
root=$(cat "$build/hdf5/$mpi")
folder="$build/h5py/$mpi"
packages='mpi4py==4.1.2 h5py==3.16.0'
want="$packages $(python3 -V 2>&1) $root"
if [ "$(cat "$folder/tidelane-stamp" 2>/dev/null || true)" = "$want" ]; then exit 0; fi
"$repo/scripts/setup/hdf5-source.sh"
"$repo/scripts/setup/hdf5-unpack.sh"

# h5py is built with what is already in the environment, and nothing comes out of pip's cache: it does not tell one MPI from another.
make() {
  rm -rf "$folder"
  python3 -m venv "$folder"
  "$repo/scripts/setup/hdf5-high-level.sh" "$root" "$folder/hdf5" "mpicc.$mpi"
  local pip=("$folder/bin/python" -m pip install --disable-pip-version-check)
  "${pip[@]}" 'setuptools>=77' wheel Cython numpy pkgconfig pytest pytest-mpi
  export CC="mpicc.$mpi" MPICC="mpicc.$mpi" HDF5_MPI=ON HDF5_DIR="$folder/hdf5"
  export CFLAGS='-O0 -g0'  # optimized, mpi4py's one file alone takes minutes
  local package
  for package in $packages; do "${pip[@]}" --no-cache-dir --no-binary :all: --no-deps --no-build-isolation "$package"; done
}
step "h5py-$mpi" "h5py and mpi4py for $mpi (about 2 minutes on two cores)" make || exit 0
printf '%s\n' "$want" >"$folder/tidelane-stamp"
