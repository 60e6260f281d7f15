#include "content/prefetch.h"

#include <new>

namespace tidelane {

void Prefetch::Note(uint64_t address, uint64_t size, uint64_t eof) {
  if (owner_ == nullptr || !owner_->ours()) return;
  try {
    owner_->Note(address, size, eof);
  } catch (const std::bad_alloc&) {
    owner_->pieces().DropAll();  // no memory, no guess
  }
}

void Prefetch::Stop() {
  ReadAhead* const ahead = ahead_.load(std::memory_order_acquire);
  if (ahead == nullptr || !ahead->ours()) return;
  const Waiting waiting(Wait::kClose, 0, Waiting::kRest);
  ahead->Stop();
}

}  // namespace tidelane
