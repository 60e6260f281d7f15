#!/usr/bin/env bash
# Checks the formatting of the C and C++ sources with the pinned clang-format; --fix formats them in place.
set -euo pipefail
cd "$(dirname "$0")/../.."
tool=build/venv/bin/clang-format
[ -x "$tool" ] || { echo "note: no $tool (make setup-python): formatting not checked" >&2; exit 0; }
sources() {
  git ls-files -co --exclude-standard -- 'library/*.h' 'library/*.c' 'src/*.h' 'src/*.cc' 'tests/*.h' 'tests/*.cc' 'tests/*.c' 'bench/*.h' 'bench/*.cc' 'bench/*.c' 'scripts/*.cc'
}
if [ "${1:-}" = --fix ]; then
  sources | xargs -r -d '\n' "$tool" -i
  exit 0
fi
sources | xargs -r -d '\n' -n 40 -P "${JOBS:-2}" "$tool" --dry-run -Werror
