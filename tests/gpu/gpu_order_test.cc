// What comes after what: kernels that the program launched before a call, on which stream, and copies.
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "gpu/gpu_fixture.h"

namespace tidelane::testing {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr size_t kSize = 900 * 1024;
constexpr size_t kLarge = size_t{20} << 20;  // copied on a stream of the plugin's own
constexpr unsigned kLate = 100'000;          // microseconds
constexpr unsigned kVeryLate = 1'500'000;

class GpuOrder : public GpuTest {
 public:
  static Hid list_for(uint64_t stream) {
    Hid list(H5Pcreate(H5P_DATASET_XFER));
    EXPECT_GE(H5Pinsert2(list, "tidelane.gpu_stream", sizeof stream, &stream, nullptr, nullptr,
                         nullptr, nullptr, nullptr, nullptr),
              0)
        << error_text();
    return list;
  }
  static uint64_t number(CUstream stream) { return reinterpret_cast<uintptr_t>(stream); }
  static CUstream make_stream(unsigned flags) {
    CUstream stream = nullptr;
    EXPECT_EQ(gpu().cuStreamCreate(&stream, flags), kCudaSuccess);
    return stream;
  }
  static void write_late(Memory& memory, unsigned seed, CUstream stream, unsigned late = kLate) {
    memory.contents() = pattern(memory.size(), seed);
    EXPECT_EQ(gpu().StandInWriteLater(memory.device(), memory.contents().data(), memory.size(),
                                      stream, late),
              kCudaSuccess);
  }
  // A kernel on the stream writes what is then written to the file, and garbage where the file is then read to.
  void after(Where where, CUstream (*make)(), bool named) {
    run_and_compare([&](hid_t opened) {
      CUstream const stream = make();
      const Hid list = named ? list_for(number(stream)) : Hid();
      const hid_t given = named ? list.get() : H5P_DEFAULT;
      int dataset = 0;
      for (const auto& [size, filtered] :
           {std::pair{kSize, false}, {kSize, true}, {kLarge, false}}) {
        const Hid creation = chunked({kSize / 4});
        if (filtered) H5Pset_deflate(creation, 1);
        Twin twin(opened, "d" + std::to_string(dataset++), {size},
                  {.type = H5T_NATIVE_UCHAR, .creation = filtered ? creation.get() : H5P_DEFAULT});
        Memory memory(where, size, 1);
        write_late(memory, 2, stream);
        ASSERT_GE(twin.write(memory, H5S_ALL, H5S_ALL, H5I_INVALID_HID, given), 0) << error_text();
        write_late(memory, 3, stream);
        ASSERT_GE(twin.read(memory, H5S_ALL, H5S_ALL, H5I_INVALID_HID, given), 0) << error_text();
        EXPECT_EQ(gpu().cuStreamSynchronize(stream), kCudaSuccess);
        memory.expect_contents();
        leave(twin);
      }
    });
  }
};

TEST_P(GpuOrder, AfterTheLegacyStream) {
  after(Where::kDevice, [] { return CUstream(); }, false);
}
TEST_P(GpuOrder, AfterTheLegacyStreamFromAPool) {
  after(Where::kPooled, [] { return CUstream(); }, false);
}
TEST_P(GpuOrder, AfterTheLegacyStreamInManagedMemory) {
  after(Where::kManaged, [] { return CUstream(); }, false);
}
TEST_P(GpuOrder, AfterEveryStreamThatTheLegacyOneWaitsFor) {
  after(Where::kDevice, [] { return make_stream(0); }, false);
}
TEST_P(GpuOrder, AfterAThreadsOwnStream) {
  after(Where::kDevice, [] { return reinterpret_cast<CUstream>(kCudaPerThreadStream); }, false);
}
TEST_P(GpuOrder, AfterANamedStream) {
  after(Where::kDevice, [] { return make_stream(kCudaNonBlocking); }, true);
}
TEST_P(GpuOrder, AfterTheLegacyStreamByItsName) {
  after(Where::kDevice, [] { return reinterpret_cast<CUstream>(kCudaLegacyStream); }, true);
}
TEST_P(GpuOrder, AfterAThreadsOwnStreamByItsName) {
  after(Where::kDevice, [] { return reinterpret_cast<CUstream>(kCudaPerThreadStream); }, true);
}

TEST_P(GpuOrder, ANamedStreamIsAllThatIsWaitedFor) {
  for (const size_t size : {kSize, kLarge}) {
    run_and_compare([&](hid_t opened) {
      CUstream const stream = make_stream(kCudaNonBlocking);
      const Hid list = list_for(number(stream));
      Twin twin(opened, "d", {size}, {.type = H5T_NATIVE_UCHAR});
      Memory memory(Where::kDevice, size, 1);
      Memory busy(Where::kDevice, 100, 1);
      ASSERT_GE(twin.write(memory, H5S_ALL, H5S_ALL, H5I_INVALID_HID, list), 0)
          << error_text();  // streams are made, memory is pinned
      write_late(busy, 2, nullptr, kVeryLate);
      const auto begin = Clock::now();
      write_late(memory, 3, stream, 1000);
      ASSERT_GE(twin.write(memory, H5S_ALL, H5S_ALL, H5I_INVALID_HID, list), 0) << error_text();
      Memory read(Where::kManaged, pattern(size, 5));
      ASSERT_GE(twin.read(read, H5S_ALL, H5S_ALL, H5I_INVALID_HID, list), 0) << error_text();
      EXPECT_LT(Clock::now() - begin, 1s) << "it waited for the legacy stream";
      read.expect_contents();
      EXPECT_EQ(gpu().cuStreamSynchronize(nullptr), kCudaSuccess);
      leave(twin);
    });
  }
}

// A transfer without the property waits for the legacy stream, not for streams that do not take part in it.
TEST_P(GpuOrder, StreamsThatDoNotBlockAreNotWaitedFor) {
  for (const size_t size : {kSize, kLarge}) {
    run_and_compare([&](hid_t opened) {
      CUstream const stream = make_stream(kCudaNonBlocking);
      Twin twin(opened, "d", {size}, {.type = H5T_NATIVE_UCHAR});
      Memory memory(Where::kDevice, size, 1);
      Memory busy(Where::kDevice, 100, 1);
      ASSERT_GE(twin.write(memory), 0) << error_text();
      write_late(busy, 2, stream, kVeryLate);
      const auto begin = Clock::now();
      ASSERT_GE(twin.write(memory), 0) << error_text();
      EXPECT_LT(Clock::now() - begin, 1s);
      EXPECT_EQ(gpu().cuStreamSynchronize(stream), kCudaSuccess);
      leave(twin);
    });
  }
}

TEST_P(GpuOrder, EventSetsComeAfterStreamsToo) {
  for (const size_t size : {kSize, kLarge}) {
    run_and_compare([&](hid_t opened) {
      Twin twin(opened, "d", {size}, {.type = H5T_NATIVE_UCHAR});
      const Hid set(H5EScreate());
      Memory memory(Where::kDevice, size, 1);
      write_late(memory, 2, nullptr);
      ASSERT_GE(H5Dwrite_async(twin.dataset(), H5T_NATIVE_UCHAR, H5S_ALL, H5S_ALL, H5P_DEFAULT,
                               memory.get(), set),
                0)
          << error_text();
      twin.model_write(memory.contents());
      Memory read(Where::kDevice, size, 3);
      write_late(read, 4, nullptr);
      ASSERT_GE(H5Dread_async(twin.dataset(), H5T_NATIVE_UCHAR, H5S_ALL, H5S_ALL, H5P_DEFAULT,
                              read.get(), set),
                0)
          << error_text();
      size_t in_progress = 1;
      hbool_t failed = true;
      EXPECT_GE(H5ESwait(set, H5ES_WAIT_FOREVER, &in_progress, &failed), 0);
      EXPECT_EQ(in_progress, 0u);
      EXPECT_FALSE(failed);
      twin.model_read(read.contents());
      read.expect_contents();
      leave(twin);
    });
  }
}

// A kernel that the program launches after a read finds the data on the device; after a write it may change the memory.
TEST_P(GpuOrder, KernelsLaunchedAfterwardsComeAfterwards) {
  for (const size_t size : {kSize, kLarge}) {
    run_and_compare([&](hid_t opened) {
      Twin twin(opened, "d", {size}, {.type = H5T_NATIVE_UCHAR});
      CUstream const stream = make_stream(kCudaNonBlocking);
      gpu().StandInDelay(20'000);
      Memory memory(Where::kDevice, size, 1);
      ASSERT_GE(twin.write(memory), 0) << error_text();
      leave(twin);
      write_late(memory, 2, stream, 0);
      Memory read(Where::kDevice, size, 3);
      ASSERT_GE(twin.read(read), 0) << error_text();
      void* out = nullptr;
      EXPECT_EQ(gpu().cuMemHostAlloc(&out, size, 0), kCudaSuccess);
      gpu().StandInDelay(0);
      EXPECT_EQ(gpu().cuMemcpyDtoHAsync_v2(out, read.device(), size, stream), kCudaSuccess);
      EXPECT_EQ(gpu().cuStreamSynchronize(stream), kCudaSuccess);
      EXPECT_EQ(std::memcmp(out, read.contents().data(), size), 0);
    });
  }
}

// The stream belongs to another context than the memory: in order, or an error.
TEST_P(GpuOrder, ANamedStreamOfAnotherContext) {
  for (const size_t size : {size_t{1000}, kLarge}) {
    for (const int device : {0, 1}) {
      run_and_compare([&](hid_t opened) {
        CUstream stream = nullptr;
        {
          const InContext in(other_context(device));
          stream = make_stream(kCudaNonBlocking);
        }
        const Hid list = list_for(number(stream));
        Twin twin(opened, "d", {size}, {.type = H5T_NATIVE_UCHAR});
        ASSERT_GE(twin.write(Memory(Where::kHost, size, 1)), 0) << error_text();
        Memory memory(Where::kManaged, size, 2);  // which kernels of every context may write
        {
          const InContext in(other_context(device));
          write_late(memory, 3, stream, 50'000);
        }
        const herr_t written = twin.write(memory, H5S_ALL, H5S_ALL, H5I_INVALID_HID, list);
        if (written < 0) expect_refused(written, "d");
        {
          const InContext in(other_context(device));
          EXPECT_EQ(gpu().cuStreamSynchronize(stream), kCudaSuccess);
        }
        Memory read(Where::kDevice, size, 4);
        const herr_t result = twin.read(read, H5S_ALL, H5S_ALL, H5I_INVALID_HID, list);
        if (result < 0) expect_refused(result, "d");
        read.expect_contents();
        EXPECT_GE(twin.write(memory), 0) << error_text();
        leave(twin);
      });
    }
  }
}

TEST_P(GpuOrder, APropertyOfAnotherSizeIsNoCrash) {
  run_on_gpu([&] {
    const Hid opened = create(file());
    Twin twin(opened, "d", {1000});
    for (const size_t size : {size_t{1}, size_t{4}, size_t{64}}) {
      const Hid list(H5Pcreate(H5P_DATASET_XFER));
      Bytes value(size);
      EXPECT_GE(H5Pinsert2(list, "tidelane.gpu_stream", size, value.data(), nullptr, nullptr,
                           nullptr, nullptr, nullptr, nullptr),
                0);
      Memory memory(Where::kDevice, twin.bytes(), 1);
      const herr_t written = twin.write(memory, H5S_ALL, H5S_ALL, H5I_INVALID_HID, list);
      EXPECT_TRUE(written >= 0 || error_text().find("tidelane.gpu_stream") != std::string::npos)
          << error_text();
      EXPECT_GE(twin.write(memory), 0) << error_text();
      const Memory host(Where::kHost, twin.bytes(), 2);
      twin.write(host, H5S_ALL, H5S_ALL, H5I_INVALID_HID, list);
    }
  });
}

GPU_WAYS(GpuOrder);

}  // namespace
}  // namespace tidelane::testing
