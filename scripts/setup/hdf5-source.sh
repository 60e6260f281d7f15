#!/usr/bin/env bash
# Fetches the sources of the newest HDF5 1.14 that Debian or Ubuntu publish: build/hdf5/source/hdf5_<version>.orig.tar.gz,
# its name in build/hdf5/source/tarball.
#
# HDF5_TARBALL=<file> uses a tarball that you have instead (machines without a network).
set -euo pipefail
. "$(dirname "$0")/lib.sh"
dir="$build/hdf5/source"
mkdir -p "$dir"

if [ -n "${HDF5_TARBALL:-}" ]; then
  [ -r "$HDF5_TARBALL" ] || die "HDF5_TARBALL=$HDF5_TARBALL cannot be read"
  realpath "$HDF5_TARBALL" >"$dir/tarball"
  exit 0
fi
"$repo/scripts/setup/source.sh" hdf5 '1\.14\.[1-9].*' "$dir" ||
  die "no HDF5 >= 1.14.1 found. Set HDF5_ROOT to one, or HDF5_TARBALL to the source of one."
