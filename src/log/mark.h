/// \file
/// The mark in a superblock: that the file's own bytes are not all of its last commit (docs/formats/log.md).
///
/// Source: HDF5 File Format Specification, "Disk Format: Level 0A - Format Signature and Superblock"; the checksum of versions 2 and 3 is Bob
/// Jenkins's lookup3.
/// Invariant: a superblock that is marked, and not any more, differs in nothing from before, if its end of file is put back.
/// Thread safety: values; functions may be called from any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "device/device.h"

namespace tidelane {

/// A file's superblock as it lies in storage, or is to.
class Superblock {
 public:
  /// Longer ones, of addresses of 16 bytes and more, are not journalled.
  static constexpr size_t kMost = 128;

  Superblock() = default;
  Superblock(uint64_t base, std::span<const std::byte> bytes);

  /// The first one in the file, at 0 or a power of two from 512 on. `found` stays empty where there is none. 0 or an errno.
  static int Find(Device& file, Superblock& found);

  bool empty() const { return size_ == 0; }
  /// Where it lies in the file, and how long it is.
  uint64_t base() const { return base_; }
  uint64_t size() const { return size_; }
  uint64_t end() const { return base_ + size_; }
  std::span<const std::byte> bytes() const { return {bytes_.data(), size_}; }
  /// Replaces some of its bytes, from `offset` on; what lies beyond it is left out.
  void Overwrite(uint64_t offset, std::span<const std::byte> bytes);

  bool marked() const;
  /// What the mark says; as many low bytes of `id` as an address has.
  uint64_t mark() const;
  /// Whether the mark's id is this one, as far as it can say so.
  bool MarkedWith(uint64_t id) const;
  uint64_t end_of_file() const;
  Superblock Marked(uint64_t id) const;
  /// Without mark, and with this end of file.
  Superblock Unmarked(uint64_t end_of_file) const;
  /// Without HDF5's own words that somebody has it open for writing, which HDF5 1.10 and later leave in version 3.
  Superblock Closed() const;

  bool operator==(const Superblock& other) const;

 private:
  size_t offset_size() const;
  size_t end_offset() const;
  void SetEnd(uint64_t end);
  void RenewChecksum();

  uint64_t base_ = 0;
  size_t size_ = 0;
  std::array<std::byte, kMost> bytes_{};
};

/// The mark's word for a file that was created, and of which nothing is committed: it needs no segment.
inline constexpr uint64_t kNeverCommitted = 1;

namespace internal {
/// lookup3, as HDF5 checks its metadata.
uint32_t Lookup3(std::span<const std::byte> bytes);
}  // namespace internal

}  // namespace tidelane
