# Shared by the set-up scripts (bash, sourced). Every step prints one line with its elapsed seconds, keeps its
# output in build/log/ and shows the end of it only when it fails.

repo=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
build="$repo/build"
logs="$build/log"
jobs=${JOBS:-$(nproc 2>/dev/null || echo 2)}
# A compiler cache, where one is installed, serves every build, HDF5's too (CMake reads these).
if command -v ccache >/dev/null 2>&1; then
  export CCACHE_SLOPPINESS=${CCACHE_SLOPPINESS-pch_defines,time_macros}  # without it nothing that uses precompiled headers is kept
  export CMAKE_C_COMPILER_LAUNCHER=${CMAKE_C_COMPILER_LAUNCHER-ccache} CMAKE_CXX_COMPILER_LAUNCHER=${CMAKE_CXX_COMPILER_LAUNCHER-ccache}
fi

say() { printf '%s\n' "$*"; }
die() { printf 'tidelane: %s\n' "$*" >&2; exit 1; }

# step <log name> <what it says> <command...>
step() {
  local log="$logs/$1.log" what=$2 start=$SECONDS pid rc=0
  shift 2
  mkdir -p "$logs"
  if [ -t 1 ]; then printf '==> %s ... ' "$what"; fi
  "$@" >"$log" 2>&1 </dev/null &
  pid=$!
  trap 'kill "$pid" 2>/dev/null' INT TERM
  if [ -t 1 ]; then
    while kill -0 "$pid" 2>/dev/null; do
      sleep 1
      printf '\r==> %s ... %d s' "$what" $((SECONDS - start))
    done
  fi
  wait "$pid" || rc=$?
  trap - INT TERM
  if [ -t 1 ]; then printf '\r\033[K'; fi
  if [ "$rc" -ne 0 ]; then
    printf '==> %s: FAILED after %d s. The end of %s:\n' "$what" $((SECONDS - start)) "$log" >&2
    tail -n 40 "$log" >&2
    return "$rc"
  fi
  printf '==> %s: %d s\n' "$what" $((SECONDS - start))
}
