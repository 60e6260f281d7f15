#include "h5/stored_arrays.h"

#include <atomic>

namespace tidelane::h5 {

namespace {

std::optional<StoredArray> FindsNothing(Library&, hid_t, hid_t) { return std::nullopt; }

constinit std::atomic<StoredArrayFunction> finder{&FindsNothing};

}  // namespace

void RegisterStoredArrays(StoredArrayFunction find) {
  finder.store(find, std::memory_order_release);
}

std::optional<StoredArray> FindStoredArray(Library& hdf5, hid_t dataset, hid_t memory_type) {
  return finder.load(std::memory_order_acquire)(hdf5, dataset, memory_type);
}

}  // namespace tidelane::h5
