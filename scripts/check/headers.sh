#!/usr/bin/env bash
# Compiles the headers of src/ alone, so that none leans on what its includer happened to include before; not those that
# a source of the same name includes first, which proves as much. Rooms below h5/ are compiled without any HDF5 include path.
set -euo pipefail
cd "$(dirname "$0")/../.."
hdf5=$(sed -nE 's/^TIDELANE_HDF5_INCLUDE_DIR:PATH=//p' build/release/CMakeCache.txt)
export hdf5

one() {
  local flags=()
  case $1 in src/h5/* | src/vol/* | src/vfd/* | src/plugin/* | src/query/*) flags=(-isystem "$hdf5") ;; esac
  printf '#include "%s"\n#include "%s"\n' "${1#src/}" "${1#src/}" |  # twice: include guards
    "${CXX:-c++}" -x c++ -std=c++20 -fsyntax-only -Wall -Wextra -Isrc "${flags[@]}" - ||
    { echo "$1: is not self-contained" >&2; return 1; }
}
export -f one
find src -name '*.h' | sort | while read -r header; do
  grep -m 1 '^#include' "${header%.h}.cc" 2>/dev/null | grep -qxF "#include \"${header#src/}\"" || printf '%s\0' "$header"
done | xargs -0 -r -n 1 -P "${JOBS:-2}" bash -c 'one "$1"' _
