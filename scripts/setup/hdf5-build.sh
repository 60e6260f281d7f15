#!/usr/bin/env bash
# Builds the source that hdf5-source.sh fetched: shared, thread-safe, with tools and with its API test program
# (asynchronous group on) as bin/h5_api_test. Result: build/hdf5/<version>, its name in build/hdf5/own.
#
#   hdf5-build.sh            optimised
#   hdf5-build.sh thread     instrumented with the thread sanitizer: build/hdf5/<version>-thread (address likewise)
set -euo pipefail
. "$(dirname "$0")/lib.sh"
sanitizer=${1:-}
"$repo/scripts/setup/hdf5-unpack.sh"
source=$(cat "$build/hdf5/source/tree")
version=$(basename "$source")
name="$version${sanitizer:+-$sanitizer}"
prefix="$build/hdf5/$name"
tree="$build/hdf5/source/build-$name"
flags=${sanitizer:+-fsanitize=$sanitizer -fno-omit-frame-pointer -O1 -g}

if [ ! -e "$prefix/tidelane-complete" ]; then
  configure() {
    rm -rf "$tree"
    cmake -S "$source" -B "$tree" -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCMAKE_INSTALL_PREFIX="$prefix" \
      -DCMAKE_C_FLAGS_RELWITHDEBINFO="-O2 -g1 -DNDEBUG" -DCMAKE_C_FLAGS="$flags" -DBUILD_STATIC_LIBS=OFF -DHDF5_ENABLE_THREADSAFE=ON -DALLOW_UNSUPPORTED=ON \
      -DHDF5_BUILD_HL_LIB=OFF -DHDF5_BUILD_CPP_LIB=OFF -DHDF5_BUILD_FORTRAN=OFF -DHDF5_BUILD_EXAMPLES=OFF \
      -DHDF5_ENABLE_Z_LIB_SUPPORT=ON -DBUILD_TESTING=ON -DHDF5_TEST_API=ON -DHDF5_TEST_API_ENABLE_ASYNC=ON \
      -DHDF5_TEST_API_INSTALL=ON -DHDF5_TEST_SERIAL=OFF -DHDF5_TEST_TOOLS=OFF
  }
  # Only what is used: the library, the tools and the API tests, not the 150 other test programs.
  compile() { ninja -C "$tree" -j "$jobs" src/all tools/lib/all tools/src/all utils/all test/API/all testhdf5; }
  put() {
    local component
    rm -rf "$prefix"
    for component in libraries headers toolslibraries toolsapplications utilsapplications configinstall tests; do
      cmake --install "$tree" --component "$component"
    done
    test -x "$prefix/bin/h5_api_test" && LD_LIBRARY_PATH="$prefix/lib" "$prefix/bin/h5diff" --version
    touch "$prefix/tidelane-complete"
    rm -rf "$tree"
  }
  step "hdf5-$name-configure" "configuring HDF5 $name" configure
  step "hdf5-$name-build" "building HDF5 $name (about 2 minutes on two cores)" compile
  step "hdf5-$name-install" "installing it under build/hdf5/$name" put
fi
[ -n "$sanitizer" ] || printf '%s\n' "$prefix" >"$build/hdf5/own"
