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
bad=0
while read -r file; do
  "$tool" --dry-run -Werror "$file" 2>/dev/null || { echo "$file: not formatted"; bad=1; }
done < <(sources)
exit $bad
