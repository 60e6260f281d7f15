/// \file
/// The filters of src/codec/ against HDF5's own, chunk by chunk: with zlib the stored bytes are HDF5's
/// bytes, and whatever HDF5 stored is decoded. HDF5 runs natively here.
#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "codec/pipeline.h"
#include "h5/hdf5.h"

namespace tidelane {
namespace {

using Bytes = std::vector<std::byte>;

// A file in memory only, with one dataset of one chunk.
class OneChunk {
 public:
  OneChunk(hid_t type, hsize_t elements, const std::vector<int>& filters, unsigned level) {
    const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    H5Pset_fapl_core(access, 1 << 20, false);
    file_ = H5Fcreate("native_filters_test.h5", H5F_ACC_TRUNC, H5P_DEFAULT, access);
    H5Pclose(access);
    const hid_t list = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_chunk(list, 1, &elements);
    for (const int id : filters) {
      if (id == H5Z_FILTER_DEFLATE) H5Pset_deflate(list, level);
      if (id == H5Z_FILTER_SHUFFLE) H5Pset_shuffle(list);
      if (id == H5Z_FILTER_FLETCHER32) H5Pset_fletcher32(list);
    }
    const hid_t space = H5Screate_simple(1, &elements, nullptr);
    dataset_ = H5Dcreate2(file_, "d", type, space, H5P_DEFAULT, list, H5P_DEFAULT);
    EXPECT_GE(dataset_, 0);
    H5Sclose(space);
    H5Pclose(list);
  }
  ~OneChunk() {
    H5Dclose(dataset_);
    H5Fclose(file_);
  }
  OneChunk(const OneChunk&) = delete;
  OneChunk& operator=(const OneChunk&) = delete;

  // What HDF5 stores for `chunk`.
  Bytes Store(hid_t type, const Bytes& chunk, uint32_t& mask) const {
    EXPECT_GE(H5Dwrite(dataset_, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, chunk.data()), 0);
    EXPECT_GE(H5Dflush(dataset_), 0);
    const hsize_t start = 0;
    hsize_t size = 0;
    EXPECT_GE(H5Dget_chunk_storage_size(dataset_, &start, &size), 0);
    Bytes stored(size);
    EXPECT_GE(H5Dread_chunk(dataset_, H5P_DEFAULT, &start, &mask, stored.data()), 0);
    return stored;
  }

  // Its filters as vol/ asks for them.
  std::vector<FilterSpec> Filters() const {
    const hid_t list = H5Dget_create_plist(dataset_);
    std::vector<FilterSpec> filters;
    for (int i = 0; i < H5Pget_nfilters(list); ++i) {
      unsigned flags = 0, values[8];
      size_t count = std::size(values);
      const int id = H5Pget_filter2(list, static_cast<unsigned>(i), &flags, &count, values, 0,
                                    nullptr, nullptr);
      filters.push_back({id, (flags & H5Z_FLAG_OPTIONAL) != 0, {values, values + count}});
    }
    H5Pclose(list);
    return filters;
  }

 private:
  hid_t file_ = -1;
  hid_t dataset_ = -1;
};

void CheckChunk(size_t element, hsize_t elements, const std::vector<int>& filters, unsigned level) {
  const hid_t type = H5Tcreate(H5T_OPAQUE, element);
  Bytes chunk(element * elements);
  for (size_t i = 0; i < chunk.size(); ++i) {
    chunk[i] = static_cast<std::byte>((i / element * 37) >> (i % element * 8 % 24));
  }
  const OneChunk native(type, elements, filters, level);
  uint32_t native_mask = 0, mask = 0;
  const Bytes expected = native.Store(type, chunk, native_mask);
  H5Tclose(type);

  for (const DeflateWith with : {DeflateWith::kZlib, DeflateWith::kLibdeflate}) {
    const std::optional<Pipeline> pipeline = Pipeline::Make(native.Filters(), with);
    ASSERT_TRUE(pipeline.has_value());
    Bytes stored, back(chunk.size());
    ASSERT_TRUE(pipeline->Encode(chunk, stored, mask).ok());
    EXPECT_EQ(mask, native_mask);
    if (with == DeflateWith::kZlib) {
      EXPECT_EQ(stored, expected);
    }
    ASSERT_TRUE(pipeline->Decode(expected, native_mask, back).ok());
    EXPECT_EQ(back, chunk);
  }
}

TEST(NativeFiltersTest, SameBytesInEveryOrder) {
  std::vector<int> filters{H5Z_FILTER_DEFLATE, H5Z_FILTER_SHUFFLE, H5Z_FILTER_FLETCHER32};
  do {
    for (size_t n = 1; n <= filters.size(); ++n) {
      const std::vector<int> first(filters.begin(), filters.begin() + static_cast<ptrdiff_t>(n));
      CheckChunk(4, 5003, first, 6);
      CheckChunk(3, 1, first, 6);  // deflate makes it larger
    }
  } while (std::next_permutation(filters.begin(), filters.end()));
}

TEST(NativeFiltersTest, SameBytesForEveryElementAndLevel) {
  const std::vector<int> all{H5Z_FILTER_SHUFFLE, H5Z_FILTER_DEFLATE, H5Z_FILTER_FLETCHER32};
  for (const size_t element : {1, 2, 3, 5, 8, 16, 100}) CheckChunk(element, 1023, all, 4);
  for (unsigned level = 0; level <= 9; ++level) CheckChunk(4, 20000, all, level);
}

// An element size that does not divide what shuffle is given: the checksum before it.
TEST(NativeFiltersTest, SameBytesWithBytesLeftOver) {
  for (const size_t element : {3, 5, 8, 100}) {
    CheckChunk(element, 77, {H5Z_FILTER_FLETCHER32, H5Z_FILTER_SHUFFLE}, 1);
  }
}

}  // namespace
}  // namespace tidelane
