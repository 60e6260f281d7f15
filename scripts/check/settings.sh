#!/usr/bin/env bash
# Checks that docs/settings.md is what the table of settings (src/base/settings.cc) says; --fix writes it.
set -euo pipefail
cd "$(dirname "$0")/../.."
page=docs/settings.md
ninja -C build/release settings_page >build/release/settings_page.log || { cat build/release/settings_page.log; exit 1; }
made=$(mktemp)
trap 'rm -f "$made"' EXIT
build/release/bin/settings_page >"$made"
if [ "${1:-}" = --fix ]; then
  cp "$made" "$page"
elif ! diff -u "$page" "$made"; then
  echo "$page is not what src/base/settings.cc says: scripts/check/settings.sh --fix writes it" >&2
  exit 1
fi
