// Reads of filtered chunks that the caller and lanes decode together. Every scenario also runs natively, and counts the
// chunks that did not come from HDF5. What stays HDF5's is in left_to_hdf5_test.cc.
#include <algorithm>
#include <mutex>
#include <thread>
#include <vector>

#include "conformance/chunk_image.h"

namespace tidelane::testing {
namespace {

class FilteredRead : public ChunkImages {};

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
