// Datasets whose small writes HDF5's sieve buffer gathers: what else HDF5 does with them sees those writes as natively.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "conformance/fixture.h"

namespace tidelane::testing {
namespace {

class Sieve : public Conformance {};

// HDF5 looks into the sieve only if the whole dataset lies there: the copy had the elements from before the second write.
TEST_P(Sieve, ACopyOfAnOpenDatasetHasWhatTheSieveHolds) {
  constexpr hsize_t kSize = 540;
  const hsize_t start = 5, stride = 3, count = 40;
  run([&] {
    std::vector<int> expected = elements(1, kSize);
    const Hid opened = create(file());
    put(opened, "d", 1, kSize);
    const Hid dataset(H5Dopen2(opened, "d", H5P_DEFAULT));
    for (int round = 2; round < 4; ++round) {
      ASSERT_GE(H5Dwrite(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, expected.data()),
                0);
      const std::vector<int> some = elements(round, count);
      const Hid space(H5Dget_space(dataset)), memory(H5Screate_simple(1, &count, nullptr));
      ASSERT_GE(H5Sselect_hyperslab(space, H5S_SELECT_SET, &start, &stride, &count, nullptr), 0);
      ASSERT_GE(H5Dwrite(dataset, H5T_NATIVE_INT, memory, space, H5P_DEFAULT, some.data()), 0);
      for (hsize_t i = 0; i < count; ++i) expected[start + i * stride] = some[i];
      const std::string copy = "copy" + std::to_string(round);
      ASSERT_GE(H5Ocopy(opened, "d", opened, copy.c_str(), H5P_DEFAULT, H5P_DEFAULT), 0);
      const Hid copied(H5Dopen2(opened, copy.c_str(), H5P_DEFAULT));
      std::vector<int> found(kSize);
      ASSERT_GE(H5Dread(copied, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, found.data()), 0);
      EXPECT_TRUE(found == expected) << round;
    }
  });
}

// Whatever the elements are, and however much larger they are in memory.
TEST_P(Sieve, ACopyHasCompoundsAndConvertedElementsToo) {
  struct Pair {
    int64_t a, b, c;
  };
  constexpr hsize_t kSize = 4000;
  const hsize_t start = 5, stride = 3, count = 40;
  run([&] {
    const Hid pairs(H5Tcreate(H5T_COMPOUND, sizeof(Pair)));
    H5Tinsert(pairs, "a", offsetof(Pair, a), H5T_NATIVE_INT64);
    H5Tinsert(pairs, "b", offsetof(Pair, b), H5T_NATIVE_INT64);
    H5Tinsert(pairs, "c", offsetof(Pair, c), H5T_NATIVE_INT64);
    const Hid packed(H5Tcreate(H5T_COMPOUND, 6));
    H5Tinsert(packed, "a", 0, H5T_STD_I16LE);
    H5Tinsert(packed, "b", 2, H5T_STD_I16LE);
    H5Tinsert(packed, "c", 4, H5T_STD_I16LE);
    std::vector<Pair> expected(kSize);
    for (size_t i = 0; i < kSize; ++i) expected[i].a = expected[i].b = static_cast<int64_t>(i);
    const Hid opened = create(file()), whole(H5Screate_simple(1, &kSize, nullptr));
    const Hid dataset(
        H5Dcreate2(opened, "d", packed, whole, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    ASSERT_GE(H5Dwrite(dataset, pairs, H5S_ALL, H5S_ALL, H5P_DEFAULT, expected.data()), 0);
    const std::vector<Pair> some(count, {-1, -2, -3});
    const Hid space(H5Dget_space(dataset)), memory(H5Screate_simple(1, &count, nullptr));
    ASSERT_GE(H5Sselect_hyperslab(space, H5S_SELECT_SET, &start, &stride, &count, nullptr), 0);
    ASSERT_GE(H5Dwrite(dataset, pairs, memory, space, H5P_DEFAULT, some.data()), 0);
    for (hsize_t i = 0; i < count; ++i) expected[start + i * stride] = some[i];
    ASSERT_GE(H5Ocopy(opened, "d", opened, "copy", H5P_DEFAULT, H5P_DEFAULT), 0);
    const Hid copied(H5Dopen2(opened, "copy", H5P_DEFAULT));
    std::vector<Pair> found(kSize);
    ASSERT_GE(H5Dread(copied, pairs, H5S_ALL, H5S_ALL, H5P_DEFAULT, found.data()), 0);
    EXPECT_EQ(std::memcmp(found.data(), expected.data(), kSize * sizeof(Pair)), 0);
  });
}

CONFORMANCE_WAYS(Sieve, kNative, kImplicit, kDeferredAll, kAuto);

}  // namespace
}  // namespace tidelane::testing
