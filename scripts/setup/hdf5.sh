#!/usr/bin/env bash
# Finds an HDF5 >= 1.14.1, or builds one, and writes its prefix to build/hdf5/root. In this order:
#
#   1. $HDF5_ROOT, if set: that one or an error
#   2. the one built here before (build/hdf5/<version>)
#   3. an installed one: pkg-config, h5cc, the usual prefixes
#   4. the distribution's package, if it is new enough (installed as root)
#   5. the newest 1.14 of the distribution's source packages, built here (source.sh, build-hdf5.sh)
#
# `hdf5.sh own` skips 3 and 4: the tests need a thread-safe HDF5 with its API test program, which distributions do
# not ship. An HDF5_ROOT is still respected; tests that need what it lacks then say that they are skipped.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
here="$repo/scripts/setup"
mode=${1:-found}
oldest=1.14.1

newer_or_equal() { [ "$(printf '%s\n%s\n' "$2" "$1" | sort -V | head -n 1)" = "$2" ]; }

# Prints "<version> <serial|parallel>" of the HDF5 under a prefix that has headers and a shared library.
inspect() {
  local root=$1 include library
  include=$(ls -d "$root"/include/H5public.h "$root"/include/hdf5/serial/H5public.h 2>/dev/null | head -n 1) || true
  library=$(ls -d "$root"/lib/libhdf5.so "$root"/lib64/libhdf5.so "$root"/lib/*-linux-gnu/libhdf5.so \
    "$root"/lib/*-linux-gnu/hdf5/serial/libhdf5.so 2>/dev/null | head -n 1) || true
  [ -n "$include" ] && [ -n "$library" ] || return 1
  local version kind=serial
  version=$(sed -nE 's/^#define H5_VERS_(MAJOR|MINOR|RELEASE)[[:space:]]+([0-9]+).*/\2/p' "$include" | paste -sd.)
  grep -qsE '^#define H5_HAVE_PARALLEL 1' "$(dirname "$include")"/H5pubconf*.h && kind=parallel
  printf '%s %s\n' "$version" "$kind"
}

accept() {  # accept <prefix> <how it was found>
  mkdir -p "$build/hdf5"
  local before
  before=$(cat "$build/hdf5/root" 2>/dev/null || true)
  printf '%s\n' "$1" >"$build/hdf5/root"
  [ "$before" = "$1" ] || say "==> HDF5 $(inspect "$1" | cut -d' ' -f1): $1 ($2)"
  exit 0
}

installed_prefixes() {
  local name
  for name in hdf5 hdf5-serial; do pkg-config --variable=prefix "$name" 2>/dev/null || true; done
  if command -v h5cc >/dev/null 2>&1; then
    h5cc -showconfig 2>/dev/null | sed -nE 's/^[[:space:]]*Installation point:[[:space:]]*//p' || true
  fi
  printf '%s\n' ${CONDA_PREFIX:+"$CONDA_PREFIX"} /usr/local /usr/local/hdf5 /opt/hdf5 /usr
}

good_enough() {  # serial, shared and new enough
  local found
  found=$(inspect "$1") || return 1
  [ "${found#* }" = serial ] && newer_or_equal "${found% *}" "$oldest"
}

distribution_has_it() {
  command -v apt-cache >/dev/null 2>&1 || return 1
  local candidate
  candidate=$(LC_ALL=C apt-cache policy libhdf5-dev 2>/dev/null | sed -nE 's/^ *Candidate: *([0-9.]+).*/\1/p')
  [ -n "$candidate" ] && newer_or_equal "$candidate" "$oldest"
}

if [ -n "${HDF5_ROOT:-}" ]; then
  root=$(cd "$HDF5_ROOT" 2>/dev/null && pwd) || die "HDF5_ROOT=$HDF5_ROOT: no such folder"
  found=$(inspect "$root") || die "HDF5_ROOT=$HDF5_ROOT: no headers or no shared library there"
  newer_or_equal "${found% *}" "$oldest" || die "HDF5_ROOT=$HDF5_ROOT is ${found% *}; $oldest or newer is needed"
  [ "$mode" != own ] || [ -x "$root/bin/h5_api_test" ] || say "note: no bin/h5_api_test under HDF5_ROOT: HDF5's API tests will be skipped"
  [ "$mode" != own ] || [ -x "$root/bin/h5diff" ] || command -v h5diff >/dev/null || say "note: no h5diff: the stress tests will be skipped"
  accept "$root" HDF5_ROOT
fi

own=$(cat "$build/hdf5/own" 2>/dev/null || true)
if [ -n "$own" ] && [ -e "$own/tidelane-complete" ]; then accept "$own" "built here before"; fi

if [ "$mode" != own ]; then
  while read -r prefix; do
    if good_enough "$prefix"; then accept "$prefix" installed; fi
  done < <(installed_prefixes)
  if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null 2>&1; then
    [ -n "$(LC_ALL=C apt-cache policy libhdf5-dev 2>/dev/null)" ] || step apt-update "package lists" apt-get update
    if distribution_has_it; then
      DEBIAN_FRONTEND=noninteractive step apt-hdf5 "packages: libhdf5-dev hdf5-tools" \
        apt-get install -y --no-install-recommends -o DPkg::Lock::Timeout=120 libhdf5-dev hdf5-tools || true
      if good_enough /usr; then accept /usr "the distribution's"; fi
    fi
  elif distribution_has_it; then
    say "note: your distribution's HDF5 is new enough; 'sudo apt-get install libhdf5-dev hdf5-tools' would spare the build"
  fi
fi

"$here/packages.sh" build hdf5
"$here/hdf5-source.sh"
"$here/hdf5-build.sh"
accept "$(cat "$build/hdf5/own")" "built here"
