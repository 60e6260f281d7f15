# The stages that test.sh and test-long.sh are made of (bash, sourced after setup/lib.sh).

results=()
failed=0
began=$SECONDS

# stage <name> <command...>: runs it, remembers how it ended.
stage() {
  local name=$1 start=$SECONDS rc=0 closing
  shift
  printf '\n== %s\n' "$name"
  closing=
  "$@" || rc=$?
  if [ "$rc" -ne 0 ]; then failed=1; fi
  results+=("$(printf '%-34s %-6s %5d s  %s' "$name" "$([ "$rc" -eq 0 ] && echo ok || echo FAILED)" $((SECONDS - start)) "$closing")")
  return 0
}

finish() {
  printf '\n== summary\n'
  printf '%s\n' "${results[@]}"
  printf 'total %d s\n' $((SECONDS - began))
  exit "$failed"
}

checks() { scripts/setup/configure.sh release && scripts/check/all.sh; }

# compile <preset> [targets...]: output only when it fails, or on a terminal as ninja's own progress line.
compile() {
  local preset=$1
  shift
  scripts/setup/configure.sh "$preset" || return 1
  local quiet=
  if [ ! -t 1 ] && ninja --help 2>&1 | grep -q -e --quiet; then quiet=--quiet; fi  # since ninja 1.11
  ninja -C "build/$preset" -j "$jobs" $quiet "$@"
}

# The thread sanitizer of older compilers cannot start where addresses are randomised over more bits than it knows;
# containers may forbid to turn that off, so only where it works.
unrandomised=()
if setarch "$(uname -m)" -R true 2>/dev/null; then unrandomised=(setarch "$(uname -m)" -R); fi

# tests <preset> <ctest options...>; leaves ctest's verdict in $closing for the summary.
tests() {
  local preset=$1 rc=0 log run=() each=3
  shift
  log="$logs/ctest-$preset.log"
  mkdir -p "$logs"
  # More than there are cores: many a test waits, for storage that is slow on purpose or for a time to pass. Sanitizers compute more.
  if [[ "$preset" != release ]]; then each=2; fi
  if [[ "$preset" = tsan* ]]; then run=("${unrandomised[@]}"); fi
  "${run[@]}" ctest --test-dir "build/$preset" -j $((jobs * each)) --output-on-failure --no-tests=error --timeout 300 "$@" 2>&1 |
    tee "$log" | { if [ -t 1 ] || [ -n "${VERBOSE:-}" ]; then cat; else grep -vE '^ *(Start +[0-9]+:|[0-9]+/[0-9]+ Test +#.* Passed )'; fi; }
  rc=${PIPESTATUS[0]}
  closing=$(grep -E '[0-9]+% tests passed' "$log" | tail -n 1)
  return "$rc"
}
