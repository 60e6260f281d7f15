#!/usr/bin/env bash
# Makes sure the distribution's packages for a task are there: packages.sh build|test|demo ...
#
# Looks for what a package provides (a program, a header), not for the package, so tools installed by other means
# count. As root on Debian or Ubuntu it installs what is missing; anyone else is shown the one command to run.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

missing=()
header() { local p; for p in "/usr/include/$1" "/usr/local/include/$1" /usr/include/*-linux-gnu/"$1"; do [ -e "$p" ] && return 0; done; return 1; }
program() { command -v "$1" >/dev/null 2>&1; }
need() {  # need <package> <probe...>
  local package=$1
  shift
  "$@" || missing+=("$package")
}

for group in "$@"; do
  case $group in
    build)
      need g++ program g++
      need cmake program cmake
      need ninja-build program ninja
      need pkg-config program pkg-config
      need nlohmann-json3-dev header nlohmann/json.hpp
      need libdeflate-dev header libdeflate.h
      need zlib1g-dev header zlib.h
      need libisal-dev header isa-l/igzip_lib.h
      need libcli11-dev header CLI/CLI.hpp
      need libflatbuffers-dev header flatbuffers/flatbuffers.h
      need python3 program python3
      ;;
    hdf5)  # what building HDF5 ourselves takes
      need g++ program g++
      need zlib1g-dev header zlib.h
      need ca-certificates test -e /etc/ssl/certs/ca-certificates.crt
      ;;
    mpi)  # both, side by side: their I/O layers differ
      need mpich program mpirun.mpich
      need libmpich-dev program mpicc.mpich
      need openmpi-bin program mpirun.openmpi
      need libopenmpi-dev program mpicc.openmpi
      ;;
    test)
      need libgtest-dev header gtest/gtest.h
      need gfortran program gfortran
      need git program git
      need universal-ctags program ctags-universal
      need libfuse3-dev header fuse3/fuse.h
      ;;
    netcdf)  # what building netCDF-C with its tests takes, besides HDF5
      need m4 program m4
      ;;
    lint)
      # The newest that knows C++20 well enough: Debian 12's plain `clang` does not.
      for lint in 19 18 17 16; do
        if program "clang++-$lint" || apt-cache show "clang-$lint"; then break; fi
      done >/dev/null
      need "clang-$lint" program "clang++-$lint"
      ;;
    tidy)
      for lint in 19 18 17 16; do
        if program "clang-tidy-$lint" || apt-cache show "clang-tidy-$lint"; then break; fi
      done >/dev/null
      need "clang-tidy-$lint" program "clang-tidy-$lint"
      ;;
    bench-micro)
      need libbenchmark-dev header benchmark/benchmark.h
      ;;
    demo | bench)
      need fuse3 program fusermount3
      need libfuse3-dev header fuse3/fuse.h
      [ "$group" = demo ] || need valgrind program valgrind
      ;;
    python)
      need python3 program python3
      need python3-venv python3 -c 'import ensurepip'
      ;;
    *) die "packages.sh: no group '$group'" ;;
  esac
done 2>/dev/null

[ ${#missing[@]} -gt 0 ] || exit 0
mapfile -t missing < <(printf '%s\n' "${missing[@]}" | sort -u)

program apt-get || die "these are missing: ${missing[*]} (Debian's names). Install what your system calls them, then run again."
if [ "$(id -u)" -ne 0 ]; then
  printf 'tidelane: some packages are missing. Run this, then the same make command again:\n\n    %s\n\n' \
    "sudo apt-get update && sudo apt-get install -y --no-install-recommends ${missing[*]}" >&2
  exit 1
fi

export DEBIAN_FRONTEND=noninteractive
mkdir -p "$logs"
known() { apt-cache show --no-all-versions "${missing[@]}" >/dev/null 2>&1; }
install() { apt-get install -y --no-install-recommends -o DPkg::Lock::Timeout=120 "${missing[@]}"; }
known || step apt-update "package lists" apt-get update
if ! step apt-install "packages: ${missing[*]}" install 2>"$logs/apt-first-try.log"; then
  # Lists that are days old name files that are gone.
  step apt-update "package lists" apt-get update
  step apt-install "packages: ${missing[*]}" install
fi
