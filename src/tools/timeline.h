/// \file
/// Timelines that processes left (TIDELANE_TRACE, base/trace.h), read back: who did what when.
///
/// Invariant: tracks are in the order in which a person reads them: by rank or process, the
/// program's threads before the lanes; a track's spans are in the order of their beginnings.
///
/// Thread safety: values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"

namespace tidelane::tools {

struct TimelineSpan {
  double begin_us = 0;
  double duration_us = 0;
  uint64_t bytes = 0;
  uint32_t times = 1;  ///< so many spans, joined to one
  uint16_t kind = 0;   ///< index of Timeline::kinds
};

struct Track {
  int pid = 0;
  int rank = -1;
  uint64_t thread = 0;
  std::string name;  ///< "main thread", "lane 0"
  bool lane = false;
  std::vector<TimelineSpan> spans;
};

struct Timeline {
  std::vector<std::string> kinds;  ///< "write", "close wait", "pwrite"
  std::vector<Track> tracks;
  uint64_t lost_spans = 0;
  double begin_us = 0;  ///< of the first span, on the clock of the traces
  double end_us = 0;

  size_t Spans() const;
  /// What a span changed of what waits in memory, and when: captured bytes from the beginning of
  /// their call on, stored ones at the end of their request. (What is overwritten before it is
  /// stored stays counted: a little of a file's metadata.)
  struct Change {
    double at_us;
    int64_t bytes;
  };
  Change ChangeBy(const TimelineSpan& span) const;
};

/// Adds a file's tracks. False with a line for a person in `error`.
bool ReadTrace(const std::string& path, int rank, Timeline& timeline, std::string& error);

/// After the last one was read.
void Arrange(Timeline& timeline);

/// Neighbours of one kind on one track become one span, closest first, until no more than about
/// `most` are left: what nobody could tell apart on a screen.
void Coarsen(Timeline& timeline, size_t most);

/// As a Chrome trace, which Perfetto reads: times from 0 on, named and sorted processes and threads,
/// and the bytes that waited in memory as a counter. "-" is stdout.
Status WriteChromeTrace(const Timeline& timeline, const std::string& path);

}  // namespace tidelane::tools
