#!/usr/bin/env bash
# Unpacks the tarball that hdf5-source.sh fetched, once, for every build of it: build/hdf5/source/<version>, its name in
# build/hdf5/source/tree.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
tarball=$(cat "$build/hdf5/source/tarball")
version=$(basename "$tarball" | grep -oE '[0-9]+\.[0-9]+\.[0-9]+' | head -n 1)
[ -n "$version" ] || die "$tarball: no version in its name"
tree="$build/hdf5/source/$version"
printf '%s\n' "$tree" >"$build/hdf5/source/tree"
if [ -e "$tree/tidelane-unpacked" ]; then exit 0; fi
unpack() {
  rm -rf "$tree" && mkdir -p "$tree" && tar -xf "$tarball" -C "$tree" --strip-components=1 && touch "$tree/tidelane-unpacked"
}
step "hdf5-$version-unpack" "unpacking HDF5 $version" unpack
