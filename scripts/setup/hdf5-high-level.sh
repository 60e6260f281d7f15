#!/usr/bin/env bash
# An HDF5 that was built here with the high-level library beside it, which ours are built without.
#
#   hdf5-high-level.sh ROOT FOLDER [CC]     FOLDER gets links to ROOT's headers and libraries, and the library
set -euo pipefail
. "$(dirname "$0")/lib.sh"
root=$1
folder=$2
from=$(cat "$build/hdf5/source/tree")
rm -rf "$folder"
mkdir -p "$folder/include" "$folder/lib"
ln -s "$root"/include/*.h "$from"/hl/src/*.h "$folder/include/"
ln -s "$root"/lib/libhdf5.so* "$folder/lib/"
"${3:-cc}" -shared -fPIC -O1 -w -DH5_BUILT_AS_DYNAMIC_LIB -I"$root/include" -I"$from/hl/src" -I"$from/src" -I"$from/src/H5FDsubfiling" \
  "$from"/hl/src/*.c -L"$root/lib" -lhdf5 -Wl,-rpath,"$root/lib" -Wl,-soname,libhdf5_hl.so -o "$folder/lib/libhdf5_hl.so"
