#!/usr/bin/env bash
# Checks the thread-safety annotations (base/annotations.h), which only Clang understands. Says so and passes where no
# clang++ is installed.
set -euo pipefail
cd "$(dirname "$0")/../.."
clang=$(command -v clang++ || compgen -c clang++- | grep -xE 'clang\+\+-[0-9]+' | sort -t- -k2 -n | tail -n 1 || true)
if [ -z "$clang" ]; then
  echo "note: no clang++: thread-safety annotations not checked" >&2
  exit 0
fi
hdf5=$(sed -nE 's/^TIDELANE_HDF5_INCLUDE_DIR:PATH=//p' build/release/CMakeCache.txt)
git ls-files -co --exclude-standard -z -- 'src/*.cc' |
  xargs -0 -r -n 1 -P "${JOBS:-2}" "$clang" -std=c++20 -fsyntax-only -Wthread-safety -Werror=thread-safety \
    -Wno-unknown-warning-option -D_FILE_OFFSET_BITS=64 -Isrc -isystem "$hdf5"
