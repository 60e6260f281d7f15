// Reads of filtered chunks where something is not as it should be: indexes that no writer makes, memory that is short.
// What HDF5 makes of it is what the program gets.
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <vector>

#include "conformance/fixture.h"
#include "support/memory_now.h"
#include "support/sanitizer.h"

namespace tidelane::testing {
namespace {

constexpr hsize_t kChunk = 32 * 1024;  // elements: 128 KiB
constexpr hsize_t kChunks = 20;

Hid create_chunked(hid_t location, hsize_t chunk, hsize_t elements) {
  const Hid list(H5Pcreate(H5P_DATASET_CREATE)), space(H5Screate_simple(1, &elements, nullptr));
  H5Pset_chunk(list, 1, &chunk);
  H5Pset_deflate(list, 1);
  Hid dataset(H5Dcreate2(location, "line", H5T_NATIVE_INT, space, H5P_DEFAULT, list, H5P_DEFAULT));
  EXPECT_TRUE(dataset.valid()) << error_text();
  return dataset;
}

class FilteredLimits : public Conformance {};

// In the index of chunks that old files have, the chunk at `from` is now at `to`.
void move_chunk(const std::string& path, hsize_t from, hsize_t to) {
  const std::string bytes = bytes_on_storage(path);
  const uint64_t key[2] = {from, 0};  // where it begins, in elements and within an element
  const std::string_view sought(reinterpret_cast<const char*>(key), sizeof(key));
  size_t found = std::string::npos;
  for (size_t at = bytes.find(sought); at != std::string::npos; at = bytes.find(sought, at + 1)) {
    uint32_t mask = 1;  // before it
    if (at >= 8) std::memcpy(&mask, bytes.data() + at - sizeof(mask), sizeof(mask));
    if (mask == 0) found = at;
  }
  ASSERT_NE(found, std::string::npos);
  const int file = ::open(path.c_str(), O_WRONLY);
  ASSERT_EQ(::pwrite(file, &to, sizeof(to), static_cast<off_t>(found)), ssize_t{sizeof(to)});
  ::close(file);
}

TEST_P(FilteredLimits, AnIndexThatHasAChunkTwiceIsForHdf5ToUnderstand) {
  const std::vector<int> values = elements(1, kChunk * kChunks);
  run_natively([&] {
    const Hid opened = create(file());
    const Hid dataset = create_chunked(opened, kChunk, values.size());
    H5Dwrite(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data());
  });
  move_chunk(file(), 7 * kChunk, 6 * kChunk);
  const Summary summary = run([&] {
    const Hid opened = open(file(), H5F_ACC_RDONLY);
    const Hid dataset(H5Dopen2(opened, "line", H5P_DEFAULT));
    std::vector<int> read(values.size());
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
    static_cast<void>(H5Dread(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, read.data()));
  });
  if (plugged()) {
    EXPECT_EQ(summary.counter("chunks_by_callers") + summary.counter("chunks_by_lanes"), 0);
  }
}

// As in a batch system that has given its last MiB: a map of all chunks does not fit.
TEST_P(FilteredLimits, MemoryThatIsTooShortForAMapIsNoEnd) {
  if (sanitized()) GTEST_SKIP() << "sanitizers need more address space than any limit leaves";
  constexpr hsize_t kAll = hsize_t{32} << 20, kShort = 32, kRead = kAll / 48;
  const Summary summary = run([&] {
    const Hid opened = create(file());
    const Hid dataset = create_chunked(opened, kShort, kAll);
    const Hid wanted(H5Dget_space(dataset)), memory(H5Screate_simple(1, &kRead, nullptr));
    const hsize_t start = 0;
    H5Sselect_hyperslab(wanted, H5S_SELECT_SET, &start, nullptr, &kRead, nullptr);
    std::vector<int> values(kRead, -1);
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
    const rlimit limit{memory_now().mapped + (8u << 20), RLIM_INFINITY};
    ASSERT_EQ(setrlimit(RLIMIT_AS, &limit), 0);
    // HDF5 may find room in what it has freed, or say that there is none.
    if (H5Dread(dataset, H5T_NATIVE_INT, memory, wanted, H5P_DEFAULT, values.data()) >= 0) {
      EXPECT_EQ(values, std::vector<int>(kRead, 0));
    }
    const rlimit none{RLIM_INFINITY, RLIM_INFINITY};
    ASSERT_EQ(setrlimit(RLIMIT_AS, &none), 0);
    ASSERT_GE(H5Dread(dataset, H5T_NATIVE_INT, memory, wanted, H5P_DEFAULT, values.data()), 0)
        << error_text();
    EXPECT_EQ(values, std::vector<int>(kRead, 0));
  });
}

// `ulimit -v` in a batch system: HDF5 finds the memory that it finds natively, and the program ends well.
TEST_P(FilteredLimits, WhereAddressSpaceIsShortTheProgramHasIt) {
  if (sanitized()) GTEST_SKIP() << "sanitizers need more address space than any limit leaves";
  for (const uint64_t room : {12, 20, 40}) {  // MiB
    const std::vector<int> values = elements(room, kChunk * 8);
    const Summary summary = run([&] {
      const Hid opened = create(file());
      const rlimit limit{memory_now().mapped + (room << 20), RLIM_INFINITY};
      ASSERT_EQ(setrlimit(RLIMIT_AS, &limit), 0);
      for (int i = 0; i < 30; ++i) {
        const Hid group(
            H5Gcreate2(opened, std::to_string(i).c_str(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
        const Hid dataset = create_chunked(group, kChunk, values.size());
        ASSERT_GE(H5Dwrite(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()),
                  0)
            << error_text();
        put(group, "plain", i, kChunk);
      }
    });
    if (plugged()) {
      EXPECT_EQ(summary.counter("errors"), 0) << room;
      EXPECT_GT(summary.fallback("no_threads") + summary.fallback("arena_full"), 0);
    }
    run_natively([&] {
      const Hid opened = open(file(), H5F_ACC_RDONLY);
      for (int i = 0; i < 30; ++i) {
        const Hid dataset(H5Dopen2(opened, (std::to_string(i) + "/line").c_str(), H5P_DEFAULT));
        std::vector<int> read(values.size());
        EXPECT_GE(H5Dread(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, read.data()), 0);
        EXPECT_EQ(read, values) << i;
      }
    });
  }
}

TEST_P(FilteredLimits, MapsOfManyDatasetsTakeNoMoreMemoryThanOfFew) {
  if (sanitized()) GTEST_SKIP() << "sanitizers keep what was freed";
  constexpr hsize_t kAll = hsize_t{32} << 20, kShort = 32, kRead = kAll / 48;
  constexpr int kDatasets = 12;  // with 16 MiB each
  run([&] {
    const Hid opened = create(file());
    const Hid first = create_chunked(opened, kShort, kAll);
    const Hid wanted(H5Dget_space(first)), memory(H5Screate_simple(1, &kRead, nullptr));
    const hsize_t start = 0;
    H5Sselect_hyperslab(wanted, H5S_SELECT_SET, &start, nullptr, &kRead, nullptr);
    std::vector<int> values(kRead, -1);
    std::vector<Hid> datasets(kDatasets);
    uint64_t before = 0;
    for (Hid& dataset : datasets) {
      dataset = Hid(H5Dopen2(opened, "line", H5P_DEFAULT));
      ASSERT_GE(H5Dread(dataset, H5T_NATIVE_INT, memory, wanted, H5P_DEFAULT, values.data()), 0);
      if (before == 0) before = memory_now().resident;
    }
    EXPECT_LT(memory_now().resident - before, 100u << 20);
  });
}

TEST_P(FilteredLimits, LanesHoldNoMoreThanMayWait) {
  constexpr hsize_t kLarge = 2u << 20, kAll = 6 * kLarge;  // 8 MiB each
  Environment small = environment();
  if (plugged()) small["TIDELANE_ARENA"] = "16M";
  const Summary summary = run(
      [&] {
        const Hid opened = create(file());
        const Hid dataset = create_chunked(opened, kLarge, kAll);
        const std::vector<int> values = elements(3, kAll);
        ASSERT_GE(H5Dwrite(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()),
                  0);
        std::vector<int> read(kAll);
        ASSERT_GE(H5Dread(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, read.data()), 0);
        EXPECT_TRUE(read == values);
      },
      small);
  if (plugged()) {
    EXPECT_EQ(summary.counter("chunks_by_callers"), 6);
    EXPECT_EQ(summary.counter("chunks_by_lanes"), 0);
  }
}

CONFORMANCE_WAYS(FilteredLimits, kNative, kImplicit, kAuto);

}  // namespace
}  // namespace tidelane::testing
