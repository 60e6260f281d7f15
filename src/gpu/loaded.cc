#include "gpu/loaded.h"

#include <link.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <new>
#include <string>
#include <string_view>

#include "gpu/cuda.h"
#include "gpu/hip.h"
#include "gpu/no_device.h"

namespace tidelane::gpu {

std::atomic<bool> internal::loaded{false};

namespace {

struct Kind {
  std::string_view file;  // how the library's file name begins
  Runtime* (*open)(const char* path);
};
constexpr std::array<Kind, 2> kKinds = {{{"libcuda.so", OpenCuda}, {"libamdhip64.so", OpenHip}}};

constinit std::array<std::atomic<Runtime*>, kKinds.size()> runtimes{};
constinit std::atomic<unsigned long long> libraries_seen{0};
constinit std::atomic<bool> forked{false};

struct Looking {
  unsigned long long seen = 0;
  unsigned long long loaded = 0;
  std::array<std::string, kKinds.size()> paths{};
};

// The loader says how many libraries were ever loaded: where it is as many as last time, the first answer ends the walk.
int LookAt(dl_phdr_info* info, size_t, void* data) {
  auto& looking = *static_cast<Looking*>(data);
  looking.loaded = info->dlpi_adds;
  if (looking.loaded == looking.seen) return 1;
  const std::string_view path = info->dlpi_name == nullptr ? "" : info->dlpi_name;
  const std::string_view file = path.substr(path.rfind('/') + 1);
  try {  // the loader's frames between here and there are C's
    for (size_t i = 0; i < kKinds.size(); ++i) {
      if (file.starts_with(kKinds[i].file)) looking.paths[i] = path;
    }
  } catch (const std::bad_alloc&) {
    looking.loaded = looking.seen;  // to be looked at again
    return 1;
  }
  return 0;
}

bool IsReadable(const void* pointer) {
  std::byte byte{};
  const iovec to{&byte, 1};
  const iovec from{const_cast<void*>(pointer), 1};
  return process_vm_readv(getpid(), &to, 1, &from, 1, 0) == 1 || errno != EFAULT;
}

}  // namespace

void Look() {
  if (forked.load(std::memory_order_relaxed)) return;
  Looking looking{.seen = libraries_seen.load(std::memory_order_relaxed)};
  dl_iterate_phdr(LookAt, &looking);
  if (looking.loaded == looking.seen) return;
  for (size_t i = 0; i < kKinds.size(); ++i) {
    if (looking.paths[i].empty() || runtimes[i].load() != nullptr) continue;
    Runtime* const runtime = kKinds[i].open(looking.paths[i].c_str());
    if (runtime == nullptr) continue;
    Runtime* none = nullptr;
    if (!runtimes[i].compare_exchange_strong(none, runtime)) delete runtime;
    internal::loaded.store(true, std::memory_order_relaxed);
  }
  libraries_seen.store(looking.loaded, std::memory_order_relaxed);
}

std::optional<Memory> Find(const void* pointer) {
  if (pointer == nullptr) return std::nullopt;
  if (forked.load(std::memory_order_relaxed)) {
    static NoDevice none;
    if (IsReadable(pointer)) return std::nullopt;
    return Memory{.runtime = &none};
  }
  for (const auto& known : runtimes) {
    Memory memory{.runtime = known.load(std::memory_order_acquire)};
    if (memory.runtime == nullptr) continue;
    const Runtime::Found found = memory.runtime->Find(pointer, memory.context);
    if (found == Runtime::Found::kDevice) return memory;
    // A driver that has failed, or was started by a parent of this process, says nothing of any pointer: those of the host go on working.
    if (found == Runtime::Found::kUnknown && !IsReadable(pointer)) return memory;
  }
  return std::nullopt;
}

bool IsForked() { return forked.load(std::memory_order_relaxed); }

void ForgetAfterFork() { forked.store(true, std::memory_order_relaxed); }

}  // namespace tidelane::gpu
