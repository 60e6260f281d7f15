// Storage that a test can stop, count and break.
//
// The plugin writes with pwritev; this program exports a pwritev of its own, which the dynamic linker
// prefers. So "while bytes are pending" is a fact that a test creates, not a race that it hopes for.
// Native HDF5 writes with pwrite and never comes here.
//
// Invariant: a closed gate lets no byte through; an open one is libc's pwritev.
// Thread safety: all functions may be called from any thread.
#pragma once

#include <chrono>

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
// Waits until a write has failed so: false if none does within some seconds.
bool wait_failed();

}  // namespace tidelane::testing::storage
