#!/usr/bin/env bash
# Checks the thread-safety annotations (base/annotations.h), which only Clang understands; not in tests, which hold no lock
# of ours and would take as long again. Says so and passes where there is no Clang that knows the C++20 used here (16;
# Debian 12's plain `clang` is 14).
set -euo pipefail
cd "$(dirname "$0")/../.."
clang=
for candidate in clang++ clang++-{22,21,20,19,18,17,16}; do
  version=$("$candidate" -dumpversion 2>/dev/null | cut -d. -f1) || continue
  if [ "${version:-0}" -ge 16 ]; then
    clang=$candidate
    break
  fi
done
if [ -z "$clang" ]; then
  echo "note: no clang++ >= 16: thread-safety annotations not checked" >&2
  exit 0
fi
hdf5=$(sed -nE 's/^TIDELANE_HDF5_INCLUDE_DIR:PATH=//p' build/release/CMakeCache.txt)
flags=(-std=c++20 -D_FILE_OFFSET_BITS=64 -Isrc -isystem "$hdf5" -Wno-unknown-warning-option -Wno-deprecated-declarations)
# The standard library's headers are half of the work, so they are read once.
mkdir -p build/check
headers=build/check/standard.h
printf '#include <%s>\n' algorithm array atomic chrono cmath condition_variable cstdint cstring deque filesystem functional \
  map memory mutex optional span sstream string thread unordered_map utility vector >"$headers"
"$clang" "${flags[@]}" -x c++-header "$headers" -o "$headers.pch"
# What is guarded is private: it is touched by sources that include its header, or whose own header does.
annotated='TL_[A-Z_]+\(|MutexLock'
git ls-files -co --exclude-standard -- 'src/*.h' | xargs -r grep -lE "$annotated" | sed 's|^src/\(.*\)|#include "\1"|' >build/check/annotated.txt
{
  git ls-files -co --exclude-standard -- 'src/*.cc' | xargs -r grep -lE "$annotated"
  git ls-files -co --exclude-standard -- 'src/*.cc' 'src/*.h' | xargs -r grep -lxF -f build/check/annotated.txt | sed 's/\.h$/.cc/'
} | sort -u | while read -r source; do
  case $source in *_bench.cc | *_test.cc) ;; *) if [ -e "$source" ]; then printf '%s\0' "$source"; fi ;; esac
done | xargs -0 -r -n 1 -P "${JOBS:-2}" "$clang" "${flags[@]}" -include-pch "$headers.pch" -fsyntax-only -Wthread-safety -Werror=thread-safety
