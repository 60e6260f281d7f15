/// \file
/// The filters of src/codec/ against those that HDF5 has, chunk by chunk: with zlib the stored bytes
/// are HDF5's bytes, and whatever HDF5 stored is decoded. HDF5 runs natively here, with the filters of
/// the hdf5plugin wheel where scripts/setup/python.sh has installed it.
#include <glob.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "codec/pipeline.h"
#include "h5/library.h"

namespace tidelane {
namespace {

using Bytes = std::vector<std::byte>;
using SetFilters = std::function<void(hid_t list)>;

h5::Library& Hdf5() {
  std::string why;
  const int slot = h5::SlotOf(reinterpret_cast<const void*>(&H5open), why);
  EXPECT_GE(slot, 0) << why;
  return h5::LibraryAt(slot);
}

// A file in memory only, with one dataset of one chunk.
class OneChunk {
 public:
  OneChunk(hid_t type, hsize_t elements, const SetFilters& set_filters) {
    const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    H5Pset_fapl_core(access, 1 << 20, false);
    file_ = H5Fcreate("native_filters_test.h5", H5F_ACC_TRUNC, H5P_DEFAULT, access);
    H5Pclose(access);
    const hid_t list = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_chunk(list, 1, &elements);
    set_filters(list);
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
      unsigned flags = 0, values[16];
      size_t count = std::size(values);
      const int id = H5Pget_filter2(list, static_cast<unsigned>(i), &flags, &count, values, 0,
                                    nullptr, nullptr);
      filters.push_back({id, (flags & H5Z_FLAG_OPTIONAL) != 0, {values, values + count}});
      if (id >= H5Z_FILTER_RESERVED) {
        filters.back().code = reinterpret_cast<const void*>(Hdf5().FilterCode(id));
      }
    }
    H5Pclose(list);
    return filters;
  }

 private:
  hid_t file_ = -1;
  hid_t dataset_ = -1;
};

Bytes Numbers(size_t element, hsize_t elements) {
  Bytes chunk(element * elements);
  for (size_t i = 0; i < chunk.size(); ++i) {
    chunk[i] = static_cast<std::byte>((i / element * 37) >> (i % element * 8 % 24));
  }
  return chunk;
}

Bytes Noise(size_t element, hsize_t elements) {
  std::mt19937 random(static_cast<unsigned>(elements));
  Bytes chunk(element * elements);
  for (std::byte& byte : chunk) byte = static_cast<std::byte>(random());
  return chunk;
}

void CheckChunk(size_t element, const Bytes& chunk, const SetFilters& set_filters,
                Pipeline::Use use = Pipeline::Use::kBoth) {
  const hid_t type = H5Tcreate(H5T_OPAQUE, element);
  const OneChunk native(type, chunk.size() / element, set_filters);
  uint32_t native_mask = 0, mask = 0;
  const Bytes expected = native.Store(type, chunk, native_mask);
  H5Tclose(type);

  for (const DeflateWith with : {DeflateWith::kZlib, DeflateWith::kLibdeflate}) {
    const std::optional<Pipeline> pipeline = Pipeline::Make(native.Filters(), with, use);
    ASSERT_TRUE(pipeline.has_value());
    RawBytes stored;
    Bytes back(chunk.size());
    if (use == Pipeline::Use::kBoth) {
      ASSERT_TRUE(pipeline->Encode(chunk, stored, mask).ok());
      EXPECT_EQ(mask, native_mask);
      if (with == DeflateWith::kZlib) {
        EXPECT_EQ(Bytes(stored.begin(), stored.end()), expected);
      }
    }
    ASSERT_TRUE(pipeline->Decode(expected, native_mask, back).ok());
    EXPECT_EQ(back, chunk);
  }
}

void CheckChunk(size_t element, hsize_t elements, const std::vector<int>& filters, unsigned level) {
  CheckChunk(element, Numbers(element, elements), [&](hid_t list) {
    for (const int id : filters) {
      if (id == H5Z_FILTER_DEFLATE) H5Pset_deflate(list, level);
      if (id == H5Z_FILTER_SHUFFLE) H5Pset_shuffle(list);
      if (id == H5Z_FILTER_FLETCHER32) H5Pset_fletcher32(list);
    }
  });
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

// A filter of the hdf5plugin wheel, and its cd_values as a program gives them.
struct Registered {
  const char* name;
  int id;
  std::vector<unsigned> values;
  Pipeline::Use use = Pipeline::Use::kBoth;
};

const Registered kRegistered[] = {
    {"Blosc with blosclz", 32001, {0, 0, 0, 0, 5, 1, 0}},
    {"Blosc with LZ4", 32001, {0, 0, 0, 0, 9, 1, 1}},
    {"Blosc with LZ4 HC, no shuffle", 32001, {0, 0, 0, 0, 4, 0, 2}},
    {"Blosc with zlib", 32001, {0, 0, 0, 0, 3, 1, 4}},
    {"Blosc with zstd, bits shuffled", 32001, {0, 0, 0, 0, 5, 2, 5}},
    {"Blosc as it is by default", 32001, {}},
    {"LZ4", 32004, {}},
    {"LZ4 in small blocks", 32004, {1000}},
    {"bitshuffle", 32008, {}},
    {"bitshuffle in blocks", 32008, {64}},
    {"bitshuffle with LZ4", 32008, {0, 2}},
    {"bitshuffle with LZ4 in blocks", 32008, {128, 2}},
    {"bitshuffle with zstd", 32008, {0, 3, 5}},
    {"zstd", 32015, {}},
    {"zstd, level 9", 32015, {9}},
    {"Blosc2 with LZ4", 32026, {0, 0, 0, 0, 5, 1, 1}, Pipeline::Use::kDecode},
    {"Blosc2 with zstd, no shuffle", 32026, {0, 0, 0, 0, 3, 0, 5}, Pipeline::Use::kDecode},
};

class RegisteredFiltersTest : public testing::Test {
 protected:
  void SetUp() override {
    glob_t found{};
    const char* source = std::getenv("TIDELANE_TEST_SOURCE_DIR");
    const std::string pattern = std::string(source == nullptr ? "." : source) +
                                "/build/venv/lib/python3*/site-packages/hdf5plugin/plugins";
    if (glob(pattern.c_str(), 0, nullptr, &found) == 0) H5PLappend(found.gl_pathv[0]);
    const bool installed = found.gl_pathc != 0;
    globfree(&found);
    if (!installed) GTEST_SKIP() << "no hdf5plugin in build/venv (make setup-python)";
  }

  static SetFilters Setting(const Registered& filter) {
    return [&filter](hid_t list) {
      EXPECT_GE(H5Pset_filter(list, filter.id, H5Z_FLAG_OPTIONAL, filter.values.size(),
                              filter.values.data()),
                0);
    };
  }
};

TEST_F(RegisteredFiltersTest, SameBytes) {
  for (const Registered& filter : kRegistered) {
    SCOPED_TRACE(filter.name);
    for (const size_t element : {1, 2, 4, 8, 12}) {
      for (const hsize_t elements : {1, 7, 1000, 5003, 70001}) {
        CheckChunk(element, Numbers(element, elements), Setting(filter), filter.use);
        CheckChunk(element, Noise(element, elements), Setting(filter), filter.use);
      }
    }
  }
}

TEST_F(RegisteredFiltersTest, SameBytesBetweenOthers) {
  for (const Registered& filter : kRegistered) {
    SCOPED_TRACE(filter.name);
    CheckChunk(
        4, Numbers(4, 5003),
        [&](hid_t list) {
          H5Pset_shuffle(list);
          Setting(filter)(list);
          H5Pset_fletcher32(list);
        },
        filter.use);
    CheckChunk(
        4, Numbers(4, 5003),
        [&](hid_t list) {
          H5Pset_fletcher32(list);
          Setting(filter)(list);
          H5Pset_deflate(list, 1);
        },
        filter.use);
  }
}

// What is cut short or damaged is refused or decoded to something; nothing is written beyond the chunk.
TEST_F(RegisteredFiltersTest, DamageNeverOverruns) {
  std::mt19937 random(3);
  for (const Registered& filter : kRegistered) {
    SCOPED_TRACE(filter.name);
    const hid_t type = H5Tcreate(H5T_OPAQUE, 4);
    const Bytes chunk = Numbers(4, 20000);
    const OneChunk native(type, 20000, Setting(filter));
    uint32_t mask = 0;
    const Bytes stored = native.Store(type, chunk, mask);
    H5Tclose(type);
    const Pipeline pipeline =
        *Pipeline::Make(native.Filters(), DeflateWith::kLibdeflate, filter.use);
    for (int round = 0; round < 400; ++round) {
      Bytes damaged = stored;
      const size_t within = round % 2 == 0 ? damaged.size() : std::min<size_t>(damaged.size(), 32);
      for (unsigned n = 1 + random() % 4; n-- > 0;) {
        damaged[random() % within] = static_cast<std::byte>(random());
      }
      if (round % 5 == 0) damaged.resize(random() % damaged.size());
      damaged.shrink_to_fit();
      constexpr size_t kGuard = 64;
      Bytes back(chunk.size() + kGuard, std::byte{77});
      const bool done = pipeline.Decode(damaged, mask, std::span(back).first(chunk.size())).ok();
      EXPECT_TRUE(std::all_of(back.end() - kGuard, back.end(),
                              [](std::byte byte) { return byte == std::byte{77}; }));
      if (damaged.size() < stored.size()) {
        EXPECT_FALSE(done) << damaged.size() << " bytes of " << stored.size();
      }
    }
  }
}

// Lanes decode the chunks of one dataset at the same time.
TEST_F(RegisteredFiltersTest, ManyThreadsAtOnce) {
  for (const Registered& filter : kRegistered) {
    SCOPED_TRACE(filter.name);
    const hid_t type = H5Tcreate(H5T_OPAQUE, 4);
    const Bytes chunk = Numbers(4, 30000);
    const OneChunk native(type, 30000, Setting(filter));
    uint32_t mask = 0;
    const Bytes stored = native.Store(type, chunk, mask);
    H5Tclose(type);
    const Pipeline pipeline =
        *Pipeline::Make(native.Filters(), DeflateWith::kLibdeflate, filter.use);
    std::vector<std::thread> threads;
    for (int t = 0; t < 6; ++t) {
      threads.emplace_back([&] {
        for (int round = 0; round < 30; ++round) {
          Bytes back(chunk.size());
          RawBytes again;
          EXPECT_TRUE(pipeline.Decode(stored, mask, back).ok());
          EXPECT_EQ(back, chunk);
          if (filter.use == Pipeline::Use::kDecode) continue;
          uint32_t again_mask = 0;
          EXPECT_TRUE(pipeline.Encode(chunk, again, again_mask).ok());
          EXPECT_EQ(Bytes(again.begin(), again.end()), stored);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
}

TEST_F(RegisteredFiltersTest, AFilterThatHdf5DoesNotHaveIsNone) {
  EXPECT_EQ(Hdf5().FilterCode(32099), nullptr);
  EXPECT_NE(Hdf5().FilterCode(32015), nullptr);
  const FilterSpec unknown{32015, true, {3}, nullptr};
  EXPECT_FALSE(Pipeline::Make({&unknown, 1}, DeflateWith::kLibdeflate).has_value());
  // Another library's function: none of zstd's are there.
  const FilterSpec other{32015, true, {3}, reinterpret_cast<const void*>(&H5open)};
  EXPECT_FALSE(Pipeline::Make({&other, 1}, DeflateWith::kLibdeflate).has_value());
}

}  // namespace
}  // namespace tidelane
