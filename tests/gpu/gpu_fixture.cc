// Scenarios on a device: see gpu_fixture.h.
#include "gpu/gpu_fixture.h"

namespace tidelane::testing {

Summary GpuTest::run_on_gpu(const std::function<void()>& scenario, const Environment& environment) {
  return run(
      [&] {
        Gpu::load();
        ASSERT_NE(gpu().StandInReset, nullptr);
        scenario();
        EXPECT_EQ(gpu().StandInContexts(), 1u) << "the stack of contexts is not as it was";
        EXPECT_EQ(gpu().StandInMisuses(), 0u) << gpu().StandInLastMisuse();
      },
      environment);
}

Summary GpuTest::run_and_compare(const std::function<void(hid_t)>& scenario) {
  return run_and_compare(scenario, environment());
}

Summary GpuTest::run_and_compare(const std::function<void(hid_t)>& scenario,
                                 const Environment& environment) {
  const Summary summary = run_on_gpu(
      [&] {
        const Hid opened = create(file());
        ASSERT_TRUE(opened.valid());
        scenario(opened);
      },
      environment);
  compare_natively();
  return summary;
}

void GpuTest::compare_natively() {
  SCOPED_TRACE("natively");
  run_natively([&] { compare_with_models(file(), in_folder("")); });
}

void expect_refused(herr_t result, const std::string& dataset) {
  const std::string errors = error_text();
  EXPECT_LT(result, 0) << "it was not refused";
  EXPECT_NE(errors.find("device memory"), std::string::npos) << errors;
  EXPECT_NE(errors.find(dataset), std::string::npos) << errors;
}

Hid chunked(const Extent& chunk) {
  Hid list(H5Pcreate(H5P_DATASET_CREATE));
  EXPECT_GE(H5Pset_chunk(list, static_cast<int>(chunk.size()), chunk.data()), 0);
  return list;
}

}  // namespace tidelane::testing
