/// \file
/// What is expensive to make, kept for the next call: compressors are some hundred KiB, and making one
/// anew costs page faults that take as long as a small chunk. A pool is an array of places; a place is
/// taken, and filled again, by one exchange. A fork in the meantime loses at most what other threads
/// have taken.
///
/// Thread safety: any thread may call these at any time; there are no locks.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>

namespace tidelane {

template <typename T, void (*kFree)(T*)>
class Pool {
 public:
  /// nullptr: there is none; the caller makes one.
  T* Take() {
    for (std::atomic<T*>& place : places_) {
      if (place.load(std::memory_order_relaxed) == nullptr) continue;
      if (T* taken = place.exchange(nullptr, std::memory_order_acquire)) return taken;
    }
    return nullptr;
  }
  /// One too many is freed.
  void Give(T* mine) {
    for (std::atomic<T*>& place : places_) {
      T* empty = nullptr;
      if (place.compare_exchange_strong(empty, mine, std::memory_order_release,
                                        std::memory_order_relaxed)) {
        return;
      }
    }
    kFree(mine);
  }

 private:
  // Lanes, and programs' threads through HDF5's lock: more at once make their own and free it.
  static constexpr size_t kPlaces = 16;
  std::array<std::atomic<T*>, kPlaces> places_{};
};

}  // namespace tidelane
