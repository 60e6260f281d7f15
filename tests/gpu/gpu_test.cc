// H5Dwrite and H5Dread with pointers to GPU memory: sizes, kinds of memory, when the program has its memory again, event
// sets, several datasets in one call, threads.
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "conformance/event_set.h"
#include "gpu/gpu_fixture.h"

namespace tidelane::testing {
namespace {

using namespace std::chrono_literals;

constexpr size_t kKiB = 1024;
constexpr size_t kMiB = 1024 * kKiB;
constexpr Where kPlaces[] = {Where::kDevice,    Where::kMiddle,       Where::kManaged,
                             Where::kPooled,    Where::kOtherContext, Where::kOtherDevice,
                             Where::kPinnedHost};

class Gpus : public GpuTest {
 public:
  static Twin bytes_in(hid_t opened, const std::string& name, size_t size) {
    return {opened, name, {size}, {.type = H5T_NATIVE_UCHAR}};
  }
  // Writes from one memory and reads into another of the same kind, before and after the file is opened anew.
  void there_and_back(Where where, size_t size) {
    SCOPED_TRACE(std::string(name_of(where)) + " " + std::to_string(size));
    run_and_compare([&](hid_t opened) {
      const Memory written(where, size, 1);
      Twin twin = bytes_in(opened, "d", size);
      ASSERT_GE(twin.write(written), 0) << error_text();
      Memory read(where, size, 2);
      ASSERT_GE(twin.read(read), 0) << error_text();
      read.expect_contents();
      leave(twin);
    });
    run_on_gpu([&] {
      const Hid opened = open(file(), H5F_ACC_RDONLY);
      const Hid dataset(H5Dopen2(opened, "d", H5P_DEFAULT));
      Memory read(where, size, 3);
      ASSERT_GE(H5Dread(dataset, H5T_NATIVE_UCHAR, H5S_ALL, H5S_ALL, H5P_DEFAULT, read.get()), 0)
          << error_text();
      read.contents() = pattern(size, 1);
      read.expect_contents();
    });
  }
};

TEST_P(Gpus, EverySize) {
  for (const size_t size : {size_t{1}, kKiB, 100 * kKiB, 5 * kMiB})
    there_and_back(Where::kDevice, size);
}

TEST_P(Gpus, SizesThatPiecesDoNotDivide) {
  for (const size_t size : {4 * kMiB - 1, 4 * kMiB + 1, 9 * kMiB + 4097}) {
    there_and_back(Where::kMiddle, size);
  }
}

TEST_P(Gpus, FortyMebibytes) { there_and_back(Where::kDevice, 40 * kMiB); }

TEST_P(Gpus, EveryKindOfMemory) {
  for (const Where where : kPlaces) {
    there_and_back(where, 3000);
    there_and_back(where, 700 * kKiB + 13);
  }
}

TEST_P(Gpus, MoreThanTheArenaHolds) {
  Environment small = environment();
  small["TIDELANE_ARENA"] = "4M";
  run_and_compare(
      [&](hid_t opened) {
        for (int i = 0; i < 3; ++i) {
          Twin twin = bytes_in(opened, "d" + std::to_string(i), 10 * kMiB + 5);
          ASSERT_GE(twin.write(Memory(Where::kDevice, twin.bytes(), 10 + i)), 0) << error_text();
          Memory read(Where::kDevice, twin.bytes(), 2);
          ASSERT_GE(twin.read(read), 0) << error_text();
          read.expect_contents();
          leave(twin);
        }
      },
      small);
}

TEST_P(Gpus, SynchronousModeToo) {
  Environment given = environment();
  given["TIDELANE_MODE"] = "sync";
  run_and_compare(
      [&](hid_t opened) {
        Twin twin = bytes_in(opened, "d", kMiB);
        ASSERT_GE(twin.write(Memory(Where::kDevice, kMiB, 1)), 0) << error_text();
        Memory read(Where::kDevice, kMiB, 2);
        ASSERT_GE(twin.read(read), 0) << error_text();
        read.expect_contents();
        leave(twin);
      },
      given);
}

TEST_P(Gpus, AThreadWithoutAContext) {
  run_and_compare([&](hid_t opened) {
    const Memory written(Where::kDevice, kMiB, 1);
    Memory read(Where::kDevice, kMiB, 2);
    Twin twin = bytes_in(opened, "d", kMiB);
    std::thread([&] {
      EXPECT_EQ(gpu().StandInContexts(), 0u);
      ASSERT_GE(twin.write(written), 0) << error_text();
      ASSERT_GE(twin.read(read), 0) << error_text();
      EXPECT_EQ(gpu().StandInContexts(), 0u);
    }).join();
    read.expect_contents();
    leave(twin);
  });
}

TEST_P(Gpus, WritesReturnBeforeTheirBytesAreStoredAndTheMemoryIsTheProgramsAgain) {
  for (const size_t size : {64 * kKiB, 5 * kMiB}) {
    if (!always_defers()) return;
    const Summary summary = run_and_compare([&](hid_t opened) {
      Twin twin = bytes_in(opened, "d", size);
      EXPECT_GE(H5Fflush(opened, H5F_SCOPE_GLOBAL), 0);
      storage::hold();
      Memory memory(Where::kDevice, size, 1);
      ASSERT_GE(twin.write(memory), 0) << error_text();
      leave(twin);
      memory.put(pattern(size, 2));  // had the bytes not left the device, these would be stored
      Memory read(Where::kDevice, size, 3);
      EXPECT_GE(twin.read(read), 0) << error_text();
      read.expect_contents();
      storage::release();
    });
    EXPECT_GE(summary.counter("bytes_deferred"), static_cast<int64_t>(size));
    EXPECT_EQ(summary.counter("errors"), 0);
    EXPECT_GE(summary.counter("gpu_bytes_down"), static_cast<int64_t>(size));
  }
}

TEST_P(Gpus, WritesInEventSetsAreStoredWhenTheSetIsDone) {
  constexpr size_t kSize = 2 * kMiB;
  run_and_compare([&](hid_t opened) {
    Twin twin = bytes_in(opened, "d", kSize);
    EXPECT_GE(H5Fflush(opened, H5F_SCOPE_GLOBAL), 0);
    const Hid set(H5EScreate());
    Memory memory(Where::kDevice, kSize, 1);
    if (always_defers()) storage::hold();
    ASSERT_GE(H5Dwrite_async(twin.dataset(), H5T_NATIVE_UCHAR, H5S_ALL, H5S_ALL, H5P_DEFAULT,
                             memory.get(), set),
              0)
        << error_text();
    twin.model_write(memory.contents());
    memory.put(pattern(kSize, 2));
    if (always_defers()) {
      EXPECT_EQ(wait(set, H5ES_WAIT_NONE), 1u);
    }
    storage::release();
    EXPECT_EQ(wait(set), 0u);
    leave(twin);
  });
}

TEST_P(Gpus, ReadsInEventSetsAreOnTheDeviceWhenTheSetIsDone) {
  constexpr size_t kSize = 6 * kMiB;
  run_and_compare([&](hid_t opened) {
    Twin twin = bytes_in(opened, "d", kSize);
    ASSERT_GE(twin.write(Memory(Where::kDevice, kSize, 1)), 0) << error_text();
    leave(twin);
  });
  for (const unsigned delay : {200u, 50'000u}) {
    run_on_gpu([&] {
      const Hid opened = open(file(), H5F_ACC_RDONLY);
      const Hid dataset(H5Dopen2(opened, "d", H5P_DEFAULT));
      const Hid set(H5EScreate());
      Memory whole(Where::kDevice, kSize, 2);
      Memory other(Where::kOtherDevice, kSize, 3);
      gpu().StandInDelay(delay);
      storage::follow_reads([](const storage::Call&) { return storage::Fault{.delay = 20ms}; });
      for (Memory* memory : {&whole, &other}) {
        ASSERT_GE(H5Dread_async(dataset, H5T_NATIVE_UCHAR, H5S_ALL, H5S_ALL, H5P_DEFAULT,
                                memory->get(), set),
                  0)
            << error_text();
      }
      EXPECT_EQ(wait(set), 0u);
      for (Memory* memory : {&whole, &other}) {
        memory->contents() = pattern(kSize, 1);
        memory->expect_contents();
      }
      storage::follow_reads({});
    });
  }
}

TEST_P(Gpus, ReadsInEventSetsThatAreAskedForWhetherTheyAreDone) {
  constexpr size_t kSize = 4 * kMiB;
  run_and_compare([&](hid_t opened) {
    Twin twin = bytes_in(opened, "d", kSize);
    ASSERT_GE(twin.write(Memory(Where::kDevice, kSize, 1)), 0) << error_text();
    leave(twin);
  });
  run_on_gpu([&] {
    const Hid opened = open(file(), H5F_ACC_RDONLY);
    const Hid dataset(H5Dopen2(opened, "d", H5P_DEFAULT));
    const Hid set(H5EScreate());
    Memory memory(Where::kDevice, kSize, 2);
    gpu().StandInDelay(20'000);
    storage::follow_reads([](const storage::Call&) { return storage::Fault{.delay = 50ms}; });
    ASSERT_GE(
        H5Dread_async(dataset, H5T_NATIVE_UCHAR, H5S_ALL, H5S_ALL, H5P_DEFAULT, memory.get(), set),
        0)
        << error_text();
    for (int i = 0; i < 5000 && wait(set, H5ES_WAIT_NONE) != 0; ++i)
      std::this_thread::sleep_for(1ms);
    EXPECT_EQ(wait(set, H5ES_WAIT_NONE), 0u);
    memory.contents() = pattern(kSize, 1);
    memory.expect_contents();
    storage::follow_reads({});
  });
}

TEST_P(Gpus, ExitWithoutAWaitOrAClose) {
  constexpr size_t kSize = 3 * kMiB;
  run_on_gpu([&] {
    const hid_t opened = create(file()).release();
    Twin twin = bytes_in(opened, "d", kSize);
    const hid_t set = H5EScreate();
    const Memory memory(Where::kDevice, kSize, 1);
    EXPECT_GE(H5Dwrite_async(twin.dataset(), H5T_NATIVE_UCHAR, H5S_ALL, H5S_ALL, H5P_DEFAULT,
                             memory.get(), set),
              0)
        << error_text();
    twin.model_write(pattern(kSize, 1));
    leave(twin);
    auto* const read = new Memory(Where::kDevice, kSize, 2);
    EXPECT_GE(H5Dread_async(twin.dataset(), H5T_NATIVE_UCHAR, H5S_ALL, H5S_ALL, H5P_DEFAULT,
                            read->get(), set),
              0)
        << error_text();
  });
  compare_natively();
}

TEST_P(Gpus, SeveralDatasetsInOneCallFromHostAndDevice) {
  constexpr size_t kSize = 300 * kKiB;
  const std::vector<Where> places{Where::kHost,   Where::kDevice,      Where::kManaged,
                                  Where::kPooled, Where::kOtherDevice, Where::kHost};
  for (const bool filtered : {false, true}) {
    run_and_compare([&](hid_t opened) {
      Hid creation = chunked({kSize / 8});
      H5Pset_deflate(creation, 1);
      std::vector<Twin> twins;
      std::vector<std::unique_ptr<Memory>> memories;
      std::vector<hid_t> datasets, types, spaces;
      std::vector<const void*> from;
      std::vector<void*> to;
      for (size_t i = 0; i < places.size(); ++i) {
        twins.emplace_back(
            opened, "d" + std::to_string(i), Extent{kSize},
            Twin::Options{.type = H5T_NATIVE_UCHAR,
                          .creation = filtered && i % 3 != 2 ? creation.get() : H5P_DEFAULT});
        memories.push_back(std::make_unique<Memory>(places[i], kSize, static_cast<unsigned>(i)));
        datasets.push_back(twins[i].dataset());
        types.push_back(H5T_NATIVE_UCHAR);
        spaces.push_back(H5S_ALL);
        from.push_back(memories[i]->get());
      }
      const size_t count = places.size();
      for (size_t i = 0; i < count; ++i) to.push_back(memories[count - 1 - i]->get());
      ASSERT_GE(H5Dwrite_multi(count, datasets.data(), types.data(), spaces.data(), spaces.data(),
                               H5P_DEFAULT, from.data()),
                0)
          << error_text();
      for (size_t i = 0; i < count; ++i) twins[i].model_write(memories[i]->contents());
      ASSERT_GE(H5Dread_multi(count, datasets.data(), types.data(), spaces.data(), spaces.data(),
                              H5P_DEFAULT, to.data()),
                0)
          << error_text();
      for (size_t i = 0; i < count; ++i) {
        Memory& read = *memories[count - 1 - i];
        twins[i].model_read(read.contents());
      }
      for (const auto& memory : memories) memory->expect_contents();
      for (const Twin& twin : twins) leave(twin);
    });
  }
}

TEST_P(Gpus, HostAndDeviceInTurnWithoutClosing) {
  constexpr size_t kSize = 200 * kKiB;
  run_and_compare([&](hid_t opened) {
    Twin twin = bytes_in(opened, "d", kSize);
    for (unsigned i = 0; i < 12; ++i) {
      const Where where = i % 2 == 0 ? Where::kHost : kPlaces[i / 2];
      Memory memory(where, kSize, i);
      ASSERT_GE(twin.write(memory), 0) << error_text();
      Memory read(i % 3 == 0 ? Where::kHost : Where::kDevice, kSize, 100);
      ASSERT_GE(twin.read(read), 0) << error_text();
      read.expect_contents();
    }
    leave(twin);
  });
}

TEST_P(Gpus, SeveralThreads) {
  constexpr size_t kSize = 600 * kKiB;
  constexpr unsigned kThreads = 4;
  run_and_compare([&](hid_t opened) {
    std::vector<Twin> twins;
    for (unsigned i = 0; i < kThreads; ++i)
      twins.push_back(bytes_in(opened, "d" + std::to_string(i), kSize));
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < kThreads; ++i) {
      threads.emplace_back([&, i] {
        CUcontext context = nullptr;
        EXPECT_EQ(gpu().cuDevicePrimaryCtxRetain(&context, 0), kCudaSuccess);
        EXPECT_EQ(gpu().cuCtxSetCurrent(context), kCudaSuccess);
        const Where where = kPlaces[i];
        for (unsigned step = 0; step < 8; ++step) {
          ASSERT_GE(twins[i].write(Memory(where, kSize, step)), 0) << error_text();
          Memory read(where, kSize, 50);
          ASSERT_GE(twins[i].read(read), 0) << error_text();
          read.expect_contents();
        }
        EXPECT_EQ(gpu().StandInContexts(), 1u);
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (const Twin& twin : twins) leave(twin);
  });
}

TEST_P(Gpus, CopiesUsePinnedMemory) {
  if (!always_defers()) return;
  run_and_compare([&](hid_t opened) {
    Twin twin = bytes_in(opened, "d", 8 * kMiB);
    ASSERT_GE(twin.write(Memory(Where::kDevice, twin.bytes(), 1)), 0) << error_text();
    Memory read(Where::kDevice, twin.bytes(), 2);
    ASSERT_GE(twin.read(read), 0) << error_text();
    read.expect_contents();
    EXPECT_EQ(gpu().StandInPageable(), 0u);
    EXPECT_GT(gpu().StandInPinned(), 0u);
    leave(twin);
  });
}

// As after cudaDeviceReset: the context's handle is the same, what was made in it is gone.
TEST_P(Gpus, TheDeviceIsResetBetweenTwoWrites) {
  for (const size_t size : {kMiB, 20 * kMiB}) {
    run_and_compare([&](hid_t opened) {
      for (unsigned i = 0; i < 3; ++i) {
        Twin twin = bytes_in(opened, "d" + std::to_string(i), size);
        auto* const memory = new Memory(Where::kDevice, size, i);  // ends with its context
        ASSERT_GE(twin.write(*memory), 0) << error_text();
        leave(twin);
        EXPECT_EQ(gpu().cuDevicePrimaryCtxReset_v2(0), kCudaSuccess);
      }
    });
  }
}

TEST_P(Gpus, AContextEndsBetweenTwoWrites) {
  for (const size_t size : {kMiB, 20 * kMiB}) {
    run_and_compare([&](hid_t opened) {
      for (unsigned i = 0; i < 3; ++i) {
        Twin twin = bytes_in(opened, "d" + std::to_string(i), size);
        CUcontext context = nullptr;
        EXPECT_EQ(gpu().cuCtxCreate_v2(&context, 0, 0), kCudaSuccess);
        {
          const Memory memory(Where::kDevice, size, i);
          ASSERT_GE(twin.write(memory), 0) << error_text();
        }
        EXPECT_EQ(gpu().cuCtxDestroy_v2(context), kCudaSuccess);
        leave(twin);
      }
    });
  }
}

GPU_WAYS(Gpus);

}  // namespace
}  // namespace tidelane::testing
