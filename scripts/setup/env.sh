#!/usr/bin/env bash
# Writes build/env.sh: `. build/env.sh` in bash or sh turns Tidelane on for every HDF5 program of that shell.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
root=$(cat "$build/hdf5/root")
quote() { printf "'%s'" "$(printf '%s' "$1" | sed "s/'/'\\\\''/g")"; }

new=$(
  cat <<END
# Written by scripts/setup/env.sh. Source it (bash, sh): programs started from that shell run with Tidelane.
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
END
  case $root in "$build"/*)
    cat <<'END'
# This HDF5 was built here, so nothing finds it by itself: its tools and its library come first.
case ":$PATH:" in
  *":$TIDELANE_HDF5_ROOT/bin:"*) ;;
  *) PATH="$TIDELANE_HDF5_ROOT/bin:$PATH" ;;
esac
case ":${LD_LIBRARY_PATH:-}:" in
  *":$TIDELANE_HDF5_ROOT/lib:"*) ;;
  *) LD_LIBRARY_PATH="$TIDELANE_HDF5_ROOT/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" ;;
esac
export PATH LD_LIBRARY_PATH
END
    ;;
  esac
)
[ "$new" = "$(cat "$build/env.sh" 2>/dev/null || true)" ] || printf '%s\n' "$new" >"$build/env.sh"
