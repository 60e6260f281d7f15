// A two-dimensional dataset in chunks, what it should have, and how many of its chunks did not come from HDF5.
//
// Thread safety: none.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "conformance/fixture.h"

namespace tidelane::testing {

inline constexpr hsize_t kChunk[2] = {64, 128};  // 32 KiB
inline constexpr size_t kCache = 1u << 20;       // HDF5's; what is read here touches more

// What a dataset should have.
struct Image {
  hsize_t rows = 0;
  hsize_t columns = 0;
  std::vector<int> values;

  int& at(hsize_t row, hsize_t column) { return values[row * columns + column]; }
  int at(hsize_t row, hsize_t column) const { return values[row * columns + column]; }
  int64_t chunks() const {
    return static_cast<int64_t>(((rows - 1) / kChunk[0] + 1) * ((columns - 1) / kChunk[1] + 1));
  }
  Image resized(hsize_t to_rows, hsize_t to_columns, int fill) const {
    Image image{to_rows, to_columns, std::vector<int>(to_rows * to_columns, fill)};
    for (hsize_t r = 0; r < std::min(rows, to_rows); ++r) {
      for (hsize_t c = 0; c < std::min(columns, to_columns); ++c) image.at(r, c) = at(r, c);
    }
    return image;
  }
};

inline Image image_of(int seed, hsize_t rows = 630, hsize_t columns = 501) {
  Image image{rows, columns, std::vector<int>(rows * columns)};
  for (size_t i = 0; i < image.values.size(); ++i) {
    image.values[i] = seed * 1009 + static_cast<int>(i % 997 * i % 61);
  }
  return image;
}

enum Filters { kDeflate = 1, kShuffle = 2, kFletcher = 4, kAll = 7 };

inline Hid creation_list(int filters, const int* fill = nullptr) {
  Hid list(H5Pcreate(H5P_DATASET_CREATE));
  H5Pset_chunk(list, 2, kChunk);
  if (filters & kShuffle) H5Pset_shuffle(list);
  if (filters & kDeflate) H5Pset_deflate(list, 4);
  if (filters & kFletcher) H5Pset_fletcher32(list);
  if (fill != nullptr) H5Pset_fill_value(list, H5T_NATIVE_INT, fill);
  return list;
}

// The cache is not left to HDF5's default, which grew to 8 MiB in HDF5 2.
inline Hid access_list() {
  Hid list(H5Pcreate(H5P_DATASET_ACCESS));
  H5Pset_chunk_cache(list, 521, kCache, 0.75);
  return list;
}

inline Hid create_empty(hid_t location, hsize_t rows, hsize_t columns, hid_t list,
                        bool fixed = false) {
  const hsize_t dims[2] = {rows, columns};
  const hsize_t most[2] = {H5S_UNLIMITED, H5S_UNLIMITED};
  const Hid space(H5Screate_simple(2, dims, fixed ? nullptr : most));
  Hid dataset(
      H5Dcreate2(location, "image", H5T_NATIVE_INT, space, H5P_DEFAULT, list, access_list()));
  EXPECT_TRUE(dataset.valid()) << error_text();
  return dataset;
}

inline Hid create_image(hid_t location, const Image& image, int filters = kAll,
                        bool fixed = false) {
  Hid dataset = create_empty(location, image.rows, image.columns, creation_list(filters), fixed);
  EXPECT_GE(H5Dwrite(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, image.values.data()),
            0)
      << error_text();
  return dataset;
}

inline Hid open_image(hid_t location) {
  Hid dataset(H5Dopen2(location, "image", access_list()));
  EXPECT_TRUE(dataset.valid()) << error_text();
  return dataset;
}

inline Hid box_in(hsize_t rows, hsize_t columns, hsize_t row, hsize_t column, hsize_t height,
                  hsize_t width) {
  const hsize_t dims[2] = {rows, columns}, start[2] = {row, column}, count[2] = {height, width};
  Hid space(H5Screate_simple(2, dims, nullptr));
  H5Sselect_hyperslab(space, H5S_SELECT_SET, start, nullptr, count, nullptr);
  return space;
}

// Overwrites a box of the dataset, and of what it should have.
inline void write_box(hid_t dataset, Image& image, hsize_t row, hsize_t column, hsize_t height,
                      hsize_t width, int seed) {
  const hsize_t count[2] = {height, width};
  const Hid memory(H5Screate_simple(2, count, nullptr));
  const Image part = image_of(seed, height, width);
  ASSERT_GE(H5Dwrite(dataset, H5T_NATIVE_INT, memory,
                     box_in(image.rows, image.columns, row, column, height, width), H5P_DEFAULT,
                     part.values.data()),
            0)
      << error_text();
  for (hsize_t r = 0; r < height; ++r) {
    for (hsize_t c = 0; c < width; ++c) image.at(row + r, column + c) = part.at(r, c);
  }
}

inline void expect_image(hid_t dataset, const Image& image) {
  std::vector<int> values(image.values.size(), -1);
  ASSERT_GE(H5Dread(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), 0)
      << error_text();
  const auto at = std::mismatch(values.begin(), values.end(), image.values.begin());
  ASSERT_TRUE(at.first == values.end())
      << "element " << at.first - values.begin() << " is " << *at.first << ", not " << *at.second;
}

inline int64_t decoded(const Summary& summary) {
  return summary.counter("chunks_by_callers") + summary.counter("chunks_by_lanes");
}

// Where a chunk is in the file.
inline haddr_t address_of_chunk(const std::string& path, hsize_t row, hsize_t column) {
  const Hid opened = open(path, H5F_ACC_RDONLY);
  const hsize_t at[2] = {row, column};
  unsigned mask = 0;
  haddr_t address = 0;
  hsize_t size = 0;
  EXPECT_GE(H5Dget_chunk_info_by_coord(open_image(opened), at, &mask, &address, &size), 0);
  EXPECT_GT(size, 100u);
  return address;
}

class ChunkImages : public Conformance {
 public:
  // Runs it, and so many chunks must not have come from HDF5.
  Summary run_decoding(int64_t chunks, const std::function<void()>& scenario) {
    Summary summary = run(scenario);
    if (plugged()) {
      EXPECT_EQ(decoded(summary), chunks);
    }
    return summary;
  }
};

}  // namespace tidelane::testing
