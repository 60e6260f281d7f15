// What the tests of GPU memory share: scenarios that have the stand-in loaded, and are compared natively afterwards.
//
// Invariant: every scenario ends with the stack of contexts as it began, and without misuse of the driver.
// Thread safety: none; tests are single-threaded unless they say otherwise.
#pragma once

#include <functional>
#include <string>

#include "conformance/fixture.h"
#include "gpu/gpu.h"
#include "gpu/twin.h"

namespace tidelane::testing {

class GpuTest : public Conformance {
 public:
  void SetUp() override {
    Conformance::SetUp();
    Memory::all_on_host(!plugged());
  }
  // Loads the stand-in, then runs the scenario in a child, as run() does.
  Summary run_on_gpu(const std::function<void()>& scenario) {
    return run_on_gpu(scenario, environment());
  }
  Summary run_on_gpu(const std::function<void()>& scenario, const Environment& environment);
  // A file with the datasets that the scenario makes and leaves with leave(): natively they must be as their models.
  Summary run_and_compare(const std::function<void(hid_t)>& scenario);
  Summary run_and_compare(const std::function<void(hid_t)>& scenario,
                          const Environment& environment);
  void compare_natively();

  void leave(const Twin& twin) const { twin.leave(in_folder("")); }
  bool always_defers() const { return std::string(GetParam().mode) == "async"; }
};

// What a refusal must say: the dataset and why.
void expect_refused(herr_t result, const std::string& dataset);

// The extents of a list, as a creation list with chunks.
Hid chunked(const Extent& chunk);

#define GPU_WAYS(suite) CONFORMANCE_WAYS(suite, kImplicit, kDeferredAll, kAuto)
#define GPU_WAYS_AND_NATIVE(suite) CONFORMANCE_WAYS(suite, kNative, kImplicit, kDeferredAll, kAuto)

}  // namespace tidelane::testing
