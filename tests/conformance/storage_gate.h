// Storage that a test can stop, count and break.
//
// The plugin writes with pwritev; this program exports a pwritev of its own, which the dynamic linker
// prefers. So "while bytes are pending" is a fact that a test creates, not a race that it hopes for.
// Native HDF5 writes with pwrite and never comes to the gate. Plans of faults see every call that changes a
// file: pwrite, ftruncate and close as well, native HDF5's included.
//
// Invariant: a closed gate lets no byte through; an open one, without a plan, is libc.
// Thread safety: all functions may be called from any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

namespace tidelane::testing::storage {

// From now on writes wait, once `admitted` more of them have passed.
void hold(int admitted = 0);
void release();
// For calls that must wait for the drain: somebody else has to open the gate meanwhile.
void release_after(std::chrono::milliseconds delay);
// Waits until a write stands before the gate: false if none comes within some seconds.
bool wait_held();
// Writes fail with this errno; 0: they succeed again.
void fail_with(int error);
// Waits until a write has failed so, and until the thread that made it has noted that and sleeps: false if none does within
// some seconds.
bool wait_failed();

enum class Kind { kWrite, kTruncate, kClose, kRead };

struct Call {
  Kind kind = Kind::kWrite;
  std::string path;
  uint64_t address = 0;
  uint64_t size = 0;
};

// What becomes of a call. By default it is made, and made whole.
struct Fault {
  std::chrono::milliseconds delay{0};
  uint64_t written_first = UINT64_MAX;  // so many bytes of a write arrive
  int error = 0;                        // then it fails; if 0, it says how many they were
  bool lies = false;                    // or that they were all
};

// Asked before every call that changes a file, by several threads at once. Empty: no plan. Returns when nobody asks the one before.
using Plan = std::function<Fault(const Call&)>;
void follow(Plan plan);
// The same for reads: of these, only `delay` and `error` count.
void follow_reads(Plan plan);

}  // namespace tidelane::testing::storage
