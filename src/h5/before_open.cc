#include "h5/before_open.h"

#include <atomic>

namespace tidelane::h5 {

namespace {

void Nothing(int, const char*) {}

constinit std::atomic<BeforeOpenFunction> before_open{&Nothing};

}  // namespace

void RegisterBeforeOpen(BeforeOpenFunction function) {
  before_open.store(function, std::memory_order_release);
}

void BeforeOpen(int slot, const char* path) {
  before_open.load(std::memory_order_acquire)(slot, path);
}

}  // namespace tidelane::h5
