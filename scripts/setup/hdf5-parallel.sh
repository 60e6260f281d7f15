#!/usr/bin/env bash
# Builds parallel HDF5 for one MPI of the distribution, from the same source as the serial one: the C library, and its
# parallel API tests and testphdf5 as programs. Result: build/hdf5/<version>-<mpi>, its name in build/hdf5/<mpi>.
#
#   hdf5-parallel.sh mpich|openmpi              not thread-safe, as most sites build it
#   hdf5-parallel.sh mpich|openmpi threadsafe   build/hdf5/<version>-<mpi>-threadsafe, its name in build/hdf5/<mpi>-threadsafe
#   hdf5-parallel.sh mpich|openmpi debug        with HDF5's assertions on; likewise
#
# It stands beside the serial one and never in its place: nothing here touches build/hdf5/root or build/env.sh.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
mpi=${1:-}
kind=${2:-}
case $mpi in mpich | openmpi) ;; *) die "hdf5-parallel.sh: mpich or openmpi, not '$mpi'" ;; esac
case $kind in '' | threadsafe | debug) ;; *) die "hdf5-parallel.sh: threadsafe or debug, not '$kind'" ;; esac
result="$build/hdf5/$mpi${kind:+-$kind}"
have=$(cat "$result" 2>/dev/null || true)
if [ -n "$have" ] && [ -e "$have/tidelane-complete" ]; then exit 0; fi

"$repo/scripts/setup/packages.sh" hdf5 mpi
"$repo/scripts/setup/hdf5-source.sh"
"$repo/scripts/setup/hdf5-unpack.sh"
source=$(cat "$build/hdf5/source/tree")
name="$(basename "$source")-$mpi${kind:+-$kind}"
prefix="$build/hdf5/$name"
tree="$build/hdf5/source/build-$name"

# The least that the tests need.
options=(-DCMAKE_BUILD_TYPE=Release "-DCMAKE_C_FLAGS_RELEASE=-O2 -DNDEBUG")
if [ "$kind" = debug ]; then options=(-DCMAKE_BUILD_TYPE=Debug); fi
if [ "$kind" = threadsafe ]; then options+=(-DHDF5_ENABLE_THREADSAFE=ON -DALLOW_UNSUPPORTED=ON); fi
programs=(h5_api_test_parallel testphdf5)

configure() {
  rm -rf "$tree"
  cmake -S "$source" -B "$tree" -G Ninja "${options[@]}" -DCMAKE_INSTALL_PREFIX="$prefix" \
    -DHDF5_ENABLE_PARALLEL=ON -DMPI_C_COMPILER="mpicc.$mpi" -DMPIEXEC_EXECUTABLE="$(command -v "mpirun.$mpi")" \
    -DBUILD_STATIC_LIBS=OFF -DHDF5_BUILD_HL_LIB=OFF -DHDF5_BUILD_CPP_LIB=OFF -DHDF5_BUILD_FORTRAN=OFF \
    -DHDF5_BUILD_EXAMPLES=OFF -DHDF5_BUILD_TOOLS=OFF -DHDF5_ENABLE_Z_LIB_SUPPORT=ON -DBUILD_TESTING=ON \
    -DHDF5_TEST_API=ON -DHDF5_TEST_API_ENABLE_ASYNC=ON -DHDF5_TEST_SERIAL=OFF -DHDF5_TEST_TOOLS=OFF
}
compile() { ninja -C "$tree" -j "$jobs" hdf5-shared "${programs[@]}"; }
put() {
  local component program
  rm -rf "$prefix"
  for component in libraries headers configinstall; do cmake --install "$tree" --component "$component"; done
  mkdir -p "$prefix/bin"
  for program in "${programs[@]}"; do cp "$tree/bin/$program" "$prefix/bin/"; done
  cp "$tree"/bin/libhdf5_test*.so* "$prefix/lib/"
  touch "$prefix/tidelane-complete"
  rm -rf "$tree"
}
step "hdf5-$name-configure" "configuring HDF5 $name" configure
step "hdf5-$name-build" "building HDF5 $name" compile
step "hdf5-$name-install" "installing it under build/hdf5/$name" put
printf '%s\n' "$prefix" >"$result"
