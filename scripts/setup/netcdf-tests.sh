#!/usr/bin/env bash
# Compiles netCDF-C with its own tests against the HDF5 that was built here: build/netcdf/<version>, its name in build/netcdf/tests.
#
# Its source is the newest that Debian or Ubuntu publish as a package. Without what needs a network (DAP, byte ranges) and what
# is not HDF5 (NCZarr); without filters of its own, whose tests set HDF5_PLUGIN_PATH to their folder and leave the plugin out.
#
# An HDF5 that was not built here (HDF5_ROOT) has no sources to compile its high-level library from, which netCDF-C needs:
# nothing is built, and the tests say that they are skipped.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
root=$(cat "$build/hdf5/root")
if [ "$root" != "$(cat "$build/hdf5/own" 2>/dev/null)" ]; then exit 0; fi
"$repo/scripts/setup/source.sh" netcdf '1:4\.(9\.[3-9]|[1-9][0-9]).*' "$build/netcdf/source"
"$repo/scripts/setup/hdf5-source.sh"
"$repo/scripts/setup/hdf5-unpack.sh"
tarball=$(cat "$build/netcdf/source/tarball")
version=$(basename "$tarball" | grep -oE '[0-9]+\.[0-9]+\.[0-9]+' | head -n 1)
source="$build/netcdf/source/$version"
tree="$build/netcdf/$version"
hdf5="$build/netcdf/hdf5"  # as installed, with the high-level library
if [ -e "$tree/tidelane-complete" ] && [ "$(cat "$tree/tidelane-complete")" = "$root" ]; then exit 0; fi

compile() {
  "$repo/scripts/setup/hdf5-high-level.sh" "$root" "$hdf5"
  rm -rf "$source" "$tree" && mkdir -p "$source" && tar -xf "$tarball" -C "$source" --strip-components=1
  cmake -S "$source" -B "$tree" -G Ninja -DCMAKE_C_FLAGS="-O1 -w" -DHDF5_ROOT="$hdf5" -DHDF5_NO_FIND_PACKAGE_CONFIG_FILE=ON \
    -DNETCDF_ENABLE_REMOTE_FUNCTIONALITY=OFF -DNETCDF_ENABLE_DAP=OFF -DNETCDF_ENABLE_NCZARR=OFF -DNETCDF_ENABLE_LIBXML2=OFF \
    -DNETCDF_ENABLE_PLUGINS=OFF
  ninja -C "$tree" -j "$jobs"
}
step netcdf-tests "netCDF-C $version with its tests (about 2 minutes on two cores)" compile
printf '%s\n' "$root" >"$tree/tidelane-complete"
printf '%s\n' "$tree" >"$build/netcdf/tests"
