/// \file
/// The name of the threads that are ours, as `top -H` and debuggers show it.
///
/// Invariant: every thread that the plugin starts calls NameThread first. Thread safety: names the calling thread.
#pragma once

#include <pthread.h>

namespace tidelane {

inline constexpr char kThreadName[] = "tidelane";

inline void NameThread() { static_cast<void>(pthread_setname_np(pthread_self(), kThreadName)); }

}  // namespace tidelane
