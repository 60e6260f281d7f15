#include "file/prepared_bytes.h"

#include <functional>
#include <utility>

#include "buffer/loan.h"

namespace tidelane {

PreparedBytes::~PreparedBytes() {
  if (slab_ != nullptr) Arena::Unref(slab_);
}

void PreparedBytes::Set(RawBytes bytes) {
  size_ = bytes.size();
  own_ = std::move(bytes);
  if (size_ >= kLeastHeld && size_ <= UINT32_MAX) slab_ = Adopt(own_);
}

const std::byte* PreparedBytes::data() const {
  return slab_ != nullptr ? slab_->data : own_.data();
}

// The reference that is ours keeps others' last ones from being the last while this looks.
bool PreparedBytes::CountHeld(const std::shared_ptr<std::atomic<uint64_t>>& bytes) {
  if (slab_ == nullptr || slab_->pinned_by != nullptr ||
      slab_->references.load(std::memory_order_acquire) == 1)
    return false;
  bytes->fetch_add(slab_->size, std::memory_order_relaxed);
  slab_->pinned_by = bytes;
  return true;
}

Slab* PreparedBytes::SlabOf(const void* bytes, uint64_t size) const {
  if (slab_ == nullptr || size < kLeastHeld) return nullptr;
  const auto* const at = static_cast<const std::byte*>(bytes);
  const std::less_equal<const std::byte*> in_order;  // of any two pointers
  if (!in_order(slab_->data, at) || !in_order(at + size, slab_->data + slab_->size)) return nullptr;
  Arena::Ref(slab_);
  return slab_;
}

}  // namespace tidelane
