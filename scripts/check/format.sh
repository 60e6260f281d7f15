#!/usr/bin/env bash
# Checks the formatting of the C and C++ sources with the pinned clang-format; --fix formats them in place.
set -euo pipefail
cd "$(dirname "$0")/../.."
tool=build/venv/bin/clang-format
[ -x "$tool" ] || { echo "note: no $tool (make setup-python): formatting not checked" >&2; exit 0; }
mode=(--dry-run -Werror)
[ "${1:-}" != --fix ] || { mode=(-i); shift; }
if [ $# -gt 0 ]; then
  exec "$tool" "${mode[@]}" "$@"
fi
git ls-files -co --exclude-standard -z -- 'src/*.h' 'src/*.cc' 'tests/*.h' 'tests/*.cc' 'tests/*.c' 'bench/*.h' 'bench/*.cc' 'bench/*.c' |
  xargs -0 -r "$tool" "${mode[@]}"
