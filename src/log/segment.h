/// \file
/// One segment of a file's log: space that is taken from its front to its end, and the commits that say what of it counts.
///
/// Invariant: what a commit names is never written again under the same id.
/// Thread safety: Take, Write and Read may be called from any thread; Commit and WriteNote by one at a time.
#pragma once

#include <sys/uio.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "device/device.h"
#include "device/huge_pages.h"
#include "log/format.h"
#include "log/segment_space.h"

namespace tidelane::log {

class Segment {
 public:
  Segment(std::string name, std::unique_ptr<Device> file, SegmentHeader header)
      : name_(std::move(name)), file_(std::move(file)), header_(std::move(header)) {}

  const std::string& name() const { return name_; }
  uint64_t id() const { return header_.id; }
  const SegmentHeader& header() const { return header_; }
  /// So long it has become.
  uint64_t bytes() const { return space_.end(); }
  /// Of which so many bytes may be needed, records with them.
  uint64_t taken() const { return space_.taken(); }

  /// Begins it: 0 or an errno. `sync`: its header is on storage then.
  int Begin(bool sync);
  /// Another program has written it: its last commit, and what its commits have.
  void GoOn(const CommitSlot& last, std::vector<SegmentSpace::Range> needed) {
    last_ = last;
    space_.GoOn(std::move(needed));
  }
  /// So many bytes of it, from the offset that is returned.
  uint64_t Take(uint64_t size) { return space_.Take(size); }
  /// Nothing came there.
  void GiveBack(uint64_t offset, uint64_t size) { space_.GiveBack({offset, offset + size}); }
  /// What these entries have is needed, and the last COMMIT; the rest can be taken again.
  void KeepOnly(std::span<const CommitEntry> entries);
  int Write(uint64_t offset, const iovec* parts, size_t count) {
    return file_->Write(offset, parts, count);
  }
  /// Where its file is in memory: the place itself, if it can be had (device/huge_pages.h).
  FileWindow Open(uint64_t offset, uint64_t size) {
    return pages_.Open(*file_->descriptor(), offset, size);
  }
  int Read(uint64_t offset, void* buffer, size_t n) { return file_->Read(offset, buffer, n); }
  /// Writes the record, whose place in the chain is filled in here, and then its slot: 0 or an errno. Not before `sync` was done it has
  /// happened. `whole`: it has all that the segment has, and begins anew. `failed_sync`: the error is that of a sync, after which nobody
  /// knows what storage has.
  int Commit(CommitRecord& record, bool whole, bool sync, bool& failed_sync);

  /// Says how it ends: 0 or an errno; then `unknown` tells that it may say so all the same.
  int WriteNote(const SegmentNote& note, bool sync, bool& unknown);
  /// That it says so already, as was read.
  void AssumeNote(const SegmentNote& note) { note_ = note; }
  /// The generation of its last commit, 0: there is none.
  uint64_t generation() const { return last_.generation; }

  /// It is used again, as another one: nobody may read it any more.
  std::unique_ptr<Device> Release() { return std::move(file_); }
  Device& file() { return *file_; }

 private:
  const std::string name_;
  std::unique_ptr<Device> file_;
  const SegmentHeader header_;
  SegmentSpace space_;
  HugePages pages_;
  CommitSlot last_;
  SegmentNote note_;
};

}  // namespace tidelane::log
