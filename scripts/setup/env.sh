#!/usr/bin/env bash
# Writes build/env.sh: `. build/env.sh` in bash or sh turns Tidelane on for every HDF5 program of that shell.
#
#   env.sh                  with the serial HDF5 that hdf5.sh chose
#   env.sh mpich|openmpi    build/env-<mpi>.sh, with the parallel HDF5 that hdf5-parallel.sh built for that MPI
set -euo pipefail
. "$(dirname "$0")/lib.sh"
mpi=${1:-}
root=$(cat "$build/hdf5/${mpi:-root}")
out="$build/env${mpi:+-$mpi}.sh"
quote() { printf "'%s'" "$(printf '%s' "$1" | sed "s/'/'\\\\''/g")"; }

new=$(
  cat <<END
# Written by scripts/setup/env.sh${mpi:+ $mpi}. Source it (bash, sh): programs started from that shell run with Tidelane.
# To turn it off again: unset HDF5_VOL_CONNECTOR
tidelane_plugins=$(quote "$build/release/lib/tidelane")
export TIDELANE_HDF5_ROOT=$(quote "$root")
export HDF5_VOL_CONNECTOR=tidelane
# Setting the path hides HDF5's default one, where filter plugins live: keep it behind ours.
case ":\${HDF5_PLUGIN_PATH:=/usr/local/hdf5/lib/plugin}:" in
  *":\$tidelane_plugins:"*) ;;
  *) HDF5_PLUGIN_PATH="\$tidelane_plugins:\$HDF5_PLUGIN_PATH" ;;
esac
export HDF5_PLUGIN_PATH
unset tidelane_plugins
# The program \`tidelane\` (docs/tool.md).
case ":\$PATH:" in
  *":"$(quote "$build/release/tool")":"*) ;;
  *) PATH="\$PATH:"$(quote "$build/release/tool") ;;
esac
export PATH
END
  case $root in "$build"/*)
    cat <<'END'
# This HDF5 was built here: its tools come first, and find their library beside them. The loader's path is left alone: there it
# would take the place of the HDF5 that any program was linked to, of a parallel one for instance.
case ":$PATH:" in
  *":$TIDELANE_HDF5_ROOT/bin:"*) ;;
  *) PATH="$TIDELANE_HDF5_ROOT/bin:$PATH" ;;
esac
export PATH
END
    ;;
  esac
  if [ "$mpi" = openmpi ]; then
    cat <<'END'
# Open MPI refuses to start as root, or more ranks than there are cores, unless told.
export OMPI_MCA_rmaps_base_oversubscribe=1
if [ "$(id -u)" -eq 0 ]; then export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1; fi
END
  fi
)
[ "$new" = "$(cat "$out" 2>/dev/null || true)" ] || printf '%s\n' "$new" >"$out"
