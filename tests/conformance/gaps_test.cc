// Gaps between small writes are read and written again so that one request does for many: only where no other writer loses
// anything by it that it would not lose natively.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "conformance/fixture.h"
#include "conformance/storage_gate.h"

namespace tidelane::testing {
namespace {

constexpr hsize_t kRows = 256, kColumns = 512;  // rows of 2 KiB
constexpr int kNeighbours = 9;
constexpr hsize_t kFew = 32;  // elements of a neighbour

// Elements of a dataset, one every so many.
void write_some(hid_t dataset, hsize_t first, hsize_t apart, const std::vector<int>& values) {
  const hsize_t count = values.size();
  const Hid space(H5Dget_space(dataset)), memory(H5Screate_simple(1, &count, nullptr));
  ASSERT_GE(H5Sselect_hyperslab(space, H5S_SELECT_SET, &first, &apart, &count, nullptr), 0);
  ASSERT_GE(H5Dwrite(dataset, H5T_NATIVE_INT, memory, space, H5P_DEFAULT, values.data()), 0);
}

std::string neighbour(int i) { return "n" + std::to_string(i); }

class Gaps : public Conformance {
 protected:
  // Small datasets one behind the other, one of many rows, and one whose chunks HDF5 does not cache.
  void make(hsize_t user_block = 0) {
    run_natively([&] {
      const Hid as(H5Pcreate(H5P_FILE_CREATE));
      H5Pset_userblock(as, user_block);
      const Hid opened(H5Fcreate(file().c_str(), H5F_ACC_TRUNC, as, H5P_DEFAULT));
      for (int i = 0; i < kNeighbours; ++i) put(opened, neighbour(i), i + 1, kFew);
      put(opened, "rows", 20, kRows * kColumns);
      const Hid list(H5Pcreate(H5P_DATASET_CREATE));
      const hsize_t extent = kRows * kColumns, chunk = extent / 2;
      H5Pset_chunk(list, 1, &chunk);
      const Hid space(H5Screate_simple(1, &extent, nullptr));
      const Hid tiles(
          H5Dcreate2(opened, "tiles", H5T_NATIVE_INT, space, H5P_DEFAULT, list, H5P_DEFAULT));
      const std::vector<int> values = elements(21, extent);
      ASSERT_GE(H5Dwrite(tiles, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), 0);
    });
  }
  Hid open_tiles(hid_t opened) {
    const Hid list(H5Pcreate(H5P_DATASET_ACCESS));
    H5Pset_chunk_cache(list, 1, 0, 0);
    return Hid(H5Dopen2(opened, "tiles", list));
  }
  // Where these elements lie in the file.
  off_t place_of(const std::vector<int>& values) {
    const std::string wanted(reinterpret_cast<const char*>(values.data()),
                             values.size() * sizeof(int));
    return static_cast<off_t>(bytes_on_storage(file()).find(wanted));
  }
  // How many writes are made until the file is closed, after `work`.
  template <typename Work>
  int writes_of(Work work) {
    std::atomic<int> writes{0};
    storage::follow([&](const storage::Call& call) {
      if (call.kind == storage::Kind::kWrite && call.path == file()) ++writes;
      return storage::Fault{};
    });
    {
      const Hid opened = open(file());
      work(opened);
    }
    H5close();  // deferred closes, too, have ended
    storage::follow({});
    return writes;
  }

  void another_writers_elements_stay();
};

// Without file locks, or past HDF5, others may write another dataset of the file, as they natively may.
TEST_P(Gaps, AnotherWritersElementsBetweenOursStay) {
  make();
  another_writers_elements_stay();
}

TEST_P(Gaps, TheyDoBehindAUserBlock) {
  make(1024);
  another_writers_elements_stay();
}

void Gaps::another_writers_elements_stay() {
  const std::vector<int> theirs = elements(70, kFew);
  const off_t place = place_of(elements(2, kFew));
  ASSERT_GT(place, 0);
  run([&] {
    const Hid opened = open(file());
    std::vector<Hid> ours;
    for (int i = 0; i < kNeighbours; i += 2)
      ours.emplace_back(H5Dopen2(opened, neighbour(i).c_str(), H5P_DEFAULT));
    const int past = ::open(file().c_str(), O_WRONLY);
    std::atomic<bool> wrote{false};
    const auto write_theirs = [&] {
      if (wrote.exchange(true)) return;
      ASSERT_EQ(::pwrite(past, theirs.data(), kFew * sizeof(int), place),
                static_cast<ssize_t>(kFew * sizeof(int)));
    };
    storage::follow([&](const storage::Call& call) {
      const uint64_t at = static_cast<uint64_t>(place);
      // Just before a gap is written back that was read.
      if (call.kind == storage::Kind::kWrite && call.path == file() && call.address <= at &&
          at < call.address + call.size) {
        write_theirs();
      }
      return storage::Fault{};
    });
    for (const Hid& dataset : ours) write_some(dataset, 3, 1, {-1});
    ASSERT_GE(H5Fflush(opened, H5F_SCOPE_GLOBAL), 0);
    ours.clear();
    H5Fclose(opened);
    write_theirs();
    storage::follow({});
    ::close(past);
  });
  run_natively([&] {
    const Hid opened = open(file());
    expect_dataset(opened, neighbour(1), 70, kFew);
    for (int i = 0; i < kNeighbours; i += 2) {
      std::vector<int> expected = elements(i + 1, kFew), found(kFew);
      expected[3] = -1;
      const Hid dataset(H5Dopen2(opened, neighbour(i).c_str(), H5P_DEFAULT));
      H5Dread(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, found.data());
      EXPECT_EQ(found, expected) << i;
    }
  });
}

TEST_P(Gaps, AColumnOfADatasetIsFewRequests) {
  make(GetParam().close_deferred() ? 512 : 0);
  const std::vector<int> column = elements(71, kRows);
  run([&] {
    const int writes = writes_of([&](hid_t opened) {
      const Hid rows(H5Dopen2(opened, "rows", H5P_DEFAULT));
      write_some(rows, 7, kColumns, column);
    });
    EXPECT_LE(writes, 24) << "windows of 64 KiB, and some metadata";
  });
  run_natively([&] {
    std::vector<int> expected = elements(20, kRows * kColumns), found(expected.size());
    for (hsize_t row = 0; row < kRows; ++row) expected[row * kColumns + 7] = column[row];
    const Hid opened = open(file()), rows(H5Dopen2(opened, "rows", H5P_DEFAULT));
    H5Dread(rows, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, found.data());
    EXPECT_TRUE(found == expected);
  });
}

// Natively as many as elements: HDF5 has no sieve there.
TEST_P(Gaps, AColumnOfChunksThatAreNotCachedIsFewRequestsToo) {
  make();
  const std::vector<int> column = elements(72, kRows);
  run([&] {
    const int writes = writes_of([&](hid_t opened) {
      const Hid tiles = open_tiles(opened);
      write_some(tiles, 7, kColumns, column);
    });
    EXPECT_LE(writes, plugged() ? 24 : static_cast<int>(kRows) + 24);
  });
  run_natively([&] {
    std::vector<int> expected = elements(21, kRows * kColumns), found(expected.size());
    for (hsize_t row = 0; row < kRows; ++row) expected[row * kColumns + 7] = column[row];
    const Hid opened = open(file()), tiles = open_tiles(opened);
    H5Dread(tiles, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, found.data());
    EXPECT_TRUE(found == expected);
  });
}

CONFORMANCE_WAYS(Gaps, kNative, kImplicit, kDeferredAll);

}  // namespace
}  // namespace tidelane::testing
