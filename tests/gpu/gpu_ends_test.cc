// Processes and GPU memory: forks, programs that use no GPU, and the stand-in's own promises.
#include <dlfcn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <fstream>
#include <string>
#include <vector>

#include "gpu/gpu_fixture.h"

namespace tidelane::testing {
namespace {

constexpr size_t kCount = 200'000;

class GpuEnds : public GpuTest {
 public:
  // How a process ends that does this.
  int status_of(const std::function<void()>& scenario) {
    Child child(environment(), [&] {
      const rlimit no_core{0, 0};
      setrlimit(RLIMIT_CORE, &no_core);
      Gpu::load();
      scenario();
    });
    return child.wait();
  }
  // Forks while device writes are pending; the child does as told and ends.
  void forks(const std::function<bool()>& in_child) {
    run_and_compare([&](hid_t opened) {
      Twin before(opened, "before", {kCount});
      Twin after(opened, "after", {kCount});
      ASSERT_GE(before.write(Memory(Where::kDevice, before.bytes(), 1)), 0) << error_text();
      const pid_t forked = fork();
      if (forked == 0) _exit(in_child() ? 0 : 1);
      ASSERT_GE(after.write(Memory(Where::kDevice, after.bytes(), 2)), 0) << error_text();
      int status = -1;
      EXPECT_EQ(waitpid(forked, &status, 0), forked);
      EXPECT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
      EXPECT_EQ(WEXITSTATUS(status), 0);
      Memory read(Where::kDevice, before.bytes(), 3);
      ASSERT_GE(before.read(read), 0) << error_text();
      read.expect_contents();
      leave(before);
      leave(after);
    });
  }
};

TEST_P(GpuEnds, AForkedProcessWritesFromTheHost) {
  const std::string childs = in_folder("child.h5");
  forks([&] {
    Hid own = create(childs);
    put(own, "child", 2);
    Hid dataset(H5Dopen2(own, "child", H5P_DEFAULT));
    std::vector<int> read(kElements);
    const bool right =
        H5Dread(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, read.data()) >= 0 &&
        read == elements(2, kElements);
    dataset = Hid();
    return H5Fclose(own.release()) >= 0 && right;
  });
  expect_natively(childs, {{"child", 2}});
}

// It has the addresses, and no device.
TEST_P(GpuEnds, AForkedProcessWithPointersOfDevicesIsToldSo) {
  const std::string childs = in_folder("child.h5");
  Memory* devices = nullptr;
  const auto child = [&] {
    Hid own = create(childs);
    const Hid filtered = chunked({kCount / 4});
    H5Pset_deflate(filtered, 1);
    for (const bool chunks : {false, true}) {
      Hid dataset(H5Dcreate2(own, chunks ? "chunks" : "line", H5T_NATIVE_INT, simple({kCount}),
                             H5P_DEFAULT, chunks ? filtered.get() : H5P_DEFAULT, H5P_DEFAULT));
      std::vector<int> values(kCount, 7);
      EXPECT_GE(H5Dwrite(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), 0);
      expect_refused(
          H5Dwrite(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, devices->get()),
          chunks ? "/chunks" : "/line");
      expect_refused(
          H5Dread(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, devices->get()),
          chunks ? "/chunks" : "/line");
      EXPECT_GE(H5Dread(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), 0);
      EXPECT_EQ(values, std::vector<int>(kCount, 7));
    }
    const Hid attribute(
        H5Acreate2(own, "a", H5T_NATIVE_INT, simple({4}), H5P_DEFAULT, H5P_DEFAULT));
    expect_refused(H5Awrite(attribute, H5T_NATIVE_INT, devices->get()), "an attribute");
    return H5Fclose(own.release()) >= 0 && !::testing::Test::HasFailure();
  };
  for (const bool parent_has_file : {true, false}) {
    run_on_gpu([&] {
      const Hid parents = parent_has_file ? create(file()) : Hid();
      // Without one the plugin comes only in the child, and nobody but the driver knows that another process has started it.
      if (!parent_has_file) gpu().StandInRefuseInChildren();
      Memory memory(Where::kDevice, kCount * sizeof(int), 1);
      devices = &memory;
      const pid_t forked = fork();
      if (forked == 0) _exit(child() ? 0 : 1);
      int status = -1;
      EXPECT_EQ(waitpid(forked, &status, 0), forked);
      EXPECT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
      EXPECT_EQ(WEXITSTATUS(status), 0);
    });
  }
}

TEST_P(GpuEnds, AForkedProcessEndsAtOnce) {
  forks([] { return true; });
}

// What storage has refused is the child's, too, which has nothing of the memory that devices copy to.
TEST_P(GpuEnds, AForkedProcessReadsWhatStorageHasRefused) {
  // Only there the flush says that all from before is stored, so that the write under test is the first to be refused.
  if (!always_defers() || GetParam().flush_deferred()) return;
  run_and_compare([&](hid_t opened) {
    Twin twin(opened, "d", {kCount});
    ASSERT_GE(twin.write(Memory(Where::kDevice, twin.bytes(), 1)), 0) << error_text();
    ASSERT_GE(H5Fflush(opened, H5F_SCOPE_GLOBAL), 0);
    storage::fail_with(EIO);
    ASSERT_GE(twin.write(Memory(Where::kDevice, twin.bytes(), 2)), 0) << error_text();
    const pid_t forked = fork();
    if (forked == 0) {
      Memory read(Where::kHost, twin.bytes(), 3);
      const bool right = twin.read(read) >= 0;
      read.expect_contents();
      _exit(right && !::testing::Test::HasFailure() ? 0 : 1);
    }
    int status = -1;
    EXPECT_EQ(waitpid(forked, &status, 0), forked);
    EXPECT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
    EXPECT_EQ(WEXITSTATUS(status), 0);
    storage::fail_with(0);
    EXPECT_GE(H5Fflush(opened, H5F_SCOPE_GLOBAL), 0) << error_text();
    leave(twin);
  });
}

// As subprocess and multiprocessing do: the child runs the library's exit handler, too.
TEST_P(GpuEnds, AForkedProcessExits) {
  run_and_compare([&](hid_t opened) {
    Twin twin(opened, "d", {kCount});
    ASSERT_GE(twin.write(Memory(Where::kDevice, twin.bytes(), 1)), 0) << error_text();
    const pid_t forked = fork();
    if (forked == 0) {
      H5close();
      _exit(0);
    }
    int status = -1;
    EXPECT_EQ(waitpid(forked, &status, 0), forked);
    EXPECT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
    ASSERT_GE(twin.write(Memory(Where::kDevice, twin.bytes(), 2)), 0) << error_text();
    leave(twin);
  });
}

// Only whose memory a pointer is may be asked.
TEST_P(GpuEnds, AProgramThatUsesNoGpuIsLeftAlone) {
  run_and_compare([&](hid_t opened) {
    gpu().StandInReset();
    const Hid creation = chunked({kCount / 4});
    H5Pset_deflate(creation, 1);
    Twin line(opened, "line", {kCount});
    Twin filtered(opened, "filtered", {kCount}, {.creation = creation});
    for (Twin* twin : {&line, &filtered}) {
      ASSERT_GE(twin->write(Memory(Where::kHost, Bytes(twin->bytes(), 'a'))), 0) << error_text();
      Memory read(Where::kHost, twin->bytes(), 2);
      ASSERT_GE(twin->read(read), 0) << error_text();
      read.expect_contents();
      const Hid part = select(twin->space(), {1}, {3}, {1000});
      ASSERT_GE(twin->write(Memory(Where::kHost, Bytes(twin->bytes(), 'b')), part, part), 0)
          << error_text();
      leave(*twin);
    }
    put(opened, "more", 1);
    EXPECT_GE(H5Fflush(opened, H5F_SCOPE_GLOBAL), 0);
    EXPECT_EQ(gpu().StandInCalls(nullptr), gpu().StandInCalls("cuPointerGetAttributes"));
    EXPECT_LE(gpu().StandInCalls(nullptr), 20u) << "more than once for each buffer";
    EXPECT_EQ(gpu().StandInPinned(), 0u);
  });
}

// Whoever loads the driver is the program.
TEST_P(GpuEnds, NoDriverIsLoadedForAProgramThatHasNone) {
  run([&] {
    const Hid opened = create(file());
    put(opened, "d", 1);
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
      EXPECT_EQ(line.find("libcuda"), std::string::npos) << line;
    }
  });
}

// Loaded after the file was opened, before the dataset is.
TEST_P(GpuEnds, TheDriverComesAfterTheFile) {
  run([&] {
    const Hid opened = create(file());
    put(opened, "first", 1);
    Gpu::load();
    Twin twin(opened, "d", {kCount});
    ASSERT_GE(twin.write(Memory(Where::kDevice, twin.bytes(), 1)), 0) << error_text();
    leave(twin);
  });
  compare_natively();
}

// Of a process that touched what is not there: by the signal, or by the sanitizer's runtime, which catches it where it is loaded.
bool crashed(int status) {
  if (dlsym(RTLD_DEFAULT, "__asan_init") != nullptr)
    return WIFEXITED(status) && WEXITSTATUS(status) != 0;
  return WTERMSIG(status) == SIGSEGV;
}

// What the other tests rely on.
TEST_P(GpuEnds, TheStandInKeepsItsPromises) {
  EXPECT_TRUE(crashed(status_of([] {
    const Memory memory(Where::kDevice, 100, 1);
    *static_cast<volatile char*>(memory.get()) = 1;
  })));
  EXPECT_TRUE(crashed(status_of([] {
    const void* kept = Memory(Where::kDevice, 100, 1).get();
    std::ofstream("/dev/null") << *static_cast<const volatile char*>(kept);
  })));
  const int forked = status_of([] {
    const pid_t child = fork();
    if (child == 0) {
      CUcontext context = nullptr;
      gpu().cuCtxGetCurrent(&context);
      _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(WTERMSIG(status), SIGABRT);
  });
  EXPECT_EQ(forked, 0);
}

TEST_P(GpuEnds, TheStandInsStreamsAreLateAndInOrder) {
  run([&] {
    Gpu::load();
    gpu().StandInDelay(20'000);
    Memory memory(Where::kDevice, 4096, 1);
    void* out = nullptr;
    ASSERT_EQ(gpu().cuMemHostAlloc(&out, 4096, 0), kCudaSuccess);
    std::memset(out, 0, 4096);
    CUstream own = nullptr;
    CUevent event = nullptr;
    ASSERT_EQ(gpu().cuStreamCreate(&own, kCudaNonBlocking), kCudaSuccess);
    ASSERT_EQ(gpu().cuEventCreate(&event, kCudaNoTiming), kCudaSuccess);
    ASSERT_EQ(gpu().cuMemcpyDtoHAsync_v2(out, memory.device(), 4096, own), kCudaSuccess);
    ASSERT_EQ(gpu().cuEventRecord(event, own), kCudaSuccess);
    EXPECT_EQ(gpu().cuEventQuery(event), kCudaNotReady);
    EXPECT_EQ(gpu().cuStreamQuery(own), kCudaNotReady);
    EXPECT_EQ(*static_cast<char*>(out), '\0');
    EXPECT_EQ(gpu().cuEventSynchronize(event), kCudaSuccess);
    EXPECT_EQ(std::memcmp(out, memory.contents().data(), 4096), 0);
    EXPECT_EQ(gpu().cuEventQuery(event), kCudaSuccess);
    // Memory that is not pinned, beyond the allocation, over two pinned ranges.
    Bytes pageable(4096);
    EXPECT_EQ(gpu().cuMemcpyDtoHAsync_v2(pageable.data(), memory.device(), 4096, own),
              kCudaSuccess);
    EXPECT_EQ(pageable, memory.contents());
    EXPECT_EQ(gpu().StandInPageable(), 1u);
    EXPECT_EQ(gpu().cuMemcpyDtoHAsync_v2(out, memory.device() + 1, 4096, own), kCudaInvalidValue);
    char* const two = static_cast<char*>(std::aligned_alloc(4096, 8192));
    EXPECT_EQ(gpu().cuMemHostRegister_v2(two, 4096, kCudaPortable), kCudaSuccess);
    EXPECT_EQ(gpu().cuMemHostRegister_v2(two + 4096, 4096, kCudaPortable), kCudaSuccess);
    EXPECT_EQ(gpu().cuMemHostRegister_v2(two, 4096, kCudaPortable), kCudaAlreadyRegistered);
    EXPECT_EQ(gpu().cuMemcpyDtoHAsync_v2(two + 2048, memory.device(), 4096, own),
              kCudaInvalidValue);
    EXPECT_EQ(gpu().cuMemHostUnregister(two), kCudaSuccess);
    EXPECT_EQ(gpu().cuMemHostUnregister(two), kCudaNotRegistered);
    // Errors of copies are told to who waits; the context of another device is none for this stream.
    gpu().StandInFailLater("cuMemcpyDtoHAsync_v2", 1, kCudaLaunchFailed, 0);
    EXPECT_EQ(gpu().cuMemcpyDtoHAsync_v2(out, memory.device(), 4096, own), kCudaSuccess);
    EXPECT_EQ(gpu().cuEventRecord(event, own), kCudaSuccess);
    EXPECT_EQ(gpu().cuEventSynchronize(event), kCudaLaunchFailed);
    EXPECT_EQ(gpu().cuStreamSynchronize(own), kCudaSuccess);
    EXPECT_EQ(gpu().StandInMisuses(), 0u);
    {
      const InContext in(other_context(1));
      EXPECT_EQ(gpu().cuMemcpyDtoHAsync_v2(out, memory.device(), 4096, own), kCudaInvalidContext);
    }
    CUcontext current = nullptr;
    EXPECT_EQ(gpu().cuCtxPopCurrent_v2(&current), kCudaSuccess);
    EXPECT_EQ(gpu().cuMemcpyDtoHAsync_v2(out, memory.device(), 4096, own), kCudaInvalidContext);
    EXPECT_EQ(gpu().cuCtxPushCurrent_v2(current), kCudaSuccess);
  });
}

TEST_P(GpuEnds, TheStandInKnowsItsMemory) {
  run([&] {
    Gpu::load();
    const auto type_of = [](const void* pointer, CUcontext* context, unsigned* managed) {
      unsigned type = 99;
      int asked[] = {kCudaMemoryTypeOf, kCudaContextOf, kCudaIsManaged};
      void* answers[] = {&type, context, managed};
      EXPECT_EQ(
          gpu().cuPointerGetAttributes(3, asked, answers, reinterpret_cast<CUdeviceptr>(pointer)),
          kCudaSuccess);
      return type;
    };
    CUcontext current = nullptr;
    gpu().cuCtxGetCurrent(&current);
    CUcontext context = nullptr;
    unsigned managed = 0;
    const Memory device(Where::kMiddle, 100, 1), pooled(Where::kPooled, 100, 1),
        unified(Where::kManaged, 100, 1), pinned(Where::kPinnedHost, 100, 1),
        host(Where::kHost, 100, 1);
    EXPECT_EQ(type_of(device.get(), &context, &managed), unsigned{kCudaDevice});
    EXPECT_EQ(context, current);
    EXPECT_EQ(type_of(pooled.get(), &context, &managed), unsigned{kCudaDevice});
    EXPECT_EQ(context, nullptr);
    EXPECT_EQ(type_of(unified.get(), &context, &managed), unsigned{kCudaDevice});
    EXPECT_EQ(managed, 1u);
    EXPECT_EQ(type_of(pinned.get(), &context, &managed), unsigned{kCudaHost});
    EXPECT_EQ(type_of(host.get(), &context, &managed), 0u);
    EXPECT_EQ(gpu().cuPointerGetAttribute(&managed, kCudaMemoryTypeOf, host.device()),
              kCudaInvalidValue);
  });
}

GPU_WAYS(GpuEnds);

}  // namespace
}  // namespace tidelane::testing
