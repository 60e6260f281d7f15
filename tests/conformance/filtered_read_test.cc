// Reads of filtered chunks that the caller and lanes decode together, and those that stay HDF5's. Every scenario also
// runs natively, and counts the chunks that did not come from HDF5.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "conformance/fixture.h"

namespace tidelane::testing {
namespace {

using namespace std::chrono_literals;

constexpr hsize_t kChunk[2] = {64, 128};  // 32 KiB
constexpr size_t kCache = 1u << 20;       // HDF5's; what is read here touches more

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

Image image_of(int seed, hsize_t rows = 630, hsize_t columns = 501) {
  Image image{rows, columns, std::vector<int>(rows * columns)};
  for (size_t i = 0; i < image.values.size(); ++i) {
    image.values[i] = seed * 1009 + static_cast<int>(i % 997 * i % 61);
  }
  return image;
}

enum Filters { kDeflate = 1, kShuffle = 2, kFletcher = 4, kAll = 7 };

Hid creation_list(int filters, const int* fill = nullptr) {
  Hid list(H5Pcreate(H5P_DATASET_CREATE));
  H5Pset_chunk(list, 2, kChunk);
  if (filters & kShuffle) H5Pset_shuffle(list);
  if (filters & kDeflate) H5Pset_deflate(list, 4);
  if (filters & kFletcher) H5Pset_fletcher32(list);
  if (fill != nullptr) H5Pset_fill_value(list, H5T_NATIVE_INT, fill);
  return list;
}

// The cache is not left to HDF5's default, which grew to 8 MiB in HDF5 2.
Hid access_list() {
  Hid list(H5Pcreate(H5P_DATASET_ACCESS));
  H5Pset_chunk_cache(list, 521, kCache, 0.75);
  return list;
}

Hid create_empty(hid_t location, hsize_t rows, hsize_t columns, hid_t list, bool fixed = false) {
  const hsize_t dims[2] = {rows, columns};
  const hsize_t most[2] = {H5S_UNLIMITED, H5S_UNLIMITED};
  const Hid space(H5Screate_simple(2, dims, fixed ? nullptr : most));
  Hid dataset(
      H5Dcreate2(location, "image", H5T_NATIVE_INT, space, H5P_DEFAULT, list, access_list()));
  EXPECT_TRUE(dataset.valid()) << error_text();
  return dataset;
}

Hid create_image(hid_t location, const Image& image, int filters = kAll, bool fixed = false) {
  Hid dataset = create_empty(location, image.rows, image.columns, creation_list(filters), fixed);
  EXPECT_GE(H5Dwrite(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, image.values.data()),
            0)
      << error_text();
  return dataset;
}

Hid open_image(hid_t location) {
  Hid dataset(H5Dopen2(location, "image", access_list()));
  EXPECT_TRUE(dataset.valid()) << error_text();
  return dataset;
}

Hid box_in(hsize_t rows, hsize_t columns, hsize_t row, hsize_t column, hsize_t height,
           hsize_t width) {
  const hsize_t dims[2] = {rows, columns}, start[2] = {row, column}, count[2] = {height, width};
  Hid space(H5Screate_simple(2, dims, nullptr));
  H5Sselect_hyperslab(space, H5S_SELECT_SET, start, nullptr, count, nullptr);
  return space;
}

// Overwrites a box of the dataset, and of what it should have.
void write_box(hid_t dataset, Image& image, hsize_t row, hsize_t column, hsize_t height,
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

void expect_image(hid_t dataset, const Image& image) {
  std::vector<int> values(image.values.size(), -1);
  ASSERT_GE(H5Dread(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), 0)
      << error_text();
  const auto at = std::mismatch(values.begin(), values.end(), image.values.begin());
  ASSERT_TRUE(at.first == values.end())
      << "element " << at.first - values.begin() << " is " << *at.first << ", not " << *at.second;
}

int64_t decoded(const Summary& summary) {
  return summary.counter("chunks_by_callers") + summary.counter("chunks_by_lanes");
}

class FilteredRead : public Conformance {
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

TEST_P(FilteredRead, AWholeDataset) {
  const Image image = image_of(1);
  run_decoding(2 * image.chunks(), [&] {
    const Hid opened = create(file());
    const Hid dataset = create_image(opened, image);
    expect_image(dataset, image);
    expect_image(dataset, image);
  });
}

TEST_P(FilteredRead, EachFilterAndEachIndexOfChunks) {
  const Image image = image_of(2);
  run_decoding(3 * 3 * image.chunks(), [&] {
    for (const int filters : {int{kDeflate}, kShuffle | kDeflate, int{kFletcher}}) {
      for (const int index : {0, 1, 2}) {  // B-tree 1; B-tree 2; fixed array
        const Hid access(H5Pcreate(H5P_FILE_ACCESS));
        if (index > 0) H5Pset_libver_bounds(access, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST);
        const Hid opened = create(file(), access);
        expect_image(create_image(opened, image, filters, index == 2), image);
      }
    }
  });
}

TEST_P(FilteredRead, BoxesIntoAllKindsOfMemory) {
  const Image image = image_of(3);
  constexpr hsize_t kRow = 17, kColumn = 33, kHeight = 560, kWidth = 430;
  run_decoding(4 * 10 * 4, [&] {
    const Hid opened = create(file());
    const Hid dataset = create_image(opened, image);
    const Hid wanted = box_in(image.rows, image.columns, kRow, kColumn, kHeight, kWidth);
    const auto read = [&](hid_t memory, std::vector<int>& values) {
      ASSERT_GE(H5Dread(dataset, H5T_NATIVE_INT, memory, wanted, H5P_DEFAULT, values.data()), 0)
          << error_text();
    };
    const hsize_t count[2] = {kHeight, kWidth}, flat = kHeight * kWidth + 100, from = 60,
                  points = kHeight * kWidth;
    std::vector<int> packed(kHeight * kWidth, -1), run(flat, -1),
        as_stored(image.values.size(), -1), framed((kHeight + 5) * (kWidth + 9), -1);
    read(Hid(H5Screate_simple(2, count, nullptr)), packed);
    const Hid line(H5Screate_simple(1, &flat, nullptr));
    H5Sselect_hyperslab(line, H5S_SELECT_SET, &from, nullptr, &points, nullptr);
    read(line, run);
    read(H5S_ALL, as_stored);
    read(box_in(kHeight + 5, kWidth + 9, 2, 7, kHeight, kWidth), framed);
    Image expected_stored = image.resized(image.rows, image.columns, 0);
    std::fill(expected_stored.values.begin(), expected_stored.values.end(), -1);
    Image expected_framed{kHeight + 5, kWidth + 9, std::vector<int>(framed.size(), -1)};
    std::vector<int> expected_run(run.size(), -1), expected_packed(packed.size());
    for (hsize_t r = 0; r < kHeight; ++r) {
      for (hsize_t c = 0; c < kWidth; ++c) {
        const int value = image.at(kRow + r, kColumn + c);
        expected_packed[r * kWidth + c] = expected_run[from + r * kWidth + c] = value;
        expected_stored.at(kRow + r, kColumn + c) = expected_framed.at(r + 2, c + 7) = value;
      }
    }
    EXPECT_TRUE(packed == expected_packed);
    EXPECT_TRUE(run == expected_run);
    EXPECT_TRUE(as_stored == expected_stored.values);
    EXPECT_TRUE(framed == expected_framed.values);
  });
}

TEST_P(FilteredRead, ASelectionThatIsMovedByAnOffset) {
  const Image image = image_of(4, 700, 501);
  run([&] {
    const Hid opened = create(file());
    const Hid dataset = create_image(opened, image);
    const Hid wanted = box_in(700, 501, 0, 0, 600, 501);
    const hssize_t by[2] = {64, 0};
    H5Soffset_simple(wanted, by);
    std::vector<int> values(600 * 501, -1);
    const hsize_t count[2] = {600, 501};
    ASSERT_GE(H5Dread(dataset, H5T_NATIVE_INT, Hid(H5Screate_simple(2, count, nullptr)), wanted,
                      H5P_DEFAULT, values.data()),
              0);
    EXPECT_TRUE(std::equal(values.begin(), values.end(), image.values.begin() + 64 * 501));
  });
}

TEST_P(FilteredRead, ChunksThatWereNeverWrittenHaveTheFillValue) {
  for (const int fill : {0, 42}) {
    Image image = image_of(5).resized(128, 256, fill).resized(630, 501, fill);
    const Summary summary = run([&] {
      const Hid opened = create(file());
      const Hid dataset = create_empty(opened, image.rows, image.columns,
                                       creation_list(kAll, fill ? &fill : nullptr));
      Image ignored = image;
      write_box(dataset, image, 0, 0, 128, 256, 5);
      write_box(dataset, image, 300, 200, 10, 10, 6);
      expect_image(dataset, image);
    });
    if (plugged()) {
      EXPECT_EQ(decoded(summary), 5);  // four whole, one in part
    }
  }
}

TEST_P(FilteredRead, WithoutAFillValueMemoryStaysAsItIs) {
  run_decoding(0, [&] {
    const Hid opened = create(file());
    const Hid list = creation_list(kDeflate);
    H5Pset_fill_time(list, H5D_FILL_TIME_NEVER);
    const Hid dataset = create_empty(opened, 630, 501, list);
    Image image = image_of(0).resized(630, 501, -1);
    std::fill(image.values.begin(), image.values.end(), -1);
    write_box(dataset, image, 0, 0, 64, 128, 7);
    expect_image(dataset, image);
  });
}

TEST_P(FilteredRead, AfterAnExtentChanged) {
  Image image = image_of(6);
  const int64_t chunks = 40 + 70 + 24 + 70;
  const Summary summary = run([&] {
    const Hid opened = create(file());
    const Hid dataset = create_image(opened, image);
    const auto resize = [&](hsize_t rows, hsize_t columns) {
      const hsize_t dims[2] = {rows, columns};
      ASSERT_GE(H5Dset_extent(dataset, dims), 0);
      image = image.resized(rows, columns, 0);
      expect_image(dataset, image);
    };
    expect_image(dataset, image);
    resize(900, 600);
    write_box(dataset, image, 620, 490, 280, 110, 8);
    expect_image(dataset, image);
    resize(590, 500);
    write_box(dataset, image, 0, 0, 590, 500, 9);
    resize(800, 630);
  });
  if (plugged()) {
    EXPECT_GE(decoded(summary), chunks / 2);
  }
}

TEST_P(FilteredRead, AfterWritesThatAreStillInTheChunkCache) {
  Image image = image_of(7);
  run_decoding(5 * image.chunks(), [&] {
    const Hid opened = create(file());
    const Hid dataset = create_image(opened, image);
    expect_image(dataset, image);
    for (int round = 0; round < 4; ++round) {
      const auto step = static_cast<hsize_t>(round);
      write_box(dataset, image, 100 * step, 50 * step, 7, 90, 20 + round);
      expect_image(dataset, image);
    }
  });
}

TEST_P(FilteredRead, AfterWholeChunksWereWrittenAgain) {
  Image image = image_of(8);
  run_decoding(3 * image.chunks(), [&] {
    const Hid opened = create(file());
    const Hid dataset = create_image(opened, image);
    expect_image(dataset, image);
    write_box(dataset, image, 128, 128, 128, 256, 30);
    expect_image(dataset, image);
    // And one that goes without its filters.
    const Image chunk = image_of(31, kChunk[0], kChunk[1]);
    const hsize_t at[2] = {64, 256};
    ASSERT_GE(H5Dwrite_chunk(dataset, H5P_DEFAULT, 7, at, chunk.values.size() * sizeof(int),
                             chunk.values.data()),
              0)
        << error_text();
    for (hsize_t r = 0; r < kChunk[0]; ++r) {
      for (hsize_t c = 0; c < kChunk[1]; ++c) image.at(64 + r, 256 + c) = chunk.at(r, c);
    }
    expect_image(dataset, image);
  });
}

TEST_P(FilteredRead, TwoHandlesOfOneDataset) {
  Image image = image_of(9);
  run_decoding(4 * image.chunks(), [&] {
    const Hid opened = create(file());
    const Hid one = create_image(opened, image);
    Hid two = open_image(opened);
    expect_image(one, image);
    expect_image(two, image);
    write_box(two, image, 3, 3, 200, 200, 40);
    expect_image(one, image);
    two.reset();
    write_box(one, image, 300, 3, 200, 200, 41);
    two = open_image(opened);
    expect_image(two, image);
  });
}

TEST_P(FilteredRead, ManyDatasetsOneAfterTheOther) {
  // HDF5 gives a new dataset the address of one that was closed.
  run_decoding(6 * image_of(0).chunks(), [&] {
    const Hid opened = create(file());
    for (int i = 0; i < 6; ++i) {
      const Image image = image_of(50 + i);
      expect_image(create_image(opened, image, i % 2 ? kAll : int{kDeflate}), image);
      ASSERT_GE(H5Ldelete(opened, "image", H5P_DEFAULT), 0);
    }
  });
}

TEST_P(FilteredRead, BehindAUserBlock) {
  const Image image = image_of(10);
  run_decoding(2 * image.chunks(), [&] {
    const Hid properties(H5Pcreate(H5P_FILE_CREATE));
    H5Pset_userblock(properties, 1024);
    Hid opened(H5Fcreate(file().c_str(), H5F_ACC_TRUNC, properties, H5P_DEFAULT));
    expect_image(create_image(opened, image), image);
    opened.reset();
    opened = open(file(), H5F_ACC_RDONLY);
    expect_image(open_image(opened), image);
  });
}

TEST_P(FilteredRead, AFileThatOthersMayReadToo) {
  const Image image = image_of(11);
  run_natively([&] { create_image(create(file()), image); });
  run_decoding(image.chunks(), [&] {
    const Hid opened = open(file(), H5F_ACC_RDONLY);
    expect_image(open_image(opened), image);
  });
}

TEST_P(FilteredRead, BytesThatAreNotStoredYet) {
  const Image image = image_of(12);
  const Summary summary = run_decoding(image.chunks(), [&] {
    const Hid opened = create(file());
    if (plugged()) storage::hold();
    const Hid dataset = create_image(opened, image);
    expect_image(dataset, image);
    storage::release();
  });
  if (plugged()) {
    EXPECT_GT(summary.counter("bytes_deferred"), 0);
  }
}

TEST_P(FilteredRead, SeveralThreads) {
  const Image image = image_of(13);
  run_decoding(4 * 3 * image.chunks(), [&] {
    const Hid opened = create(file());
    const Hid dataset = create_image(opened, image);
    hbool_t safe = false;
    H5is_library_threadsafe(&safe);
    std::mutex one_at_a_time;
    const auto read = [&] {
      for (int i = 0; i < 3; ++i) {
        std::unique_lock<std::mutex> lock(one_at_a_time, std::defer_lock);
        if (!safe) lock.lock();
        expect_image(dataset, image);
      }
    };
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) threads.emplace_back(read);
    for (std::thread& thread : threads) thread.join();
  });
}

// Where a chunk is in the file.
haddr_t address_of_chunk(const std::string& path, hsize_t row, hsize_t column) {
  const Hid opened = open(path, H5F_ACC_RDONLY);
  const hsize_t at[2] = {row, column};
  unsigned mask = 0;
  haddr_t address = 0;
  hsize_t size = 0;
  EXPECT_GE(H5Dget_chunk_info_by_coord(open_image(opened), at, &mask, &address, &size), 0);
  EXPECT_GT(size, 100u);
  return address;
}

TEST_P(FilteredRead, DamageIsToldAsHdf5TellsIt) {
  const Image image = image_of(14);
  run_natively([&] {
    create_image(create(file()), image, kFletcher);
    const haddr_t address = address_of_chunk(file(), 128, 256);
    const int damaged = ::open(file().c_str(), O_WRONLY);
    ASSERT_EQ(::pwrite(damaged, "damage", 6, static_cast<off_t>(address) + 50), 6);
    ::close(damaged);
  });
  const Summary summary = run([&] {
    const Hid opened = open(file(), H5F_ACC_RDONLY);
    const Hid dataset = open_image(opened);
    std::vector<int> values(image.values.size());
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
    EXPECT_LT(H5Dread(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), 0);
    const std::string errors = error_text();
    EXPECT_NE(errors.find("filter returned failure"), std::string::npos) << errors;
    // Chunks beside it can be read.
    std::vector<int> rows(128 * 501);
    const hsize_t count[2] = {128, 501};
    EXPECT_GE(H5Dread(dataset, H5T_NATIVE_INT, Hid(H5Screate_simple(2, count, nullptr)),
                      box_in(image.rows, image.columns, 0, 0, 128, 501), H5P_DEFAULT, rows.data()),
              0);
  });
  if (plugged()) {
    EXPECT_EQ(summary.fallback("read_failed"), 1);
  }
}

TEST_P(FilteredRead, AFileThatIsCutShort) {
  const Image image = image_of(15);
  run_natively([&] { create_image(create(file()), image, kShuffle | kDeflate); });
  const Summary summary = run([&] {
    const Hid opened = open(file(), H5F_ACC_RDONLY);
    const Hid dataset = open_image(opened);
    std::vector<int> values(image.values.size());
    ASSERT_EQ(::truncate(file().c_str(), size_on_storage(file()) / 2), 0);
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
    EXPECT_LT(H5Dread(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), 0);
    EXPECT_FALSE(error_text().empty());
  });
  if (plugged()) {
    EXPECT_EQ(summary.fallback("read_failed"), 1);
  }
}

TEST_P(FilteredRead, WhatIsConvertedIsReadByHdf5) {
  const Image image = image_of(16);
  const Summary summary = run_decoding(0, [&] {
    const Hid opened = create(file());
    const Hid dataset = create_image(opened, image);
    std::vector<double> values(image.values.size());
    ASSERT_GE(H5Dread(dataset, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), 0);
    EXPECT_TRUE(std::equal(values.begin(), values.end(), image.values.begin()));
  });
  if (plugged()) {
    EXPECT_EQ(summary.fallback("read_converted"), 1);
  }
}

TEST_P(FilteredRead, ATransferListMayTransform) {
  const Image image = image_of(17);
  run_decoding(image.chunks(), [&] {
    const Hid opened = create(file());
    const Hid dataset = create_image(opened, image);
    const Hid transfer(H5Pcreate(H5P_DATASET_XFER));
    std::vector<int> values(image.values.size());
    ASSERT_GE(H5Dread(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, transfer, values.data()), 0);
    EXPECT_TRUE(values == image.values) << "one that says nothing";
    H5Pset_data_transform(transfer, "x+1");
    ASSERT_GE(H5Dread(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, transfer, values.data()), 0);
    EXPECT_EQ(values[70'000], image.values[70'000] + 1);
  });
}

TEST_P(FilteredRead, WhatFitsIntoTheChunkCacheIsReadByHdf5) {
  const Image image = image_of(18, 512, 500);  // 32 chunks: 1 MiB
  run_decoding(0, [&] {
    const Hid opened = create(file());
    const Hid dataset = create_image(opened, image);
    expect_image(dataset, image);
  });
}

TEST_P(FilteredRead, BehindAPageBuffer) {
  Image image = image_of(19);
  run_decoding(0, [&] {
    const Hid properties(H5Pcreate(H5P_FILE_CREATE)), access(H5Pcreate(H5P_FILE_ACCESS));
    H5Pset_file_space_strategy(properties, H5F_FSPACE_STRATEGY_PAGE, false, 1);
    H5Pset_file_space_page_size(properties, 65536);
    H5Pset_page_buffer_size(access, 1 << 20, 0, 0);
    const Hid opened(H5Fcreate(file().c_str(), H5F_ACC_TRUNC, properties, access));
    const Hid dataset = create_image(opened, image);
    write_box(dataset, image, 9, 9, 20, 20, 60);
    expect_image(dataset, image);
  });
}

TEST_P(FilteredRead, SwitchedOff) {
  const Image image = image_of(20);
  Environment off = environment();
  if (plugged()) off["TIDELANE_PARALLEL_READS"] = "off";
  const Summary summary = run(
      [&] {
        const Hid opened = create(file());
        expect_image(create_image(opened, image), image);
      },
      off);
  if (plugged()) {
    EXPECT_EQ(decoded(summary), 0);
  }
}

TEST_P(FilteredRead, LanesHelp) {
  const Image image = image_of(21, 4000, 3000);  // so much that they come in time
  const Summary summary = run_decoding(3 * image.chunks(), [&] {
    const Hid opened = create(file());
    const Hid dataset = create_image(opened, image);
    for (int i = 0; i < 3; ++i) expect_image(dataset, image);
  });
  if (plugged()) {
    EXPECT_GT(summary.counter("chunks_by_lanes"), 0);
  }
}

CONFORMANCE_WAYS(FilteredRead, kNative, kImplicit, kDeferredAll, kAuto);

}  // namespace
}  // namespace tidelane::testing
