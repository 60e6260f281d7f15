#!/usr/bin/env bash
# Compiles HDF5's own test programs against the HDF5 that was built here: build/hdf5/tests/<version>/bin.
#
#   hdf5-tests.sh few   the programs that every change runs
#   hdf5-tests.sh all   those of `make test-long`
#
# An HDF5 that was not built here (HDF5_ROOT) has no sources to compile them from: nothing is built, and the tests say that
# they are skipped.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
which=${1:-few}
root=$(cat "$build/hdf5/root")
if [ "$root" != "$(cat "$build/hdf5/own" 2>/dev/null)" ]; then exit 0; fi
version=$(basename "$root")
tree="$build/hdf5/tests/$version"
lists=$(cat "$repo"/scripts/setup/hdf5-tests/*[Cc][Mm]ake* | cksum)  # another list, other programs
if [ -e "$tree/tidelane-$which" ] && [ "$(cat "$tree/tidelane-$which")" = "$lists" ]; then exit 0; fi
"$repo/scripts/setup/hdf5-source.sh"
"$repo/scripts/setup/hdf5-unpack.sh"
compile() {
  cmake -S "$repo/scripts/setup/hdf5-tests" -B "$tree" -G Ninja -DHDF5_SOURCE="$build/hdf5/source/$version" -DHDF5_PREFIX="$root" \
    -DHDF5_TESTS="$which" && ninja -C "$tree" -j "$jobs"
}
step "hdf5-tests-$which" "HDF5's own test programs ($which)" compile
printf '%s\n' "$build/hdf5/source/$version" >"$tree/source"
printf '%s\n' "$lists" >"$tree/tidelane-$which"
if [ "$which" = all ]; then printf '%s\n' "$lists" >"$tree/tidelane-few"; fi
