// GPU memory where room is short or something is slow: small arenas, late copies, slow storage, many small runs, other current
// contexts, a driver that the program never started.
#include <cerrno>
#include <chrono>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "gpu/gpu_fixture.h"

namespace tidelane::testing {
namespace {

using namespace std::chrono_literals;

constexpr size_t kMiB = size_t{1} << 20;

Bytes smooth(size_t size, unsigned seed) {
  Bytes bytes(size);
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(seed + i / 64 + (i >> 16));
  return bytes;
}

class GpuPressure : public GpuTest {
 public:
  Environment with(const std::string& name, const std::string& value) const {
    Environment given = environment();
    given[name] = value;
    return given;
  }
  static void slow_storage() {
    storage::follow([](const storage::Call&) { return storage::Fault{.delay = 3ms}; });
  }
};

// Chunks that lie in one piece of what is copied, and chunks that each have some of every piece.
TEST_P(GpuPressure, ChunksAreFilteredWhileCopiesAreOnTheirWay) {
  for (const Extent& chunk : {Extent{256, 1024}, Extent{2048, 64}, Extent{300, 500}}) {
    const Summary summary = run_and_compare([&](hid_t opened) {
      gpu().StandInDelay(4'000);
      const Hid creation = chunked(chunk);
      H5Pset_shuffle(creation);
      H5Pset_deflate(creation, 1);
      Twin twin(opened, "d", {3000, 2048}, {.creation = creation});
      for (unsigned step = 0; step < 2; ++step) {
        Memory memory(Where::kDevice, smooth(twin.bytes(), step));
        ASSERT_GE(twin.write(memory), 0) << error_text();
        memory.put(smooth(twin.bytes(), 99));
        Memory read(Where::kDevice, smooth(twin.bytes(), 77));
        ASSERT_GE(twin.read(read), 0) << error_text();
        read.expect_contents();
      }
      leave(twin);
    });
    EXPECT_EQ(summary.counter("errors"), 0);
    EXPECT_GT(summary.counter("gpu_bytes_up"), 0);
  }
}

TEST_P(GpuPressure, ManyWritesOntoSlowStorageFromASmallArena) {
  for (const char* arena : {"1M", "40M"}) {
    run_and_compare(
        [&](hid_t opened) {
          slow_storage();
          std::vector<Twin> twins;
          for (unsigned i = 0; i < 12; ++i) {
            twins.emplace_back(opened, "d" + std::to_string(i), Extent{3 * kMiB + i},
                               Twin::Options{.type = H5T_NATIVE_UCHAR});
            Memory memory(i % 4 == 3 ? Where::kHost : Where::kDevice, twins[i].bytes(), i);
            ASSERT_GE(twins[i].write(memory), 0) << error_text();
            memory.put(pattern(memory.size(), 99));
          }
          for (Twin& twin : twins) {
            Memory read(Where::kDevice, twin.bytes(), 98);
            ASSERT_GE(twin.read(read), 0) << error_text();
            read.expect_contents();
            leave(twin);
          }
          storage::follow({});
        },
        with("TIDELANE_ARENA", arena));
  }
}

TEST_P(GpuPressure, OneThreadsWaitForRoomIsEndedByStorage) {
  if (!always_defers()) return;
  run_and_compare(
      [&](hid_t opened) {
        std::vector<Twin> twins;
        for (unsigned i = 0; i < 6; ++i) {
          twins.emplace_back(opened, "d" + std::to_string(i), Extent{2 * kMiB},
                             Twin::Options{.type = H5T_NATIVE_UCHAR});
        }
        EXPECT_GE(H5Fflush(opened, H5F_SCOPE_GLOBAL), 0);
        storage::hold();
        storage::release_after(200ms);
        for (unsigned i = 0; i < 6; ++i) {
          ASSERT_GE(twins[i].write(Memory(Where::kDevice, twins[i].bytes(), i)), 0) << error_text();
          leave(twins[i]);
        }
      },
      with("TIDELANE_ARENA", "4M"));
}

TEST_P(GpuPressure, OverlappingWritesWhileAllArePending) {
  run_and_compare([&](hid_t opened) {
    Twin twin(opened, "d", {600, 700});
    EXPECT_GE(H5Fflush(opened, H5F_SCOPE_GLOBAL), 0);
    if (always_defers()) storage::hold();
    std::mt19937 random(5);
    for (unsigned i = 0; i < 40; ++i) {
      const hsize_t row = random() % 500, column = random() % 500, rows = 1 + random() % 100,
                    columns = 1 + random() % 200;
      const Hid part = select(twin.space(), {row, column}, {}, {rows, columns});
      const Where where = i % 5 == 4 ? Where::kHost : i % 5 == 3 ? Where::kPooled : Where::kDevice;
      Memory memory(where, rows * columns * sizeof(int), i);
      ASSERT_GE(twin.write(memory, simple({rows, columns}), part), 0) << error_text();
      memory.put(pattern(memory.size(), 99));
    }
    Memory read(Where::kDevice, twin.bytes(), 98);
    ASSERT_GE(twin.read(read), 0) << error_text();
    read.expect_contents();
    storage::release();
    leave(twin);
  });
}

// A hundred thousand runs at one distance are some copies, not as many.
TEST_P(GpuPressure, StridesAreCopiedAsPlanes) {
  run_and_compare([&](hid_t opened) {
    constexpr hsize_t kCount = 100'000;
    Twin line(opened, "line", {kCount});
    Twin solid(opened, "solid", {40, 50, 60});
    Memory memory(Where::kDevice, (2 * kCount + 1) * sizeof(int), 1);
    Memory box(Where::kDevice, 50 * 60 * 70 * sizeof(int), 2);
    const Hid every_other = select(simple({2 * kCount + 1}), {1}, {2}, {kCount});
    const Hid inside = select(simple({50, 60, 70}), {5, 5, 5}, {}, {40, 50, 60});
    ASSERT_GE(line.write(memory, every_other), 0)
        << error_text();  // streams are made, memory is pinned
    gpu().StandInReset();
    ASSERT_GE(line.write(memory, every_other), 0) << error_text();
    ASSERT_GE(line.read(memory, every_other), 0) << error_text();
    ASSERT_GE(solid.write(box, inside), 0) << error_text();
    ASSERT_GE(solid.read(box, inside), 0) << error_text();
    EXPECT_LE(gpu().StandInCalls(nullptr), 100u);
    memory.expect_contents();
    box.expect_contents();
    leave(line);
    leave(solid);
  });
}

TEST_P(GpuPressure, ManyPointsTakeNoMinutes) {
  run_and_compare([&](hid_t opened) {
    constexpr hsize_t kCount = 20'000;
    gpu().StandInDelay(0);
    Twin twin(opened, "d", {kCount});
    Memory memory(Where::kDevice, 10 * kCount * sizeof(int), 1);
    std::vector<hsize_t> points;
    for (hsize_t i = 0; i < kCount; ++i) points.push_back(10 * ((i * 7919) % kCount) + i % 10);
    const Hid scattered = simple({10 * kCount});
    H5Sselect_elements(scattered, H5S_SELECT_SET, points.size(), points.data());
    const auto begin = std::chrono::steady_clock::now();
    ASSERT_GE(twin.write(memory, scattered), 0) << error_text();
    memory.put(pattern(memory.size(), 3));
    ASSERT_GE(twin.read(memory, scattered), 0) << error_text();
    EXPECT_LT(std::chrono::steady_clock::now() - begin, 20s);
    memory.expect_contents();
    leave(twin);
  });
}

TEST_P(GpuPressure, AnotherContextIsCurrent) {
  run_and_compare([&](hid_t opened) {
    int number = 0;
    for (const int device : {0, 1}) {
      for (const Where where :
           {Where::kDevice, Where::kPooled, Where::kManaged, Where::kOtherDevice}) {
        Memory memory(where, 300'000, 1);
        Memory read(where, 300'000, 2);
        const InContext in(other_context(device));
        Twin twin(opened, "d" + std::to_string(number++), {75'000});
        ASSERT_GE(twin.write(memory), 0) << error_text();
        ASSERT_GE(twin.read(read), 0) << error_text();
        read.expect_contents();
        CUcontext current = nullptr;
        EXPECT_EQ(gpu().cuCtxGetCurrent(&current), kCudaSuccess);
        EXPECT_EQ(current, other_context(device));
        leave(twin);
      }
    }
  });
}

// The library is there, cuInit was never called: every question is answered with an error.
TEST_P(GpuPressure, ADriverThatTheProgramNeverStarted) {
  run([&] {
    Gpu::load_only();
    const Hid opened = create(file());
    put(opened, "a", 1);
    expect_dataset(opened, "a", 1);
    const Hid creation = chunked({10'000});
    H5Pset_deflate(creation, 1);
    Twin twin(opened, "d", {100'000}, {.creation = creation});
    ASSERT_GE(twin.write(Memory(Where::kHost, smooth(twin.bytes(), 1))), 0) << error_text();
    leave(twin);
    EXPECT_EQ(gpu().StandInPinned(), 0u);
  });
  expect_natively(file(), {{"a", 1}});
}

TEST_P(GpuPressure, ReadsThatStorageFails) {
  run_and_compare([&](hid_t opened) {
    Twin twin(opened, "d", {kMiB});
    ASSERT_GE(twin.write(Memory(Where::kDevice, twin.bytes(), 1)), 0) << error_text();
    leave(twin);
  });
  run_on_gpu([&] {
    const Hid opened = open(file(), H5F_ACC_RDONLY);
    const Hid dataset(H5Dopen2(opened, "d", H5P_DEFAULT));
    Memory memory(Where::kDevice, 4 * kMiB, 2);
    storage::follow_reads([](const storage::Call&) { return storage::Fault{.error = EIO}; });
    EXPECT_LT(H5Dread(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, memory.get()), 0);
    storage::follow_reads({});
    EXPECT_GE(H5Dread(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, memory.get()), 0)
        << error_text();
    memory.contents() = pattern(4 * kMiB, 1);
    memory.expect_contents();
  });
}

// Of several rows one cannot be copied: the call fails, and what follows works.
TEST_P(GpuPressure, OneOfSeveralRowsFails) {
  run_and_compare([&](hid_t opened) {
    std::vector<Twin> twins;
    std::vector<std::unique_ptr<Memory>> memories;
    std::vector<hid_t> datasets, types(4, H5T_NATIVE_INT), spaces(4, H5S_ALL);
    std::vector<const void*> from;
    std::vector<void*> to;
    for (unsigned i = 0; i < 4; ++i) {
      twins.emplace_back(opened, "d" + std::to_string(i), Extent{50'000});
      memories.push_back(
          std::make_unique<Memory>(i == 1 ? Where::kHost : Where::kDevice, 200'000, i));
      datasets.push_back(twins[i].dataset());
      from.push_back(memories[i]->get());
      to.push_back(memories[i]->get());
    }
    for (int nth = 1; nth <= 3; ++nth) {
      for (const bool later : {false, true}) {
        const auto plan = [&](const char* function) {
          if (later) {
            gpu().StandInFailLater(function, nth, kCudaLaunchFailed, 0);
          } else {
            gpu().StandInFail(function, nth, 1, kCudaLaunchFailed);
          }
        };
        plan("cuMemcpyDtoHAsync_v2");
        EXPECT_LT(H5Dwrite_multi(4, datasets.data(), types.data(), spaces.data(), spaces.data(),
                                 H5P_DEFAULT, from.data()),
                  0);
        EXPECT_EQ(gpu().StandInFaultsLeft(), 0);
        ASSERT_GE(H5Dwrite_multi(4, datasets.data(), types.data(), spaces.data(), spaces.data(),
                                 H5P_DEFAULT, from.data()),
                  0)
            << error_text();
        plan("cuMemcpyHtoDAsync_v2");
        EXPECT_LT(H5Dread_multi(4, datasets.data(), types.data(), spaces.data(), spaces.data(),
                                H5P_DEFAULT, to.data()),
                  0);
        EXPECT_EQ(gpu().StandInFaultsLeft(), 0);
        ASSERT_GE(H5Dread_multi(4, datasets.data(), types.data(), spaces.data(), spaces.data(),
                                H5P_DEFAULT, to.data()),
                  0)
            << error_text();
      }
    }
    for (unsigned i = 0; i < 4; ++i) {
      twins[i].model_write(memories[i]->contents());
      memories[i]->expect_contents();
      leave(twins[i]);
    }
  });
}

TEST_P(GpuPressure, FilteredRowsWhoseCopyFailsLater) {
  for (int nth = 1; nth <= 6; ++nth) {
    SCOPED_TRACE(nth);
    run_and_compare([&](hid_t opened) {
      const Hid creation = chunked({256, 1024});
      H5Pset_deflate(creation, 1);
      Twin twin(opened, "d", {6000, 1024}, {.creation = creation});  // pieces of 4 MiB, six of them
      gpu().StandInDelay(3'000);
      gpu().StandInFailLater("cuMemcpyDtoHAsync_v2", nth, kCudaLaunchFailed, 0);
      const Memory memory(Where::kDevice, smooth(twin.bytes(), 1));
      const herr_t result = twin.write(memory);
      if (gpu().StandInFaultsLeft() == 0) expect_refused(result, "d");
      EXPECT_GE(twin.write(memory), 0) << error_text();
      leave(twin);
    });
  }
}

GPU_WAYS(GpuPressure);

}  // namespace
}  // namespace tidelane::testing
