// Asynchronous reads of chunks, filtered or not: lanes fetch and decode them while the program goes on. What cannot be
// read then HDF5 is asked for, and its words are told.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "conformance/chunk_image.h"
#include "conformance/read_later.h"

namespace tidelane::testing {
namespace {

using namespace std::chrono_literals;

class ChunksLater : public ChunkImages {
 public:
  static void read_async(hid_t dataset, std::vector<int>& values, hid_t set,
                         hid_t file_space = H5S_ALL, hid_t memory_space = H5S_ALL) {
    EXPECT_GE(H5Dread_async(dataset, H5T_NATIVE_INT, memory_space, file_space, H5P_DEFAULT,
                            values.data(), set),
              0)
        << error_text();
  }

  // Damages one byte of a chunk on storage.
  void damage(hsize_t row, hsize_t column) const {
    const haddr_t address = address_of_chunk(file(), row, column);
    const int damaged = ::open(file().c_str(), O_WRONLY | O_CLOEXEC);
    ASSERT_EQ(::pwrite(damaged, "damage", 6, static_cast<off_t>(address) + 50), 6);
    ::close(damaged);
  }
};

TEST_P(ChunksLater, LanesReadThemWhileTheProgramGoesOn) {
  const Image image = image_of(1);
  for (const int filters : {int{kAll}, 0}) {
    run_natively([&] { create_image(create(file()), image, filters); });
    const Summary summary = run([&] {
      Watch watch;
      const Hid opened = open(file(), H5F_ACC_RDONLY);
      const Hid dataset = open_image(opened);
      const Hid set(H5EScreate());
      if (plugged()) watch.hold();
      std::vector<int> values(image.values.size(), -1);
      read_async(dataset, values, set);
      if (plugged()) {
        EXPECT_TRUE(watch.wait_held());
        EXPECT_EQ(wait(set, H5ES_WAIT_NONE), 1u);
      }
      watch.release();
      EXPECT_EQ(wait(set), 0u);
      EXPECT_TRUE(values == image.values);
    });
    if (plugged()) {
      EXPECT_EQ(decoded(summary), image.chunks());
      EXPECT_GT(summary.counter("chunks_by_lanes"), 0);
      EXPECT_EQ(summary.counter("reads_deferred"), 1);
    }
  }
}

TEST_P(ChunksLater, BoxesOfThem) {
  const Image image = image_of(2);
  constexpr hsize_t kBoxes[][4] = {
      {17, 33, 560, 430}, {64, 128, 128, 128}, {0, 0, 64, 128}, {5, 5, 7, 9}, {0, 100, 630, 300}};
  for (const int filters : {kShuffle | kDeflate, 0}) {
    const Summary summary = run([&] {
      const Hid opened = create(file());
      const Hid dataset = create_image(opened, image, filters);
      const Hid set(H5EScreate());
      std::vector<std::vector<int>> got, wanted;
      for (const auto& [row, column, height, width] : kBoxes) {
        got.emplace_back(height * width, -1);
        wanted.emplace_back();
        for (hsize_t r = 0; r < height; ++r) {
          for (hsize_t c = 0; c < width; ++c)
            wanted.back().push_back(image.at(row + r, column + c));
        }
      }
      for (size_t i = 0; i < std::size(kBoxes); ++i) {
        const auto& [row, column, height, width] = kBoxes[i];
        const hsize_t size[2] = {height, width};
        read_async(dataset, got[i], set,
                   box_in(image.rows, image.columns, row, column, height, width),
                   Hid(H5Screate_simple(2, size, nullptr)));
      }
      EXPECT_EQ(wait(set), 0u);
      EXPECT_TRUE(got == wanted);
    });
    if (plugged()) {
      EXPECT_EQ(summary.counter("reads_deferred"),
                3);  // the first and the last one; the second, of whole chunks
      EXPECT_EQ(summary.fallback("read_cached"), 2);
    }
  }
}

TEST_P(ChunksLater, WhatIsDoneMeanwhileDoesNotChangeThem) {
  const Image image = image_of(3);
  for (const int filters : {int{kAll}, 0}) {
    for (int deed = 0; deed < 5; ++deed) {
      run_natively([&] { create_image(create(file()), image, filters); });
      const Summary summary = run([&] {
        Watch watch;
        Hid opened = open(file());
        Hid dataset = open_image(opened);
        const Hid set(H5EScreate());
        if (plugged()) watch.hold();
        std::vector<int> values(image.values.size(), -1);
        read_async(dataset, values, set);
        std::thread opener = watch.release_after(plugged() ? 50ms : 0ms);
        Image now = image;
        const hsize_t smaller[2] = {100, 100}, larger[2] = {800, 700};
        switch (deed) {
          case 0: write_box(dataset, now, 0, 0, 630, 501, 77); break;
          case 1: write_box(dataset, now, 3, 3, 300, 300, 78); break;
          case 2:
            EXPECT_GE(H5Dset_extent(dataset, smaller), 0);
            EXPECT_GE(H5Dset_extent(dataset, larger), 0);
            now = image.resized(100, 100, 0).resized(800, 700, 0);
            write_box(dataset, now, 50, 50, 700, 600, 79);
            break;
          case 3:
            dataset.reset();
            EXPECT_GE(H5Ldelete(opened, "image", H5P_DEFAULT), 0);
            now = image_of(80);
            dataset = create_image(opened, now, filters);
            break;
          default:
            dataset.reset();
            opened.reset();
            opened = open(file());
            dataset = open_image(opened);
        }
        EXPECT_GE(H5Fflush(opened, H5F_SCOPE_GLOBAL), 0);
        EXPECT_EQ(wait(set), 0u);
        opener.join();
        EXPECT_TRUE(values == image.values) << deed;
        expect_image(dataset, now);
      });
      if (plugged()) {
        EXPECT_EQ(summary.counter("reads_deferred"), 1) << deed;
      }
    }
  }
}

TEST_P(ChunksLater, SeveralDatasetsInOneCall) {
  const Image image = image_of(4);
  const Summary summary = run([&] {
    const Hid opened = create(file());
    std::vector<Hid> groups, datasets;
    std::vector<std::vector<int>> now(3, std::vector<int>(image.values.size(), -1)), later = now;
    std::vector<void*> into_now, into_later;
    std::vector<hid_t> ids, types(3, H5T_NATIVE_INT), spaces(3, H5S_ALL);
    for (const int filters : {int{kAll}, 0, int{kDeflate}}) {
      const std::string name = "g" + std::to_string(filters);
      groups.emplace_back(H5Gcreate2(opened, name.c_str(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
      into_now.push_back(now[datasets.size()].data());
      into_later.push_back(later[datasets.size()].data());
      datasets.push_back(create_image(groups.back(), image, filters));
      ids.push_back(datasets.back());
    }
    ASSERT_GE(H5Dread_multi(3, ids.data(), types.data(), spaces.data(), spaces.data(), H5P_DEFAULT,
                            into_now.data()),
              0)
        << error_text();
    const Hid set(H5EScreate());
    ASSERT_GE(H5Dread_multi_async(3, ids.data(), types.data(), spaces.data(), spaces.data(),
                                  H5P_DEFAULT, into_later.data(), set),
              0)
        << error_text();
    EXPECT_EQ(wait(set), 0u);
    for (const auto& values : now) EXPECT_TRUE(values == image.values);
    EXPECT_TRUE(later == now);
  });
  if (plugged()) {
    EXPECT_EQ(decoded(summary), 2 * 3 * image.chunks());
    EXPECT_EQ(summary.counter("reads_deferred"), 3);
  }
}

TEST_P(ChunksLater, FiltersThatOnlyHdf5Has) {
  const Image image = image_of(5);
  const Summary summary = run([&] {
    const Hid opened = create(file());
    const Hid list = creation_list(0);
    H5Pset_scaleoffset(list, H5Z_SO_INT, H5Z_SO_INT_MINBITS_DEFAULT);
    const Hid dataset = create_empty(opened, image.rows, image.columns, list);
    Image ignored = image;
    ASSERT_GE(H5Dwrite(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, image.values.data()),
              0);
    std::vector<int> values(image.values.size(), -1);
    const Hid set(H5EScreate());
    read_async(dataset, values, set);
    EXPECT_TRUE(values == image.values) << "at once";
    EXPECT_EQ(wait(set), 0u);
  });
  if (plugged()) {
    EXPECT_EQ(summary.fallback("read_filter"), 1);
    EXPECT_EQ(summary.fallback("read_now"), 1);
  }
}

// What H5Dread says of the damage, natively.
TEST_P(ChunksLater, DamageIsToldByTheEventSetAsHdf5TellsIt) {
  const Image image = image_of(6);
  run_natively([&] {
    create_image(create(file()), image, kFletcher);
    damage(128, 256);
  });
  const Summary summary = run([&] {
    const Hid opened = open(file(), H5F_ACC_RDONLY);
    const Hid dataset = open_image(opened);
    std::vector<int> values(image.values.size(), -1);
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
    const Hid set(H5EScreate());
    if (!plugged()) {
      EXPECT_LT(
          H5Dread_async(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data(), set),
          0);
      return;
    }
    read_async(dataset, values, set);
    const LateReads::Failure failure = LateReads::wait_failing(set);
    EXPECT_EQ(failure.call, "H5Dread_async");
    EXPECT_NE(failure.errors.find("filter returned failure"), std::string::npos) << failure.errors;
    EXPECT_NE(failure.errors.find("unable to read raw data chunk"), std::string::npos);
  });
  if (plugged()) {
    EXPECT_EQ(summary.fallback("read_failed"), 1);
  }
}

TEST_P(ChunksLater, DamageIsToldAfterTheFileWasClosed) {
  const Image image = image_of(7);
  run_natively([&] {
    create_image(create(file()), image, kFletcher);
    damage(128, 256);
  });
  run([&] {
    if (!plugged()) return;
    Hid opened = open(file(), H5F_ACC_RDONLY);
    Hid dataset = open_image(opened);
    std::vector<int> values(image.values.size(), -1);
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
    const Hid set(H5EScreate());
    read_async(dataset, values, set);
    dataset.reset();
    opened.reset();
    const LateReads::Failure failure = LateReads::wait_failing(set);
    EXPECT_EQ(failure.call, "H5Dread_async");
    EXPECT_FALSE(failure.errors.empty());
  });
}

TEST_P(ChunksLater, AFileThatIsCutShort) {
  const Image image = image_of(8);
  run_natively([&] { create_image(create(file()), image, kShuffle | kDeflate); });
  run([&] {
    if (!plugged()) return;
    const Hid opened = open(file(), H5F_ACC_RDONLY);
    const Hid dataset = open_image(opened);
    std::vector<int> values(image.values.size());
    ASSERT_EQ(::truncate(file().c_str(), size_on_storage(file()) / 2), 0);
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
    const Hid set(H5EScreate());
    read_async(dataset, values, set);
    EXPECT_FALSE(LateReads::wait_failing(set).errors.empty());
  });
}

// A lane that cannot read is no reason for the program to hear of it.
TEST_P(ChunksLater, Hdf5ReadsWhatLanesCannot) {
  const Image image = image_of(9);
  run_natively([&] { create_image(create(file()), image); });
  const Summary summary = run([&] {
    Watch watch;
    const Hid opened = open(file(), H5F_ACC_RDONLY);
    const Hid dataset = open_image(opened);
    const Hid set(H5EScreate());
    watch.hold();
    std::vector<int> values(image.values.size(), -1);
    read_async(dataset, values, set);
    EXPECT_TRUE(!plugged() || watch.wait_held());
    watch.lanes_fail = EIO;
    std::thread opener = watch.release_after(20ms);
    EXPECT_EQ(wait(set), 0u);
    opener.join();
    EXPECT_TRUE(values == image.values);
  });
  if (plugged()) {
    EXPECT_EQ(summary.fallback("read_failed"), 1);
  }
}

// What a program may ask of a transfer that HDF5 did not make.
TEST_P(ChunksLater, TheTransferListSaysWhatItSaysNatively) {
  const Image image = image_of(10);
  struct Said {
    uint32_t cause = 0, mode = 0;
  };
  const Summary summary = run([&] {
    const Hid opened = create(file());
    const auto said = [](hid_t list) {
      Said found;
      H5Pget_no_selection_io_cause(list, &found.cause);
      H5Pget_actual_selection_io_mode(list, &found.mode);
      return found;
    };
    for (const int filters : {int{kAll}, 0}) {
      const Hid group(H5Gcreate2(opened, std::to_string(filters).c_str(), H5P_DEFAULT, H5P_DEFAULT,
                                 H5P_DEFAULT));
      const Hid dataset = create_image(group, image, filters);
      const Hid transfer(H5Pcreate(H5P_DATASET_XFER));
      for (int i = 0; i < 3; ++i) {
        std::vector<int> values(image.values.size(), -1);
        ASSERT_GE(H5Dread(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, transfer, values.data()), 0);
        EXPECT_TRUE(values == image.values);
        EXPECT_EQ(said(transfer).cause, filters != 0 ? 0x20u : 0x40u);
        EXPECT_EQ(said(transfer).mode, 1u);
      }
    }
  });
  if (plugged()) {
    EXPECT_EQ(decoded(summary), 2 * 3 * image.chunks());
  }
}

CONFORMANCE_WAYS(ChunksLater, kNative, kImplicit, kDeferredAll, kAtomic);

}  // namespace
}  // namespace tidelane::testing
