/// \file
/// A file in memory (a tmpfs), written through mappings of huge pages.
///
/// write(2) copies into such a file 4 KiB at a time, and there a new page costs three times as much as what is written into it. That the system
/// takes larger ones by itself is a mount's option, so the administrator's. But a program may have the pages of what it has mapped put
/// together (MADV_COLLAPSE, since Linux 6.1), and they stay so for who uses the file later (measured: docs/decisions/0034-tier.md).
///
/// Invariant: all pages of a window are there. A store to one that is not, where memory has no room for it, would end the program.
/// Thread safety: HugePages: any thread; a window is its owner's.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/annotations.h"

namespace tidelane {

/// Bytes of a file, mapped to be written; a forked child has none of them.
class FileWindow {
 public:
  FileWindow() = default;
  FileWindow(FileWindow&& other) noexcept
      : mapped_(std::exchange(other.mapped_, nullptr)), size_(other.size_), data_(other.data_) {}
  FileWindow& operator=(FileWindow&&) = delete;
  ~FileWindow();

  bool empty() const { return mapped_ == nullptr; }
  std::byte* data() const { return data_; }

 private:
  friend class HugePages;
  FileWindow(void* mapped, uint64_t size, std::byte* data)
      : mapped_(mapped), size_(size), data_(data) {}

  void* mapped_ = nullptr;
  uint64_t size_ = 0;  // of what is mapped
  std::byte* data_ = nullptr;
};

/// Which of a file's pages are huge. The file is never cut.
class HugePages {
 public:
  static constexpr uint64_t kPage = uint64_t{2} << 20;
  /// A file that is no longer stays as it is: a huge page takes 2 MiB, whatever is in it.
  static constexpr uint64_t kFrom = uint64_t{4} << 20;
  /// Less is written as quickly by the system as it is mapped.
  static constexpr uint64_t kWorthWindow = uint64_t{256} << 10;

  /// The `size` bytes from `offset` on of the file `fd`, which may become longer by less than a huge page; an empty window: they are
  /// to be written by the system (few, or there are no huge pages, or no room). What they were before is gone in either case.
  FileWindow Open(int fd, uint64_t offset, uint64_t size) TL_EXCLUDES(mutex_);

  /// All whole ones of a file that nobody uses, however long it takes, as far as it is possible.
  static void MakeAll(int fd, uint64_t size);

 private:
  bool MayMake(bool is_new) const;
  bool AreHuge(uint64_t first, uint64_t last) TL_REQUIRES(mutex_);
  bool MakeHuge(int fd, std::byte* mapped, uint64_t offset, uint64_t size) TL_EXCLUDES(mutex_);

  std::atomic<bool> slow_{false};  // one that was there took long, or was refused
  Mutex mutex_;
  std::vector<bool> huge_ TL_GUARDED_BY(mutex_);  // by the page's number in the file
};

}  // namespace tidelane
