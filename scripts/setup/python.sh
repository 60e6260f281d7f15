#!/usr/bin/env bash
# Makes build/venv with the packages of requirements.txt (wheels: h5py brings its own libhdf5).
set -euo pipefail
. "$(dirname "$0")/lib.sh"
here="$repo/scripts/setup"
want="$(cksum <"$here/requirements.txt") $(python3 -V 2>&1)"
[ "$(cat "$build/venv/tidelane-stamp" 2>/dev/null || true)" != "$want" ] || exit 0
"$here/packages.sh" python
want="$(cksum <"$here/requirements.txt") $(python3 -V 2>&1)"
make() {
  rm -rf "$build/venv"
  python3 -m venv "$build/venv"
  "$build/venv/bin/python" -m pip install --disable-pip-version-check --only-binary=:all: -r "$here/requirements.txt"
}
step python "Python packages (build/venv)" make
printf '%s\n' "$want" >"$build/venv/tidelane-stamp"
