// What the program put on a transfer list counts in the call that it was given to, whatever the plugin asks HDF5 meanwhile.
#include <cstdlib>
#include <string>
#include <vector>

#include "conformance/fixture.h"

namespace tidelane::testing {
namespace {

class TransferList : public Conformance {};

constexpr hsize_t kCount = 100'000;  // 400 KiB: enough to be looked at

// A dataset whose creation list has something to convert: a fill value of the program's.
Hid create_filled(hid_t location, hid_t type, const void* fill, hsize_t count, bool chunked) {
  const Hid list(H5Pcreate(H5P_DATASET_CREATE));
  EXPECT_GE(H5Pset_fill_value(list, type, fill), 0);
  const hsize_t chunk = count / 4;
  if (chunked) {
    EXPECT_GE(H5Pset_chunk(list, 1, &chunk), 0);
  }
  return Hid(H5Dcreate2(location, "d", type, Hid(H5Screate_simple(1, &count, nullptr)), H5P_DEFAULT,
                        list, H5P_DEFAULT));
}

H5T_conv_ret_t replace(H5T_conv_except_t, hid_t, hid_t, void*, void* to, void* calls) {
  ++*static_cast<int*>(calls);
  *static_cast<signed char*>(to) = 7;
  return H5T_CONV_HANDLED;
}

TEST_P(TransferList, ConversionsAskTheProgramInItsFirstRead) {
  for (const bool chunked : {false, true}) {
    run([&] {
      const Hid opened = create(file());
      const int fill = 3;
      const Hid dataset = create_filled(opened, H5T_NATIVE_INT, &fill, kCount, chunked);
      const std::vector<int> written(kCount, 1000);  // too large for a byte
      ASSERT_GE(H5Dwrite(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, written.data()),
                0);
      const Hid list(H5Pcreate(H5P_DATASET_XFER));
      int calls = 0;
      ASSERT_GE(H5Pset_type_conv_cb(list, replace, &calls), 0);
      std::vector<signed char> read(kCount, -1);
      ASSERT_GE(H5Dread(dataset, H5T_NATIVE_SCHAR, H5S_ALL, H5S_ALL, list, read.data()), 0)
          << error_text();
      EXPECT_EQ(calls, static_cast<int>(kCount));
      EXPECT_TRUE(read == std::vector<signed char>(kCount, 7));
    });
  }
}

struct Taken {
  int allocated = 0;
  int freed = 0;
};
void* take(size_t size, void* taken) {
  ++static_cast<Taken*>(taken)->allocated;
  return std::malloc(size);
}
void give_back(void* memory, void* taken) {
  ++static_cast<Taken*>(taken)->freed;
  std::free(memory);
}

TEST_P(TransferList, VariableLengthElementsComeFromTheProgramsMemoryManager) {
  constexpr hsize_t kStrings = 10'000;
  for (const bool chunked : {false, true}) {
    run([&] {
      const Hid opened = create(file());
      const Hid type(H5Tcopy(H5T_C_S1));
      H5Tset_size(type, H5T_VARIABLE);
      const char* const fill = "nothing";
      const Hid dataset = create_filled(opened, type, &fill, kStrings, chunked);
      const std::vector<const char*> written(kStrings, "some text");
      ASSERT_GE(H5Dwrite(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, written.data()), 0);
      const Hid list(H5Pcreate(H5P_DATASET_XFER));
      Taken taken;
      ASSERT_GE(H5Pset_vlen_mem_manager(list, take, &taken, give_back, &taken), 0);
      std::vector<char*> read(kStrings, nullptr);
      ASSERT_GE(H5Dread(dataset, type, H5S_ALL, H5S_ALL, list, read.data()), 0) << error_text();
      EXPECT_EQ(taken.allocated, static_cast<int>(kStrings));
      for (char* text : read) ASSERT_STREQ(text, "some text");
      const Hid space(H5Dget_space(dataset));
      if (taken.allocated != static_cast<int>(kStrings)) return;  // it would free foreign memory
      ASSERT_GE(H5Treclaim(type, space, list, read.data()), 0);
      EXPECT_EQ(taken.freed, static_cast<int>(kStrings));
    });
  }
}

// HDF5 converts such a fill value through the file that the dataset was opened with first, each time it is asked how the
// dataset was made: nobody but the program may ask.
TEST_P(TransferList, StringsWithAFillValueOutliveTheHandleTheyCameFrom) {
  constexpr hsize_t kStrings = 10'000;
  for (const bool chunked : {false, true}) {
    run([&] {
      const Hid type(H5Tcopy(H5T_C_S1));
      H5Tset_size(type, H5T_VARIABLE);
      const char* const fill = "nothing";
      const std::vector<const char*> written(kStrings, "some text");
      {
        const Hid opened = create(file());
        const Hid dataset = create_filled(opened, type, &fill, kStrings, chunked);
        ASSERT_GE(H5Dwrite(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, written.data()), 0);
      }
      Hid first = open(file());
      const Hid second = open(file());
      Hid first_dataset(H5Dopen2(first, "d", H5P_DEFAULT));
      const Hid dataset(H5Dopen2(second, "d", H5P_DEFAULT));
      first_dataset = Hid();
      first = Hid();
      std::vector<char*> read(kStrings, nullptr);
      ASSERT_GE(H5Dread(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, read.data()), 0);
      for (char* text : read) ASSERT_STREQ(text, "some text");
      EXPECT_GE(H5Dwrite(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, written.data()), 0);
      // So many runs that it matters whether the dataset lies in one piece.
      const hsize_t zero = 0, two = 2, half = kStrings / 2;
      const Hid every_other(H5Dget_space(dataset)), memory(H5Screate_simple(1, &half, nullptr));
      ASSERT_GE(H5Sselect_hyperslab(every_other, H5S_SELECT_SET, &zero, &two, &half, nullptr), 0);
      EXPECT_GE(H5Dwrite(dataset, type, memory, every_other, H5P_DEFAULT, written.data()), 0);
      H5Treclaim(type, Hid(H5Dget_space(dataset)), H5P_DEFAULT, read.data());
    });
  }
}

CONFORMANCE_WAYS(TransferList, kNative, kImplicit, kDeferredAll, kAuto);

}  // namespace
}  // namespace tidelane::testing
