#!/usr/bin/env bash
# Configures build/<preset> against the HDF5 that hdf5.sh chose; does nothing when it already is.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
preset=$1
root=$(cat "$build/hdf5/root")
if [ "$preset" = tsan-hdf5 ]; then root="$(cat "$build/hdf5/own")-thread"; fi
werror=${WERROR:-OFF}
cache="$build/$preset/CMakeCache.txt"
if [ -e "$build/$preset/build.ninja" ] && grep -qxF "TIDELANE_HDF5_ROOT:PATH=$root" "$cache" &&
  grep -qxF "TIDELANE_WERROR:BOOL=$werror" "$cache"; then
  exit 0
fi
cd "$repo"
step "configure-$preset" "configuring ($preset)" cmake --preset "$preset" "-DTIDELANE_HDF5_ROOT:PATH=$root" "-DTIDELANE_WERROR:BOOL=$werror"
