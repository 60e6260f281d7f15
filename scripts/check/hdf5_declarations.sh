#!/usr/bin/env bash
# Whether src/h5/declarations.h is what HDF5's headers and src/ make it; hdf5_declarations.sh --fix writes it.
set -euo pipefail
cd "$(dirname "$0")/../.."
python=build/venv/bin/python
[ -x "$python" ] || python=python3
"$python" -c 'import pycparser' 2>/dev/null || { echo "note: no pycparser in $python: src/h5/declarations.h was not looked at"; exit 0; }
exec "$python" -B scripts/check/hdf5_declarations.py "$(sed -nE 's/^TIDELANE_HDF5_INCLUDE_DIR:PATH=//p' build/release/CMakeCache.txt)" "$@"
