// Storage that refuses while filtered chunks are on their way: whoever could depend on them is told, and what failed
// can be tried again. And forks meanwhile, with another thread inside HDF5.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "conformance/fixture.h"

namespace tidelane::testing {
namespace {

constexpr hsize_t kChunk = 8192;  // elements: 32 KiB
constexpr hsize_t kAll = 8 * kChunk;

class FailingChunks : public Conformance {
 public:
  Environment filtering() const {
    Environment all = environment();
    all["TIDELANE_LANES"] = "1";
    if (!lingers_) all["TIDELANE_LINGER"] = "0";
    return all;
  }
  Summary run_filtering(int64_t chunks, const std::function<void()>& scenario) {
    const Summary summary = run(scenario, filtering());
    EXPECT_GE(
        summary.counter("chunks_filtered_by_lanes") + summary.counter("chunks_filtered_by_caller"),
        chunks);
    return summary;
  }
  // What the scenario prints on stderr.
  std::string told(const std::function<void()>& scenario) {
    const std::string log = in_folder("stderr");
    const Summary summary = run_filtering(8, [&] {
      ASSERT_NE(std::freopen(log.c_str(), "w", stderr), nullptr);
      scenario();
    });
    EXPECT_GT(summary.counter("errors"), 0);
    return bytes_on_storage(log);
  }
  bool tells_at_close() const { return !GetParam().close_deferred(); }
  bool lingers_ = true;

  static Hid make(hid_t opened, const char* name, hsize_t elements = kAll) {
    const Hid plan(H5Pcreate(H5P_DATASET_CREATE)), space(H5Screate_simple(1, &elements, nullptr));
    H5Pset_chunk(plan, 1, &kChunk);
    H5Pset_deflate(plan, 1);
    Hid dataset(H5Dcreate2(opened, name, H5T_NATIVE_INT, space, H5P_DEFAULT, plan, H5P_DEFAULT));
    EXPECT_TRUE(dataset.valid()) << error_text();
    return dataset;
  }
  static herr_t write(hid_t dataset, int seed) {
    const std::vector<int> values = elements(seed, kAll);
    return H5Dwrite(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data());
  }
  static herr_t write_chunk(hid_t dataset, hsize_t number, int seed) {
    const Hid space(H5Dget_space(dataset)), memory(H5Screate_simple(1, &kChunk, nullptr));
    const hsize_t start = number * kChunk;
    H5Sselect_hyperslab(space, H5S_SELECT_SET, &start, nullptr, &kChunk, nullptr);
    const std::vector<int> values = elements(seed, kChunk);
    return H5Dwrite(dataset, H5T_NATIVE_INT, memory, space, H5P_DEFAULT, values.data());
  }
  static std::vector<int> read_chunk(hid_t dataset, hsize_t number) {
    const Hid space(H5Dget_space(dataset)), memory(H5Screate_simple(1, &kChunk, nullptr));
    const hsize_t start = number * kChunk;
    H5Sselect_hyperslab(space, H5S_SELECT_SET, &start, nullptr, &kChunk, nullptr);
    std::vector<int> values(kChunk, -1);
    EXPECT_GE(H5Dread(dataset, H5T_NATIVE_INT, memory, space, H5P_DEFAULT, values.data()), 0)
        << error_text();
    return values;
  }
  void expect_refused(const char* cause) const {
    const std::string text = error_text();
    EXPECT_NE(text.find(file()), std::string::npos) << text;
    EXPECT_NE(text.find(cause), std::string::npos) << text;
  }
};

TEST_P(FailingChunks, FlushAndCloseTellAndCanBeTriedAgain) {
  run_filtering(16, [&] {
    const hid_t opened = create(file()).release();
    Hid dataset = make(opened, "d");
    storage::fail_with(ENOSPC);
    EXPECT_GE(write(dataset, 1), 0) << error_text();
    for (int attempt = 0; attempt < 3 && !GetParam().flush_deferred(); ++attempt) {
      EXPECT_LT(H5Fflush(opened, H5F_SCOPE_GLOBAL), 0);
      expect_refused("No space left on device");
    }
    expect_dataset(opened, "d", 1, kAll);  // what is kept is the file's content
    if (!GetParam().flush_deferred()) {
      // Nothing changes a file whose bytes were refused: the write says so, and is tried again.
      storage::fail_with(0);
      EXPECT_GE(H5Fflush(opened, H5F_SCOPE_GLOBAL), 0) << error_text();
      storage::fail_with(ENOSPC);
    }
    EXPECT_GE(write(dataset, 2), 0) << error_text();
    EXPECT_GE(H5Dclose(dataset.release()), 0) << error_text();  // with its chunks on their way
    for (int attempt = 0; attempt < 3 && tells_at_close(); ++attempt) {
      EXPECT_LT(H5Fclose(opened), 0);
      expect_refused("No space left on device");
    }
    if (!tells_at_close()) {
      EXPECT_GE(H5Fclose(opened), 0) << error_text();
      EXPECT_TRUE(storage::wait_failed());
    }
    storage::fail_with(0);
    if (tells_at_close()) {
      EXPECT_GE(H5Fclose(opened), 0) << error_text();
    }
  });
  run_natively([&] { expect_dataset(open(file(), H5F_ACC_RDONLY), "d", 2, kAll); });
}

TEST_P(FailingChunks, AnExitOverLostChunksNamesTheFile) {
  const std::string text = told([&] {
    const hid_t opened = create(file()).release();
    const hid_t dataset = make(opened, "d").release();
    storage::fail_with(ENOSPC);
    EXPECT_GE(write(dataset, 1), 0) << error_text();
  });
  EXPECT_NE(text.find("No space left on device"), std::string::npos) << text;
  EXPECT_NE(text.find(file()), std::string::npos) << text;
}

constexpr hsize_t kMany = 600;  // chunks: an index of several nodes

// HDF5 cannot even look where a chunk belongs.
class FailingIndex : public FailingChunks {
 public:
  void SetUp() override {
    FailingChunks::SetUp();
    lingers_ = false;
    run_natively([&] {
      const Hid opened = create(file());
      const Hid dataset = make(opened, "d", kMany * kChunk);
      for (hsize_t i = 0; i < kMany; i += 2) EXPECT_GE(write_chunk(dataset, i, 1), 0);
    });
  }
  static void refuse_reads(bool refuse) {
    if (!refuse) return storage::follow_reads({});
    storage::follow_reads([](const storage::Call&) {
      storage::Fault fault;
      fault.error = EIO;
      return fault;
    });
  }
};

TEST_P(FailingIndex, WhatFollowsAFailureWaitsForIt) {
  run_filtering(1, [&] {
    const hid_t opened = open(file()).release();
    // The only lane stands before storage, so that chunks stay on their way. (Where the calling thread writes, an
    // insertion may fail before the next write, which is then told: what was last accepted counts.)
    const bool held = std::string(GetParam().mode) == "async";
    if (held) {
      storage::hold();
      put(opened, "busy", 9, 4 << 20);
      EXPECT_TRUE(storage::wait_held());
    }
    const auto open_dataset = [&] { return Hid(H5Dopen2(opened, "d", H5P_DEFAULT)); };
    Hid first = open_dataset(), second = open_dataset();
    refuse_reads(true);
    EXPECT_GE(write_chunk(first, 401, 2), 0) << error_text();
    EXPECT_TRUE(write_chunk(second, 401, 3) >= 0 || !held) << error_text();
    EXPECT_TRUE(write_chunk(first, 301, 4) >= 0 || !held) << error_text();
    storage::release();
    EXPECT_LT(H5Fflush(opened, H5F_SCOPE_GLOBAL), 0);
    expect_refused("errno = 5");
    EXPECT_LT(write_chunk(second, 401, 5), 0);
    EXPECT_GE(H5Dclose(second.release()), 0) << error_text();
    EXPECT_GE(H5Dclose(first.release()), 0) << error_text();
    for (int attempt = 0; attempt < 2; ++attempt) {
      EXPECT_LT(H5Fclose(opened), 0);
      expect_refused("errno = 5");
      EXPECT_GT(H5Iis_valid(opened), 0);
    }
    refuse_reads(false);
    {
      const Hid again = open_dataset();
      const std::vector<int> values = read_chunk(again, 401);
      EXPECT_TRUE(values == elements(3, kChunk) || (!held && values == elements(2, kChunk)));
      EXPECT_GE(write_chunk(again, 401, 6), 0) << error_text();
    }
    EXPECT_GE(H5Fclose(opened), 0) << error_text();
  });
  run_natively([&] {
    const Hid opened = open(file(), H5F_ACC_RDONLY);
    const Hid dataset(H5Dopen2(opened, "d", H5P_DEFAULT));
    EXPECT_TRUE(read_chunk(dataset, 401) == elements(6, kChunk));
    const std::vector<int> values = read_chunk(dataset, 301);
    EXPECT_TRUE(values == elements(4, kChunk) ||
                (GetParam().automatic() && values == std::vector<int>(kChunk)));
    EXPECT_TRUE(read_chunk(dataset, 400) == elements(1, kChunk));
  });
}

TEST_P(FailingIndex, AnExitOverChunksWithoutAPlaceNamesTheFile) {
  const std::string log = in_folder("stderr");
  const Summary summary = run_filtering(1, [&] {
    ASSERT_NE(std::freopen(log.c_str(), "w", stderr), nullptr);
    const hid_t opened = open(file()).release();
    const hid_t dataset = H5Dopen2(opened, "d", H5P_DEFAULT);
    refuse_reads(true);
    EXPECT_GE(write_chunk(dataset, 401, 2), 0) << error_text();
  });
  EXPECT_GT(summary.counter("errors"), 0);
  const std::string text = bytes_on_storage(log);
  EXPECT_NE(text.find(file()), std::string::npos) << text;
}

// A node of the index that becomes full is divided, for which its neighbour is read. If that fails, a chunk has a place in
// the file and none in the index, and HDF5 believes otherwise; of the old node it has lost half (natively, too).
TEST_P(FailingIndex, AFailureInsideTheIndexIsToldAndTheChunkComesThereLater) {
  constexpr int kPositions = 8;  // among the reads of metadata: it is the one that fails
  constexpr hsize_t kFirst = 201, kEnd = 281;  // every second one
  const auto copy = [&](int position) { return in_folder(std::to_string(position) + ".h5"); };
  const auto mark = [&](int position) { return in_folder(std::to_string(position) + ".told"); };
  for (int i = 0; i < kPositions; ++i) std::filesystem::copy_file(file(), copy(i));
  Environment all = filtering();
  all["TIDELANE_READAHEAD"] = "off";
  const auto write_until_told = [&](hid_t opened, int position) {
    const Hid dataset(H5Dopen2(opened, "d", H5P_DEFAULT));
    std::atomic<int> reads{0};
    storage::follow_reads([&reads, position](const storage::Call&) {
      storage::Fault fault;
      if (reads++ == position) fault.error = EIO;
      return fault;
    });
    bool told = false;
    for (hsize_t chunk = kFirst; chunk < kEnd && !told; chunk += 2) {
      EXPECT_GE(write_chunk(dataset, chunk, 2), 0) << error_text();
      told = H5Fflush(opened, H5F_SCOPE_GLOBAL) < 0;
      if (!told) continue;
      EXPECT_GE(H5Fflush(opened, H5F_SCOPE_GLOBAL), 0) << error_text();
      EXPECT_TRUE(read_chunk(dataset, 0) == elements(1, kChunk));
      EXPECT_TRUE(read_chunk(dataset, chunk) == elements(2, kChunk)) << chunk;
      EXPECT_GE(H5Fclose(create(mark(position)).release()), 0);
    }
    storage::follow_reads({});
    return told;
  };
  run(
      [&] {
        int told = 0;
        for (int position = 0; position < kPositions; ++position) {
          SCOPED_TRACE(position);
          const hid_t opened = open(copy(position)).release();
          told += write_until_told(opened, position) ? 1 : 0;
          EXPECT_GE(H5Fclose(opened), 0) << error_text();
        }
        EXPECT_GE(told, 2);
      },
      all);
  run_natively([&] {
    for (int position = 0; position < kPositions; ++position) {
      if (std::filesystem::exists(mark(position))) continue;
      const Hid opened = open(copy(position), H5F_ACC_RDONLY);
      const Hid dataset(H5Dopen2(opened, "d", H5P_DEFAULT));
      for (hsize_t chunk = kFirst; chunk < kEnd; ++chunk) {
        EXPECT_TRUE(read_chunk(dataset, chunk) == elements(chunk % 2 == 1 ? 2 : 1, kChunk))
            << position << ": " << chunk;
      }
    }
  });
}

bool locks() {
  hbool_t safe = false;
  H5is_library_threadsafe(&safe);
  return safe;
}

TEST_P(FailingChunks, AForkBesideAThreadInsideHdf5DoesNotHang) {
  if (!locks()) GTEST_SKIP() << "HDF5 is not thread-safe";
  run_filtering(8, [&] {
    const Hid opened = create(file());
    const Hid dataset = make(opened, "d");
    EXPECT_GE(H5Fflush(opened, H5F_SCOPE_LOCAL), 0);
    EXPECT_GE(write(dataset, 1), 0);  // nobody is inside HDF5 to insert its chunks
    struct {
      std::atomic<bool> inside{false}, leave{false};
    } at;
    std::thread other([&] {
      H5Iiterate(
          H5I_FILE,
          [](hid_t, void* data) -> herr_t {
            auto* const state = static_cast<decltype(at)*>(data);
            state->inside = true;
            while (!state->leave) std::this_thread::yield();
            return 1;
          },
          &at);
    });
    while (!at.inside) std::this_thread::yield();
    const pid_t child = fork();
    if (child == 0) _exit(0);
    int status = -1;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    at.leave = true;
    other.join();
    expect_dataset(opened, "d", 1, kAll);
  });
  run_natively([&] { expect_dataset(open(file(), H5F_ACC_RDONLY), "d", 1, kAll); });
}

TEST_P(FailingChunks, AChildReadsWhatAnotherThreadWrote) {
  if (!locks()) GTEST_SKIP() << "HDF5 is not thread-safe";
  run_filtering(8, [&] {
    const Hid opened = create(file());
    const Hid dataset = make(opened, "d");
    EXPECT_GE(H5Fflush(opened, H5F_SCOPE_LOCAL), 0);
    std::thread([&] { EXPECT_GE(write(dataset, 1), 0); }).join();
    const pid_t child = fork();
    if (child == 0) _exit(read_chunk(dataset, 0) == elements(1, kChunk) ? 0 : 1);
    int status = -1;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  });
  run_natively([&] { expect_dataset(open(file(), H5F_ACC_RDONLY), "d", 1, kAll); });
}

CONFORMANCE_WAYS(FailingChunks, kImplicit, kDeferredClose, kDeferredAll, kAsyncName, kAuto);
CONFORMANCE_WAYS(FailingIndex, kImplicit, kDeferredClose, kDeferredAll, kAsyncName, kAuto);

}  // namespace
}  // namespace tidelane::testing
