#!/usr/bin/env bash
# clang-tidy over what goes into the plugin (.clang-tidy says which checks): minutes, so `make tidy` and not `make check`.
set -euo pipefail
cd "$(dirname "$0")/../.."
tidy=
for candidate in clang-tidy-{22,21,20,19,18,17,16} clang-tidy; do
  if command -v "$candidate" >/dev/null; then tidy=$candidate; break; fi
done
[ -n "$tidy" ] || { echo "no clang-tidy here (Debian: clang-tidy-19)" >&2; exit 1; }
git ls-files -z -- 'src/*.cc' ':!src/*_test.cc' ':!src/*_bench.cc' |
  xargs -0 -r -n 1 -P "${JOBS:-2}" "$tidy" -p build/release --quiet --warnings-as-errors='*' 2>/dev/null
