// Datasets whose small writes HDF5's sieve buffer gathers: what else HDF5 does with them sees those writes as natively.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "conformance/fixture.h"
#include "conformance/storage_gate.h"
#include "support/sanitizer.h"

namespace tidelane::testing {
namespace {

// Requests for the file's storage while `work` runs and until what it wrote is stored.
struct Requests {
  int reads = 0, writes = 0;
};
template <typename Work>
Requests requests_of(const std::string& path, hid_t opened, Work work) {
  std::atomic<int> reads{0}, writes{0};
  const auto count = [&](const storage::Call& call) {
    if (call.path == path && call.kind == storage::Kind::kRead) ++reads;
    if (call.path == path && call.kind == storage::Kind::kWrite) ++writes;
    return storage::Fault();
  };
  storage::follow_reads(count);
  storage::follow(count);
  work();
  EXPECT_GE(H5Fflush(opened, H5F_SCOPE_GLOBAL), 0);
  storage::follow_reads({});
  storage::follow({});
  return {reads, writes};
}

constexpr hsize_t kRows = 1000, kColumns = 64;  // of 256 bytes: four windows of the sieve

// A program's own list, as every list of h5py's is.
Hid own_list() {
  Hid list(H5Pcreate(H5P_DATASET_XFER));
  EXPECT_GE(H5Pset_buffer(list, 1 << 19, nullptr, nullptr), 0);
  return list;
}

void transfer_row(hid_t dataset, hid_t list, hsize_t row, std::vector<int>& values, bool write) {
  const hsize_t start[2] = {row, 0}, count[2] = {1, kColumns};
  const Hid space(H5Dget_space(dataset)), memory(H5Screate_simple(2, count, nullptr));
  ASSERT_GE(H5Sselect_hyperslab(space, H5S_SELECT_SET, start, nullptr, count, nullptr), 0);
  int* const at = values.data() + row * kColumns;
  ASSERT_GE(write ? H5Dwrite(dataset, H5T_NATIVE_INT, memory, space, list, at)
                  : H5Dread(dataset, H5T_NATIVE_INT, memory, space, list, at),
            0);
}

void transfer_column(hid_t dataset, hid_t list, hsize_t column, std::vector<int>& values,
                     bool write) {
  const hsize_t start[2] = {0, column}, count[2] = {kRows, 1};
  const Hid space(H5Dget_space(dataset)), memory(H5Screate_simple(2, count, nullptr));
  ASSERT_GE(H5Sselect_hyperslab(space, H5S_SELECT_SET, start, nullptr, count, nullptr), 0);
  ASSERT_GE(write ? H5Dwrite(dataset, H5T_NATIVE_INT, memory, space, list, values.data())
                  : H5Dread(dataset, H5T_NATIVE_INT, memory, space, list, values.data()),
            0);
}

class Unlocked : public Conformance {
 protected:
  Environment with(const char* name, const char* value) const {
    Environment settings = environment();
    settings[name] = value;
    return settings;
  }
  // Each part opens the file anew: natively a dataset has no sieve buffer then.
  template <typename Work>
  void with_rows(int least, int most_reads, int most_writes, Work work) {
    const Hid opened = open(file());
    const Hid dataset(H5Dopen2(opened, "rows", H5P_DEFAULT));
    const Hid list = own_list();
    const Requests made = requests_of(file(), opened, [&] { work(dataset.get(), list.get()); });
    EXPECT_GE(made.reads + made.writes, least);
    EXPECT_LE(made.reads, most_reads);
    EXPECT_LE(made.writes, most_writes);
  }
  void all_ways(const Environment& environment) {
    std::vector<int> values = elements(1, kRows * kColumns);
    const std::vector<int> column = elements(2, kRows);
    run_natively([&] {
      const Hid opened = create(file());
      const hsize_t extent[2] = {kRows, kColumns};
      const Hid space(H5Screate_simple(2, extent, nullptr));
      const Hid dataset(
          H5Dcreate2(opened, "rows", H5T_NATIVE_INT, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
      ASSERT_GE(H5Dwrite(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), 0);
    });
    run(
        [&] {
          for (const bool own : {false, true}) {
            with_rows(4, 12, 4, [&](hid_t dataset, hid_t list) {
              std::vector<int> found(values.size());
              for (hsize_t row = 0; row < kRows; ++row)
                transfer_row(dataset, own ? list : H5P_DEFAULT, row, found, false);
              EXPECT_EQ(found, values);
            });
            with_rows(4, 12, 4, [&](hid_t dataset, hid_t list) {
              std::vector<int> found(kRows);
              transfer_column(dataset, own ? list : H5P_DEFAULT, 3, found, false);
              for (hsize_t row = 0; row < kRows; ++row)
                ASSERT_EQ(found[row], values[row * kColumns + 3]);
            });
          }
          for (const bool own : {false, true}) {
            with_rows(4, 12, 16, [&](hid_t dataset, hid_t list) {
              std::vector<int> changed = column;
              transfer_column(dataset, own ? list : H5P_DEFAULT, own ? 5 : 4, changed, true);
            });
          }
        },
        environment);
    run_natively([&] {
      const Hid opened = open(file());
      for (hsize_t row = 0; row < kRows; ++row)
        values[row * kColumns + 4] = values[row * kColumns + 5] = column[row];
      std::vector<int> found(values.size());
      const Hid dataset(H5Dopen2(opened, "rows", H5P_DEFAULT));
      ASSERT_GE(H5Dread(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, found.data()), 0);
      EXPECT_EQ(found, values);
    });
  }
};

// Usual on Lustre and NFS: nothing is kept of what others may write, and the sieve is what native HDF5 has in that case.
TEST_P(Unlocked, RowsAndColumnsTakeAsFewRequestsAsNatively) {
  all_ways(with("HDF5_USE_FILE_LOCKING", "FALSE"));
}

TEST_P(Unlocked, SoTheyDoWhereTransfersAreToBeNatives) {
  all_ways(plugged() ? with("TIDELANE_MODE", "sync") : environment());
}

// A file in memory, beside one of ours: boxes whose rows are close together are what the sieve would gather.
TEST_P(Unlocked, AnotherDriversFileHasNoSieveOfOurs) {
  run([&] {
    const Hid ours = create(file()), list(H5Pcreate(H5P_FILE_ACCESS));
    ASSERT_GE(H5Pset_fapl_core(list, 1 << 16, false), 0);
    const Hid memory(H5Fcreate((file() + ".memory").c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, list));
    for (const hid_t opened : {memory.get(), ours.get()}) {
      const hsize_t extent[2] = {200, 20}, start[2] = {3, 4}, count[2] = {190, 6};
      const Hid space(H5Screate_simple(2, extent, nullptr));
      const Hid dataset(H5Dcreate2(opened, "boxes", H5T_NATIVE_INT8, space, H5P_DEFAULT,
                                   H5P_DEFAULT, H5P_DEFAULT));
      const Hid box(H5Screate_simple(2, count, nullptr));
      ASSERT_GE(H5Sselect_hyperslab(space, H5S_SELECT_SET, start, nullptr, count, nullptr), 0);
      for (int8_t value = 1; value < 20; ++value) {
        std::vector<int8_t> written(190 * 6, value), found(written.size());
        ASSERT_GE(H5Dwrite(dataset, H5T_NATIVE_INT8, box, space, H5P_DEFAULT, written.data()), 0);
        ASSERT_GE(H5Dread(dataset, H5T_NATIVE_INT8, box, space, H5P_DEFAULT, found.data()), 0);
        EXPECT_EQ(found, written);
      }
    }
  });
}

// HDF5 tells open files apart by the class of their driver, and a transfer may open the same file again.
TEST_P(Unlocked, AFileThatAConversionOpensOnceMoreIsTheSameFile) {
  run(
      [&] {
        const Hid opened = create(file());
        put(opened, "d", 1, 100);
        const Hid dataset(H5Dopen2(opened, "d", H5P_DEFAULT)), list = own_list();
        struct Inside {
          std::string path;
          int calls = 0;
          bool same = false;
        } inside{file()};
        // An integer out of range, for which HDF5 asks the program.
        H5Pset_type_conv_cb(
            list,
            [](H5T_conv_except_t, hid_t, hid_t, void*, void*, void* data) {
              auto* self = static_cast<Inside*>(data);
              if (self->calls++ == 0) {
                const Hid again(H5Fopen(self->path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT));
                const Hid there(H5Dopen2(again, "d", H5P_DEFAULT));
                const int value = 77;
                const hsize_t one = 1, start = 99;
                const Hid space(H5Dget_space(there)), memory(H5Screate_simple(1, &one, nullptr));
                H5Sselect_hyperslab(space, H5S_SELECT_SET, &start, nullptr, &one, nullptr);
                self->same =
                    H5Dwrite(there, H5T_NATIVE_INT, memory, space, H5P_DEFAULT, &value) >= 0;
              }
              return H5T_CONV_UNHANDLED;
            },
            &inside);
        std::vector<int8_t> small(100);
        ASSERT_GE(H5Dread(dataset, H5T_NATIVE_INT8, H5S_ALL, H5S_ALL, list, small.data()), 0);
        EXPECT_GT(inside.calls, 0);
        EXPECT_TRUE(inside.same);
        std::vector<int> found(100);
        ASSERT_GE(H5Dread(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, found.data()), 0);
        EXPECT_EQ(found[99], 77);
      },
      with("HDF5_USE_FILE_LOCKING", "FALSE"));
}

// Of a file that nobody writes the sieve's copy is as good as our blocks, and costs less; rows that jump are read by themselves.
using OnlyRead = Conformance;
TEST_P(OnlyRead, RowsInOrderTakeAsFewRequestsAsNativelyAndOthersAreRight) {
  const std::vector<int> values = elements(1, kRows * kColumns);
  run_natively([&] {
    const Hid opened = create(file());
    const hsize_t extent[2] = {kRows, kColumns};
    const Hid space(H5Screate_simple(2, extent, nullptr));
    for (const char* const name : {"a", "b", "c"}) {
      const Hid dataset(
          H5Dcreate2(opened, name, H5T_NATIVE_INT, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
      ASSERT_GE(H5Dwrite(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), 0);
    }
  });
  usleep(
      50'000);  // a file that was changed a moment ago may be changed again: nothing is kept of it
  run([&] {
    const Hid opened(H5Fopen(file().c_str(), H5F_ACC_RDONLY, H5P_DEFAULT));
    std::vector<Hid> datasets;
    for (const char* const name : {"a", "b", "c"})
      datasets.emplace_back(H5Dopen2(opened, name, H5P_DEFAULT));
    const auto read = [&](hsize_t row) {
      for (const Hid& dataset : datasets) {
        std::vector<int> found(values.size());
        transfer_row(dataset, H5P_DEFAULT, row, found, false);
        const auto at = static_cast<std::ptrdiff_t>(row * kColumns);
        ASSERT_TRUE(
            std::equal(found.begin() + at, found.begin() + at + kColumns, values.begin() + at))
            << "row " << row;
      }
    };
    const Requests made = requests_of(file(), opened, [&] {
      for (hsize_t row = 0; row < kRows; ++row) read(row);
    });
    EXPECT_GE(made.reads, 12);
    EXPECT_LE(made.reads, 30);
    EXPECT_EQ(made.writes, 0);
    for (hsize_t row = kRows; row-- > 0;) read(row);
    for (hsize_t i = 0; i < kRows; ++i) read(i * 397 % kRows);
    for (hsize_t row = 0; row < kRows; ++row) read(row);
  });
}
// By the requests of a small sieve it can be seen that HDF5's own is used: blocks of ours would make a few.
TEST_P(OnlyRead, RowsInOrderGoThroughTheProgramsOwnSieve) {
  constexpr int kAttempts = 5;
  constexpr int kSieve = 4096, kWindows = static_cast<int>(kRows * kColumns * sizeof(int)) / kSieve;
  const std::vector<int> values = elements(1, kRows * kColumns);
  run_natively([&] {
    const Hid opened = create(file());
    const hsize_t extent[2] = {kRows, kColumns};
    const Hid space(H5Screate_simple(2, extent, nullptr));
    const Hid dataset(
        H5Dcreate2(opened, "rows", H5T_NATIVE_INT, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    ASSERT_GE(H5Dwrite(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), 0);
  });
  usleep(50'000);
  run([&] {
    const Hid access(H5Pcreate(H5P_FILE_ACCESS));
    ASSERT_GE(H5Pset_sieve_buf_size(access, kSieve), 0);
    // On a busy machine storage may look slow at first.
    Requests made{};
    for (int attempt = 0; attempt < kAttempts && made.reads < kWindows; ++attempt) {
      std::vector<int> found(values.size());
      const Hid again(H5Fopen(file().c_str(), H5F_ACC_RDONLY, access));
      const Hid rows(H5Dopen2(again, "rows", H5P_DEFAULT));
      made = requests_of(file(), again, [&] {
        for (hsize_t row = 0; row < kRows; ++row)
          transfer_row(rows, H5P_DEFAULT, row, found, false);
      });
      EXPECT_EQ(found, values);
    }
    if (sanitized() && made.reads < kWindows) return;  // there it is slow
    EXPECT_GE(made.reads, kWindows);
    EXPECT_LE(made.reads, kWindows + 4);
  });
}

CONFORMANCE_WAYS(OnlyRead, kNative, kImplicit, kDeferredAll, kAuto);

CONFORMANCE_WAYS(Unlocked, kNative, kImplicit, kDeferredAll, kAuto);

}  // namespace
}  // namespace tidelane::testing
