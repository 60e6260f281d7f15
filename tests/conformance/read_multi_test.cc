// One call that reads several datasets. HDF5's own driver takes no vectors of reads, and ours does: what HDF5 makes of that must be the same.
#include <array>
#include <string>
#include <vector>

#include "conformance/fixture.h"

namespace tidelane::testing {
namespace {

class ReadMulti : public Conformance {};

// A member each, of datasets of compounds, into the same elements of a buffer.
TEST_P(ReadMulti, MembersOfSeveralDatasetsComeIntoOneBuffer) {
  static constexpr hsize_t kCount = 1000;
  static constexpr std::array kNames{"a", "b", "c"};
  constexpr size_t kMembers = kNames.size();
  run([&] {
    const Hid made = create(file());
    const Hid space(H5Screate_simple(1, &kCount, nullptr));
    const Hid whole(H5Tcreate(H5T_COMPOUND, kMembers * sizeof(int)));
    for (size_t i = 0; i < kMembers; ++i)
      EXPECT_GE(H5Tinsert(whole, kNames[i], i * sizeof(int), H5T_NATIVE_INT), 0);
    std::vector<Hid> datasets, members;
    for (size_t i = 0; i < kMembers; ++i) {
      const std::vector<int> values = elements(static_cast<int>(i), kMembers * kCount);
      datasets.emplace_back(
          H5Dcreate2(made, kNames[i], whole, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
      EXPECT_GE(H5Dwrite(datasets[i], whole, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), 0);
      members.emplace_back(H5Tcreate(H5T_COMPOUND, kMembers * sizeof(int)));
      EXPECT_GE(H5Tinsert(members[i], kNames[i], i * sizeof(int), H5T_NATIVE_INT), 0);
    }
    std::vector<int> found(kMembers * kCount, -1);
    std::array<hid_t, kMembers> from{}, types{}, all{};
    std::array<void*, kMembers> to{};
    for (size_t i = 0; i < kMembers; ++i) {
      from[i] = datasets[i];
      types[i] = members[i];
      all[i] = H5S_ALL;
      to[i] = found.data();
    }
    EXPECT_GE(H5Dread_multi(kMembers, from.data(), types.data(), all.data(), all.data(),
                            H5P_DEFAULT, to.data()),
              0);
    for (size_t i = 0; i < kMembers; ++i) {
      const std::vector<int> values = elements(static_cast<int>(i), kMembers * kCount);
      for (size_t at = i; at < values.size(); at += kMembers) {
        ASSERT_EQ(found[at], values[at]) << kNames[i] << ", element " << at / kMembers;
      }
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Ways, ReadMulti,
                         ::testing::Values(kNative, kImplicit, kDeferredAll, kAuto),
                         [](const auto& way) { return way.param.name; });

}  // namespace
}  // namespace tidelane::testing
