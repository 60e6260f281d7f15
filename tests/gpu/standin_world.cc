// Counters, faults, misuse and the end of the process: see standin_world.h.
#include "gpu/standin_world.h"

#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace tidelane::standin {
namespace {

constexpr std::chrono::microseconds kDelay{200};

struct Fault {
  std::string function;
  int calls_before = 0;
  int times = 1;
  bool at_call = true;
  LateFault late;
  CUresult error = kCudaSuccess;
};

struct World {
  std::mutex mutex;
  pid_t process = getpid();
  std::atomic<bool> initialized = false;
  std::atomic<bool> ended = false;
  std::atomic<bool> refuses_in_children = false;
  std::chrono::microseconds delay = kDelay;
  std::map<std::string, uint64_t> calls;
  std::vector<Fault> faults;
  int copies_before_drop = 0;  // 0: none is dropped
  std::atomic<uint64_t> pageable = 0;
  uint64_t misuses = 0;
  std::string last_misuse;
};

// Never destroyed: threads of streams live until the process ends.
World& world() {
  static auto* const instance = new World;
  return *instance;
}

thread_local LateFault late_fault;
thread_local int host_functions = 0;

// As with the real library, calls in exit handlers that were registered before it are refused.
__attribute__((constructor)) void begin() {
  world();
  std::atexit([] { world().ended = true; });
}

CUresult planned_failure(const std::string& function) {
  for (auto fault = world().faults.begin(); fault != world().faults.end(); ++fault) {
    if (fault->function != function) continue;
    if (fault->calls_before-- > 0) continue;
    const CUresult error = fault->at_call ? fault->error : kCudaSuccess;
    if (!fault->at_call) late_fault = fault->late;
    if (--fault->times <= 0) {
      world().faults.erase(fault);
    } else {
      fault->calls_before = 0;
    }
    return error;
  }
  return kCudaSuccess;
}

bool needs_no_start(const char* function) {
  for (const char* name : {"cuInit", "cuDriverGetVersion", "cuGetErrorName", "cuGetErrorString",
                           "cuGetProcAddress_v2"}) {
    if (std::strcmp(name, function) == 0) return true;
  }
  return false;
}

}  // namespace

CUresult enter(const char* function) {
  if (getpid() != world().process) {
    if (world().refuses_in_children)
      return needs_no_start(function) ? kCudaSuccess : kCudaNotInitialized;
    std::fprintf(stderr, "stand-in for CUDA: %s in a child of fork()\n", function);
    std::abort();
  }
  if (host_functions > 0) {
    return misuse(std::string(function) + " in a host function", kCudaNotPermitted);
  }
  const std::lock_guard lock(world().mutex);
  late_fault = {};
  ++world().calls[function];
  if (needs_no_start(function)) return planned_failure(function);
  if (world().ended) return kCudaDeinitialized;
  if (!world().initialized) return kCudaNotInitialized;
  return planned_failure(function);
}

LateFault take_late_fault() {
  const std::lock_guard lock(world().mutex);
  LateFault fault = late_fault;
  late_fault = {};
  if (world().copies_before_drop > 0 && --world().copies_before_drop == 0) {
    fault.dropped = true;
    if (std::getenv("STANDIN_TRACE") != nullptr)
      std::fprintf(stderr, "stand-in for CUDA: a copy dropped\n");
  }
  return fault;
}

void initialize() { world().initialized = true; }

std::chrono::microseconds delay() {
  const std::lock_guard lock(world().mutex);
  return world().delay;
}

void count_pageable() { ++world().pageable; }

CUresult misuse(const std::string& what, CUresult error) {
  const std::lock_guard lock(world().mutex);
  ++world().misuses;
  world().last_misuse = what;
  std::fprintf(stderr, "stand-in for CUDA: misuse: %s\n", what.c_str());
  return error;
}

InHostFunction::InHostFunction() { ++host_functions; }
InHostFunction::~InHostFunction() { --host_functions; }

}  // namespace tidelane::standin

using tidelane::standin::kDelay;
using tidelane::standin::world;

extern "C" {

STANDIN_EXPORT void StandInDelay(unsigned microseconds) {
  const std::lock_guard lock(world().mutex);
  world().delay = std::chrono::microseconds(microseconds);
}

STANDIN_EXPORT void StandInRefuseInChildren() { world().refuses_in_children = true; }

STANDIN_EXPORT void StandInFail(const char* function, int nth, int times, CUresult error) {
  const std::lock_guard lock(world().mutex);
  world().faults.push_back({function, nth - 1, times, true, {}, error});
}

STANDIN_EXPORT void StandInFailLater(const char* function, int nth, CUresult error, int sticky) {
  const std::lock_guard lock(world().mutex);
  world().faults.push_back({function, nth - 1, 1, false, {error, sticky != 0, false}, error});
}

STANDIN_EXPORT void StandInDropCopy(int nth) {
  const std::lock_guard lock(world().mutex);
  world().copies_before_drop = nth;
}

STANDIN_EXPORT int StandInFaultsLeft() {
  const std::lock_guard lock(world().mutex);
  const bool left = !world().faults.empty() || world().copies_before_drop > 0;
  world().faults.clear();
  world().copies_before_drop = 0;
  return left ? 1 : 0;
}

STANDIN_EXPORT uint64_t StandInCalls(const char* function) {
  const std::lock_guard lock(world().mutex);
  uint64_t calls = 0;
  for (const auto& [name, count] : world().calls) {
    if (function == nullptr || name == function) calls += count;
  }
  return calls;
}

STANDIN_EXPORT size_t StandInCounters(char* text, size_t size) {
  const std::lock_guard lock(world().mutex);
  std::string all;
  for (const auto& [name, count] : world().calls) all += name + " " + std::to_string(count) + "\n";
  if (size != 0) std::snprintf(text, size, "%s", all.c_str());
  return all.size();
}

STANDIN_EXPORT uint64_t StandInPageable() { return world().pageable; }

STANDIN_EXPORT uint64_t StandInMisuses() {
  const std::lock_guard lock(world().mutex);
  return world().misuses;
}

STANDIN_EXPORT const char* StandInLastMisuse() { return world().last_misuse.c_str(); }

STANDIN_EXPORT void StandInReset() {
  const std::lock_guard lock(world().mutex);
  world().delay = kDelay;
  world().calls.clear();
  world().faults.clear();
  world().copies_before_drop = 0;
  world().pageable = 0;
  world().misuses = 0;
  world().last_misuse.clear();
}

}  // extern "C"
