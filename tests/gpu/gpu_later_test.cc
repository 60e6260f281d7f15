// Reads into GPU memory in event sets: the call returns before storage is read, and the set is done when the device has its bytes.
#include "gpu/gpu_later.h"

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace tidelane::testing {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr unsigned kVeryLate = 1'500'000;  // microseconds

// Nothing is read and nothing is copied while lanes are held up; then all is.
TEST_P(GpuLater, TheCallReturnsBeforeStorageIsRead) {
  make_layouts();
  for (const std::string name : kLayouts) {
    SCOPED_TRACE(name);
    const Summary summary = run_on_gpu([&] {
      Watch watch;
      const Hid opened = open(file(), H5F_ACC_RDONLY);
      const Hid dataset = dataset_in(opened, name);
      const Hid set(H5EScreate());
      Memory memory(Where::kDevice, kLaterSize, 9);
      watch.hold();
      ASSERT_GE(read_async(dataset, memory, set), 0) << error_text();
      EXPECT_TRUE(watch.wait_held());
      EXPECT_EQ(wait(set, H5ES_WAIT_NONE), 1u);
      EXPECT_EQ(wait(set, 20'000'000), 1u);
      EXPECT_EQ(watch.by_program(), 0u);
      EXPECT_EQ(gpu().StandInCalls("cuMemcpyHtoDAsync_v2"), 0u);
      memory.expect_contents();
      watch.release();
      EXPECT_EQ(wait(set), 0u);
      memory.contents() = contents_of(name);
      memory.expect_contents();
      EXPECT_EQ(gpu().StandInPageable(), 0u);
    });
    EXPECT_EQ(summary.counter("reads_deferred"), 1);
    EXPECT_EQ(summary.counter("gpu_bytes_up"), static_cast<int64_t>(kLaterSize));
  }
}

// Who only asks begins the copy, and is told that it is under way.
TEST_P(GpuLater, QuestionsAloneEndIt) {
  make_layouts();
  for (const std::string name : kLayouts) {
    SCOPED_TRACE(name);
    run_on_gpu([&] {
      Watch watch;
      const Hid opened = open(file(), H5F_ACC_RDONLY);
      const Hid dataset = dataset_in(opened, name);
      const Hid set(H5EScreate());
      Memory memory(Where::kDevice, kLaterSize, 9);
      watch.hold();
      ASSERT_GE(read_async(dataset, memory, set), 0) << error_text();
      EXPECT_TRUE(watch.wait_held());
      watch.release();
      EXPECT_TRUE(watch.wait_for_lanes(kLaterSize / 2));  // of what is compressed fewer
      gpu().StandInDelay(30'000);
      int pending_copies = 0;
      for (int i = 0; i < 5000 && wait(set, H5ES_WAIT_NONE) != 0; ++i) {
        if (gpu().StandInCalls("cuMemcpyHtoDAsync_v2") != 0) ++pending_copies;
        std::this_thread::sleep_for(1ms);
      }
      EXPECT_EQ(wait(set, H5ES_WAIT_NONE), 0u);
      EXPECT_GT(pending_copies, 0);
      EXPECT_EQ(gpu().StandInCalls("cuEventSynchronize"), 0u);
      memory.contents() = contents_of(name);
      memory.expect_contents();
    });
  }
}

// A wait with a limit ends there, also while the device copies.
TEST_P(GpuLater, AWaitWithALimitEndsThere) {
  make_layouts();
  run_on_gpu([&] {
    const Hid opened = open(file(), H5F_ACC_RDONLY);
    const Hid dataset = dataset_in(opened, "line");
    const Hid set(H5EScreate());
    Memory memory(Where::kDevice, kLaterSize, 9);
    gpu().StandInDelay(400'000);
    ASSERT_GE(read_async(dataset, memory, set), 0) << error_text();
    const auto begin = Clock::now();
    EXPECT_EQ(wait(set, 50'000'000), 1u);
    EXPECT_LT(Clock::now() - begin, 300ms);
    EXPECT_EQ(wait(set, 20'000'000'000), 0u);
    memory.contents() = contents_of("line");
    memory.expect_contents();
  });
}

class GpuLaterOrder : public GpuLater {
 public:
  static Hid list_for(CUstream stream) {
    uint64_t number = reinterpret_cast<uintptr_t>(stream);
    Hid list(H5Pcreate(H5P_DATASET_XFER));
    EXPECT_GE(H5Pinsert2(list, "tidelane.gpu_stream", sizeof number, &number, nullptr, nullptr,
                         nullptr, nullptr, nullptr, nullptr),
              0);
    return list;
  }
  // Reads with work in the program's stream that comes before or after the call.
  void read_beside(bool named, bool before) {
    run_on_gpu([&] {
      CUstream stream = nullptr;
      if (named) {
        EXPECT_EQ(gpu().cuStreamCreate(&stream, kCudaNonBlocking), kCudaSuccess);
      }
      const Hid list = named ? list_for(stream) : Hid(H5Pcreate(H5P_DATASET_XFER));
      const Hid opened = open(file(), H5F_ACC_RDONLY);
      const Hid dataset = dataset_in(opened, "line");
      const Hid set(H5EScreate());
      Memory memory(Where::kDevice, kLaterSize, 9);
      const Memory other(Where::kDevice, 100, 8);
      const Bytes garbage = pattern(kLaterSize, 7);
      if (before) {
        EXPECT_EQ(gpu().StandInWriteLater(memory.device(), garbage.data(), garbage.size(), stream,
                                          kVeryLate),
                  kCudaSuccess);
      }
      const auto begin = Clock::now();
      ASSERT_GE(read_async(dataset, memory, set, list), 0) << error_text();
      EXPECT_LT(Clock::now() - begin, 1s) << "the call waits for the stream";
      EXPECT_EQ(count(set), 1u);
      if (!before) {
        EXPECT_EQ(gpu().StandInWriteLater(other.device(), garbage.data(), other.size(), stream,
                                          kVeryLate),
                  kCudaSuccess);
      }
      EXPECT_EQ(wait(set), 0u);
      if (before) {
        EXPECT_GE(Clock::now() - begin, 1s) << "the read did not wait for the stream";
      } else {
        EXPECT_LT(Clock::now() - begin, 1s) << "the read waits for what came after the call";
      }
      memory.contents() = contents_of("line");
      memory.expect_contents();
      EXPECT_EQ(gpu().cuStreamSynchronize(stream), kCudaSuccess);
      memory.expect_contents();
    });
  }
};

TEST_P(GpuLaterOrder, AfterWhatWasInTheStreamBefore) {
  make_layouts();
  for (const bool named : {false, true}) read_beside(named, true);
}

TEST_P(GpuLaterOrder, BesideWhatComesIntoTheStreamLater) {
  make_layouts();
  for (const bool named : {false, true}) read_beside(named, false);
}

TEST_P(GpuLater, SelectionsOfFileAndMemory) {
  const Summary summary = run_and_compare([&](hid_t opened) {
    Watch watch;
    int number = 0;
    for (const bool filtered : {false, true}) {
      const Hid creation = filtered ? chunked({100, 300}) : Hid(H5Pcreate(H5P_DATASET_CREATE));
      if (filtered) H5Pset_deflate(creation, 1);
      Twin twin(opened, "d" + std::to_string(number++), {700, 900}, {.creation = creation});
      ASSERT_GE(twin.write(Memory(Where::kHost, twin.bytes(), 1)), 0) << error_text();
      EXPECT_GE(H5Fflush(opened, H5F_SCOPE_GLOBAL), 0);
      struct Case {
        Extent in_file, size, around, at;
      };
      const Case cases[] = {
          {{0, 0}, {700, 900}, {700, 900}, {0, 0}},   {{100, 300}, {500, 300}, {500, 300}, {0, 0}},
          {{5, 7}, {600, 800}, {650, 950}, {20, 30}}, {{1, 0}, {400, 900}, {400, 1000}, {0, 50}},
          {{3, 0}, {600, 900}, {600, 900}, {0, 0}},
      };
      const Hid set(H5EScreate());
      std::vector<std::unique_ptr<Memory>> memories;
      watch.hold();
      size_t late = 0;
      for (const Case& c : cases) {
        const Hid in_file = select(twin.space(), c.in_file, {}, c.size);
        const Hid in_memory = select(simple(c.around), c.at, {}, c.size);
        memories.push_back(std::make_unique<Memory>(
            Where::kMiddle, c.around[0] * c.around[1] * sizeof(int), number + 10u));
        Memory& memory = *memories.back();
        ASSERT_GE(H5Dread_async(twin.dataset(), H5T_NATIVE_INT, in_memory, in_file, H5P_DEFAULT,
                                memory.get(), set),
                  0)
            << error_text();
        memory.expect_contents();
        twin.model_read(memory.contents(), in_memory, in_file);
        ++late;
        EXPECT_EQ(count(set), late);
      }
      watch.release();
      EXPECT_EQ(wait(set), 0u);
      for (const auto& memory : memories) memory->expect_contents();
      leave(twin);
    }
  });
  EXPECT_GE(summary.counter("reads_deferred"), 8);
}

TEST_P(GpuLater, SeveralDatasetsInOneCallFromHostAndDevice) {
  make_layouts();
  run_on_gpu([&] {
    Watch watch;
    const Hid opened = open(file(), H5F_ACC_RDONLY);
    const Hid set(H5EScreate());
    std::vector<Hid> opens;
    std::vector<hid_t> datasets, types(4, H5T_NATIVE_UCHAR), spaces(4, H5S_ALL);
    std::vector<std::unique_ptr<Memory>> memories;
    std::vector<void*> to;
    const std::vector<std::pair<std::string, Where>> rows{{"line", Where::kDevice},
                                                          {"chunks", Where::kHost},
                                                          {"gzip", Where::kPooled},
                                                          {"line", Where::kOtherDevice}};
    for (const auto& [name, where] : rows) {
      opens.push_back(dataset_in(opened, name));
      datasets.push_back(opens.back());
      memories.push_back(std::make_unique<Memory>(where, kLaterSize, 20));
      to.push_back(memories.back()->get());
    }
    watch.hold();
    ASSERT_GE(H5Dread_multi_async(rows.size(), datasets.data(), types.data(), spaces.data(),
                                  spaces.data(), H5P_DEFAULT, to.data(), set),
              0)
        << error_text();
    EXPECT_EQ(wait(set, H5ES_WAIT_NONE), 1u);
    for (const auto& memory : memories) {
      if (memory->where() != Where::kHost) memory->expect_contents();
    }
    watch.release();
    EXPECT_EQ(wait(set), 0u);
    for (size_t i = 0; i < rows.size(); ++i) {
      memories[i]->contents() = contents_of(rows[i].first);
      memories[i]->expect_contents();
    }
  });
}

// Outstanding together, waited for from the youngest on.
TEST_P(GpuLater, SeveralAreOutstanding) {
  make_layouts();
  run_on_gpu([&] {
    Watch watch;
    const Hid opened = open(file(), H5F_ACC_RDONLY);
    const Where places[] = {Where::kDevice,       Where::kManaged,     Where::kPooled,
                            Where::kOtherContext, Where::kOtherDevice, Where::kMiddle};
    std::vector<Hid> sets;
    std::vector<Hid> datasets;  // whose close would wait
    std::vector<std::unique_ptr<Memory>> memories;
    watch.hold();
    for (size_t i = 0; i < std::size(places); ++i) {
      datasets.push_back(dataset_in(opened, kLayouts[i % 3]));
      sets.emplace_back(H5EScreate());
      memories.push_back(std::make_unique<Memory>(places[i], kLaterSize, 30));
      ASSERT_GE(read_async(datasets[i], *memories[i], sets[i]), 0) << error_text();
    }
    for (const auto& memory : memories) memory->expect_contents();
    watch.release();
    for (size_t i = std::size(places); i-- > 0;) {
      EXPECT_EQ(wait(sets[i]), 0u);
      memories[i]->contents() = contents_of(kLayouts[i % 3]);
      memories[i]->expect_contents();
    }
  });
}

// More than the staging memory holds, which is one granule here: those that find no room wait, or are read at once.
TEST_P(GpuLater, MoreAreOutstandingThanTheStagingMemoryHolds) {
  make_layouts();
  Environment small = environment();
  small["TIDELANE_ARENA"] = "1M";
  for (const bool one_set : {true, false}) {
    const Summary summary = run_on_gpu(
        [&] {
          Watch watch;
          watch.delay_ms = 2;
          const Hid opened = open(file(), H5F_ACC_RDONLY);
          const Hid dataset = dataset_in(opened, "line");
          std::vector<Hid> sets;
          std::vector<std::unique_ptr<Memory>> memories;
          for (unsigned i = 0; i < 14; ++i) {
            if (sets.empty() || !one_set) sets.emplace_back(H5EScreate());
            memories.push_back(std::make_unique<Memory>(Where::kDevice, kLaterSize, 40 + i));
            ASSERT_GE(read_async(dataset, *memories[i], sets.back()), 0) << error_text();
          }
          for (const Hid& set : sets) EXPECT_EQ(wait(set), 0u);
          for (const auto& memory : memories) {
            memory->contents() = contents_of("line");
            memory->expect_contents();
          }
        },
        small);
    EXPECT_GE(summary.counter("reads_deferred"), 5);
    EXPECT_EQ(summary.fallback("gpu_unpinned"), 0);
  }
}

// More than a quarter of the staging memory, and more than all of it.
TEST_P(GpuLater, LargeReads) {
  Environment small = environment();
  small["TIDELANE_ARENA"] = "1M";
  for (const size_t size : {size_t{20} << 20, size_t{40} << 20}) {
    make_layouts(size);
    const Summary summary = run_on_gpu(
        [&] {
          const Hid opened = open(file(), H5F_ACC_RDONLY);
          const Hid dataset = dataset_in(opened, "line");
          const Hid set(H5EScreate());
          Memory memory(Where::kDevice, size, 9);
          ASSERT_GE(read_async(dataset, memory, set), 0) << error_text();
          EXPECT_EQ(wait(set), 0u);
          memory.contents() = contents_of("line", size);
          memory.expect_contents();
        },
        small);
    EXPECT_EQ(summary.fallback("gpu_unpinned"), 0);
    EXPECT_EQ(summary.counter("reads_deferred") > 0, size < size_t{32} << 20);
  }
}

// What is written meanwhile, from a device or the host, comes after.
TEST_P(GpuLater, WhatIsWrittenMeanwhileDoesNotChangeIt) {
  for (const Where where : {Where::kDevice, Where::kHost}) {
    run_and_compare([&](hid_t opened) {
      Twin twin(opened, "d", {kLaterSize}, {.type = H5T_NATIVE_UCHAR});
      ASSERT_GE(twin.write(Memory(Where::kDevice, kLaterSize, 1)), 0) << error_text();
      EXPECT_GE(H5Fflush(opened, H5F_SCOPE_GLOBAL), 0);
      const Hid set(H5EScreate());
      Memory read(Where::kDevice, kLaterSize, 2);
      ASSERT_GE(read_async(twin.dataset(), read, set), 0) << error_text();
      EXPECT_EQ(count(set), 1u);
      twin.model_read(read.contents());
      ASSERT_GE(twin.write(Memory(where, kLaterSize, 3)), 0) << error_text();
      EXPECT_EQ(wait(set), 0u);
      read.expect_contents();
      leave(twin);
    });
  }
}

GPU_WAYS(GpuLater);
GPU_WAYS(GpuLaterOrder);

}  // namespace
}  // namespace tidelane::testing
