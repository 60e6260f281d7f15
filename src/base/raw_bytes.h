/// \file
/// Memory that is not set to zero first: who makes it fills it, and its pages are touched once.
///
/// Thread safety: that of a plain value.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>

namespace tidelane {

class RawBytes {
 public:
  RawBytes() = default;
  /// May throw std::bad_alloc.
  explicit RawBytes(size_t size)
      : memory_(std::make_unique_for_overwrite<std::byte[]>(size)), size_(size) {}
  RawBytes(RawBytes&& other) noexcept
      : memory_(std::move(other.memory_)), size_(std::exchange(other.size_, 0)) {}
  RawBytes& operator=(RawBytes&& other) noexcept {
    memory_ = std::move(other.memory_);
    size_ = std::exchange(other.size_, 0);
    return *this;
  }

  std::byte* data() { return memory_.get(); }
  const std::byte* data() const { return memory_.get(); }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  std::byte* begin() { return data(); }
  std::byte* end() { return data() + size_; }
  const std::byte* begin() const { return data(); }
  const std::byte* end() const { return data() + size_; }
  /// The memory, which is the caller's to `delete[]` from now on.
  std::byte* Release() {
    size_ = 0;
    return memory_.release();
  }

 private:
  std::unique_ptr<std::byte[]> memory_;
  size_t size_ = 0;
};

}  // namespace tidelane
