#!/usr/bin/env bash
# What every change must pass (`make test`): checks, all tests of the release build, then unit, conformance and stress
# tests under the address and undefined-behaviour sanitizers and everything below h5/ under the thread sanitizer.
#
# Goes on after a failed stage, so that one run shows all that is wrong; ends with a table of the stages.
set -uo pipefail
. "$(dirname "$0")/setup/lib.sh"
. "$repo/scripts/stages.sh"
cd "$repo"

stage "checks" checks
stage "build (release)" compile release
# GPU buffers in the default way and with everything deferred; make test-long has the one between.
stage "tests (release)" tests release -LE 'long' -E '^gpu\..*/implicit$'
stage "build (asan, ubsan)" compile asan
# Natively the plugin has no part in them; GPU buffers once, in the way that is the default.
stage "tests (asan, ubsan)" tests asan -L 'unit|conformance|faults|gpu|stress' -LE 'long' -E '/native$|GpuFaults|^gpu\..*/(implicit|deferred_all)$'
stage "build (tsan)" compile tsan tidelane_core_tests
# Simulations of one thread, which the other two stages have run, have no races to find.
stage "tests (tsan, below h5/)" tests tsan -L core -LE 'long' -E 'SimulatorTest\.(RandomCalls|ProgramCalls|StorageIsAsked)'
finish
