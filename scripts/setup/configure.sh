#!/usr/bin/env bash
# Configures build/<preset> against the HDF5 that hdf5.sh chose, and the parallel ones that hdf5-parallel.sh has built;
# does nothing when it already is.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
preset=$1
root=$(cat "$build/hdf5/root")
if [ "$preset" = tsan-hdf5 ]; then root="$(cat "$build/hdf5/own")-thread"; fi
kind=
case $preset in mpi-*) kind=-${preset#mpi-} ;; esac
wanted=(
  "TIDELANE_HDF5_ROOT:PATH=$root"
  "TIDELANE_HDF5_MPICH_ROOT:PATH=$(cat "$build/hdf5/mpich$kind" 2>/dev/null || true)"
  "TIDELANE_HDF5_OPENMPI_ROOT:PATH=$(cat "$build/hdf5/openmpi$kind" 2>/dev/null || true)"
  "TIDELANE_WERROR:BOOL=${WERROR:-OFF}"
)
configured() {
  local entry
  [ -e "$build/$preset/build.ninja" ] || return 1
  for entry in "${wanted[@]}"; do grep -qxF "$entry" "$build/$preset/CMakeCache.txt" || return 1; done
}
if configured; then exit 0; fi
cd "$repo"
step "configure-$preset" "configuring ($preset)" cmake --preset "$preset" "${wanted[@]/#/-D}"
