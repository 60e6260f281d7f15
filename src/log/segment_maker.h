/// \file
/// Makes the segments of one log, whose numbers follow one another, where the log has its place; one that was moved is used again.
///
/// Invariant: what is removed is the log's own, and of two segments the newest goes last: it shows whose they are.
/// Thread safety: none but that of `left`; whoever begins a segment holds the lock that says so (commit_log.h).
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "log/format.h"
#include "log/left_segments.h"
#include "log/log_parts.h"
#include "log/marked_file.h"
#include "log/segment.h"

namespace tidelane::log {

class SegmentMaker {
 public:
  SegmentMaker(MarkedFile& file, const LogParts& parts)
      : file_(file), parts_(parts), left_(file, parts) {}

  /// What lies by its segments' names before it has any.
  LeftSegments& left() { return left_; }

  /// A segment of this header, whose number is filled in: 0 or an errno, with which it may be there, to be removed.
  int Next(SegmentHeader& header, std::shared_ptr<Segment>& segment);
  /// The last one has this number; 0: there is none.
  void Made(uint64_t number) { number_ = number; }
  /// It was moved, and another one goes on.
  void Keep(std::shared_ptr<Segment> moved) { spare_ = std::move(moved); }

  void Remove(Segment& segment);
  /// The last one: the log has none any more.
  void End(Segment& last);
  /// Lets go of what it keeps, and `removes` it.
  void Forget(bool removes);

 private:
  int Make(uint64_t number, std::unique_ptr<Device>& made);

  MarkedFile& file_;
  const LogParts& parts_;
  LeftSegments left_;
  uint64_t number_ = 0;
  std::shared_ptr<Segment> spare_;
};

}  // namespace tidelane::log
