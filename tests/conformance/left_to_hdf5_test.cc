// Reads of filtered chunks that HDF5 makes: what it converts, what it may have in a cache, and what is damaged.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <vector>

#include "conformance/chunk_image.h"

namespace tidelane::testing {
namespace {

class LeftToHdf5 : public ChunkImages {};

TEST_P(LeftToHdf5, DamageIsToldAsHdf5TellsIt) {
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

TEST_P(LeftToHdf5, AFileThatIsCutShort) {
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

// HDF5 lists the chunks of such a dataset in the wrong order, and each as where another one is.
TEST_P(LeftToHdf5, ADatasetWhoseOneUnlimitedDimensionIsNotTheFirst) {
  constexpr hsize_t kChunks = 3, kEdge = 64;
  const Image image = image_of(7, kChunks * kEdge, kChunks * kEdge);
  const Summary summary = run([&] {
    for (const int filters : {0, int{kDeflate}}) {
      const Hid access(H5Pcreate(H5P_FILE_ACCESS));
      H5Pset_libver_bounds(access, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST);
      const Hid opened = create(file(), access);
      const hsize_t extent[2] = {image.rows, image.columns}, chunk[2] = {kEdge, kEdge},
                    most[2] = {image.rows + kEdge, H5S_UNLIMITED};
      const Hid space(H5Screate_simple(2, extent, most)), list = creation_list(filters);
      H5Pset_chunk(list, 2, chunk);
      const Hid dataset(
          H5Dcreate2(opened, "image", H5T_NATIVE_INT, space, H5P_DEFAULT, list, access_list()));
      ASSERT_GE(
          H5Dwrite(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, image.values.data()), 0);
      expect_image(dataset, image);
      const hsize_t more[2] = {image.rows, image.columns + kEdge};
      ASSERT_GE(H5Dset_extent(dataset, more), 0);
      expect_image(dataset, image.resized(image.rows, image.columns + kEdge, 0));
    }
  });
  if (plugged()) {
    EXPECT_EQ(summary.fallback("read_index"), 2);
  }
}

// Storage gives zeros beyond its end, and so did the read.
TEST_P(LeftToHdf5, AnIndexThatLeadsBeyondTheEndOfTheFile) {
  const Image image = image_of(15);
  run_natively([&] { create_image(create(file()), image, 0); });
  const std::string bytes = bytes_on_storage(file());
  run([&] {
    const haddr_t address = address_of_chunk(file(), 128, 256);
    const haddr_t beyond = haddr_t{1} << 40;
    const size_t entry = bytes.find(std::string(reinterpret_cast<const char*>(&address), 8));
    ASSERT_NE(entry, std::string::npos);
    const int damaged = ::open(file().c_str(), O_WRONLY | O_CLOEXEC);
    ASSERT_EQ(::pwrite(damaged, &beyond, 8, static_cast<off_t>(entry)), 8);
    ::close(damaged);
    const Hid opened = open(file(), H5F_ACC_RDONLY);
    const Hid dataset = open_image(opened);
    std::vector<int> values(image.values.size());
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
    EXPECT_LT(H5Dread(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), 0);
    EXPECT_NE(error_text().find("addr overflow"), std::string::npos) << error_text();
  });
}

TEST_P(LeftToHdf5, WhatIsConvertedIsReadByHdf5) {
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

TEST_P(LeftToHdf5, ATransferListMayTransform) {
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

TEST_P(LeftToHdf5, WhatFitsIntoTheChunkCacheIsReadByHdf5) {
  const Image image = image_of(18, 512, 500);  // 32 chunks: 1 MiB
  run_decoding(0, [&] {
    const Hid opened = create(file());
    const Hid dataset = create_image(opened, image);
    expect_image(dataset, image);
  });
}

TEST_P(LeftToHdf5, BehindAPageBuffer) {
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

TEST_P(LeftToHdf5, SwitchedOff) {
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

CONFORMANCE_WAYS(LeftToHdf5, kNative, kImplicit, kDeferredAll, kAuto);

}  // namespace
}  // namespace tidelane::testing
