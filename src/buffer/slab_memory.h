/// \file
/// Where the memory of slabs comes from, and what a forked child has of it.
///
/// An arena asks for a region (the memory of some slabs) now and then, and for nothing while slabs are filled: a small
/// write knows nothing of this. Two rules at fork are possible, and each kind of memory has one:
///
///   kCopied     The child has a copy of its own, made by the system page by page as either side writes.
///   kWithdrawn  The child has none of it. Its bytes are the parent's and of whoever else maps them, or a device works on
///               them: a child that wrote or released them would change them under the parent. So the region is not even
///               mapped there (MADV_DONTFORK), also where fork's handlers do not run, and the arena of the child
///               begins anew: it takes slabs from those who hold them, without a call of Release.
///
/// Who adds a kind that must be known to a device (pinned memory): Acquire maps and registers, Release unregisters and unmaps,
/// and the rule is kWithdrawn, because a registration does not hold in a child. It may wrap another kind.
///
/// Invariant: a region is whole pages, and begins at a huge page where it is as large as one.
/// Thread safety: an arena calls Acquire and Release from any thread, one at a time; BeginChild by the only thread of a
/// child. Memory with state of its own serves one arena.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace tidelane {

class SlabMemory {
 public:
  enum class AtFork : uint8_t { kCopied, kWithdrawn };

  /// A new region of `size` bytes; nullptr when the system refuses it. With `faulted` its pages are there already; it is set
  /// where they are in any case.
  virtual std::byte* Acquire(size_t size, bool& faulted) = 0;
  /// Gives back a region that Acquire gave.
  virtual void Release(std::byte* base, size_t size) = 0;
  /// Gives the pages of a range back to the system: they are there again, empty, when they are touched. False: this memory
  /// keeps its pages.
  virtual bool Discard(std::byte* /*base*/, size_t /*size*/) { return false; }
  /// Whether there is so little that what is not needed now had better go back at once.
  virtual bool scarce() { return false; }
  virtual AtFork at_fork() const = 0;
  /// In a forked child, where the rule is kWithdrawn: nothing that was acquired is there any more.
  virtual void BeginChild() {}

 protected:
  // Nobody owns memory by this interface: what the plugin uses is there until the process ends.
  ~SlabMemory() = default;
};

/// Anonymous memory of this process, huge pages where the system gives them; kCopied.
class PrivateMemory final : public SlabMemory {
 public:
  std::byte* Acquire(size_t size, bool& faulted) override;
  void Release(std::byte* base, size_t size) override;
  bool Discard(std::byte* base, size_t size) override;
  bool scarce() override;
  AtFork at_fork() const override { return AtFork::kCopied; }

  /// For all arenas: it has no state.
  static PrivateMemory& Get();
};

/// Memory that other processes can map, by the descriptor of a file without a name; kWithdrawn.
///
/// The pages of a region are taken from the system at once: where it has none Acquire fails, and not a later write, by a
/// signal. A released region's place in the file is not used again.
class SharedMemory final : public SlabMemory {
 public:
  SharedMemory() = default;
  ~SharedMemory();  // closes the file; regions stay mapped
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  std::byte* Acquire(size_t size, bool& faulted) override;
  void Release(std::byte* base, size_t size) override;
  AtFork at_fork() const override { return AtFork::kWithdrawn; }
  void BeginChild() override;

  /// The file that all regions lie in; -1 before the first. The memory's own.
  int descriptor() const { return descriptor_; }
  /// Where in it `data`, an address in a region, is; from any thread, also beside Acquire.
  uint64_t OffsetOf(const std::byte* data) const;

 private:
  struct Region {
    std::byte* base;
    size_t size;
    uint64_t offset;
    Region* next;
  };

  bool Open();
  void Forget();

  int descriptor_ = -1;
  uint64_t end_ = 0;                       // of the file
  std::atomic<Region*> regions_{nullptr};  // the newest first
};

/// Faults in a range of a region; false when the system refuses.
bool Populate(std::byte* base, size_t size);

}  // namespace tidelane
