#!/usr/bin/env bash
# All checks that need no running: who includes whom, sizes and state, self-contained headers, the page of settings, formatting, lock annotations.
set -euo pipefail
here=$(dirname "$0")
. "$here/../setup/lib.sh"
bad=0
step check-ranks "ranks: who includes whom" python3 "$here/ranks.py" || bad=1
step check-sizes "sizes of files and functions" python3 "$here/sizes.py" || bad=1
step check-structure "members of classes, definitions, circles" python3 "$here/structure.py" || bad=1
step check-self "the checks themselves" python3 "$here/self_test.py" || bad=1
step check-headers "headers compile alone" "$here/headers.sh" || bad=1
step check-settings "the page of settings" "$here/settings.sh" || bad=1
step check-declarations "declarations of HDF5's interface" "$here/hdf5_declarations.sh" || bad=1
step check-annotations "thread-safety annotations" "$here/annotations.sh" || bad=1
step check-format "formatting (make format repairs it)" "$here/format.sh" || bad=1
grep -h '^note:' "$logs"/check-*.log || true
exit $bad
