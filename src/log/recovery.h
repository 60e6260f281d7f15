/// \file
/// Reads the log of a file that is marked, and makes the file what it was at its last commit (docs/formats/log.md, Recovery).
///
/// Invariant: nothing is changed before everything was checked; a recovery that was killed begins again and comes to the same.
/// Thread safety: one thread a file; that no other process does the same is the caller's to see to (device/claim.h).
#pragma once

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "device/device.h"
#include "log/folder.h"
#include "log/log_parts.h"
#include "log/mark.h"
#include "log/piece_map.h"
#include "log/segment.h"

namespace tidelane::log {

/// The commits of one segment.
struct Layer {
  std::shared_ptr<Segment> segment;
  PieceMap pieces;
};

/// Where bytes of a read lie: in a segment, in the file, or nowhere (zeros).
struct Source {
  uint64_t begin;
  uint64_t end;
  std::shared_ptr<Segment> segment;  ///< nullptr: the file
  uint64_t offset;                   ///< in the segment; 0: zeros
};

/// Adds where the bytes of [begin, end) lie, in address order: the first layer over the next ones over the file.
void FindIn(std::span<const Layer* const> layers, uint64_t begin, uint64_t end,
            std::vector<Source>& sources);

/// A marked file's state at its last commit.
struct Snapshot {
  std::vector<Layer>
      layers;        ///< from the oldest to the newest; none: the file was created, and is empty
  uint64_t end = 0;  ///< of the file
  Superblock superblock;                                   ///< without mark
  uint64_t generation = 0;                                 ///< of the last commit, 0: there is none
  uint64_t stored = 0;                                     ///< so long is the file itself, at least
  std::pair<std::shared_ptr<Segment>, CommitSlot> newest;  ///< the last commit, if there is one
  std::shared_ptr<Segment> moved;  ///< one that says nothing more; may be none
  // Of the last layer's segment, for who goes on with it.
  uint64_t first = 0;  ///< the generation of the oldest of its commits
  std::vector<CommitEntry>
      entries;  ///< in their order, but for superblocks; pieces have their numbers
  std::vector<SegmentSpace::Range> needed;  ///< what its commits have, with their records
};

/// The log is not there, or is another file's. Not ENOENT: programs create a file anew that is told not to be there.
inline constexpr int kNoLog = ENODATA;

/// The names of a file's two segments, in their folder.
using SegmentNames = std::array<std::string, 2>;

/// Commits whose bytes need not be compared with their crcs.
struct KnownCommits {
  uint64_t segment = 0;     ///< of this one, 0: of all
  uint64_t generation = 0;  ///< up to this one

  /// Of a log that was written since this machine was started: who wrote a commit had written its bytes before, and the system has both.
  static KnownCommits All() { return {.segment = 0, .generation = UINT64_MAX}; }
  uint64_t In(uint64_t id) const { return segment == 0 || segment == id ? generation : 0; }
};

/// `path`: of the file, for words. `claims`: the segments are claimed, to be removed; EWOULDBLOCK: somebody has them. kNoLog; EIO: it is
/// damaged, or cannot be read.
Status ReadSnapshot(Folder& folder, const std::string& name, const std::string& path,
                    const Superblock& marked, bool claims, Snapshot& snapshot,
                    KnownCommits known = {});

/// The same, of segments by any name.
Status ReadSnapshot(Folder& folder, const SegmentNames& names, const std::string& path,
                    const Superblock& marked, bool claims, Snapshot& snapshot,
                    KnownCommits known = {});

/// Whether the file has all that the log says it has itself: an older copy of it may not.
Status CheckLength(Device& file, const std::string& path, const Snapshot& snapshot);

/// How much of a log of one segment has come to its places and is on storage: whoever is interrupted goes on there, although the log has become
/// longer meanwhile. It holds as long as nobody else changes the file.
struct Progress {
  uint64_t segment = 0;          ///< its id
  uint64_t generation = 0;       ///< its commits up to this one are right
  uint64_t first = 0;            ///< the generation of the commit that its entries are counted from
  std::vector<uint64_t> stored;  ///< of each entry: all that is seen of it below this address
  uint64_t copied = 0;           ///< below this address of all of them, but not on storage yet
  /// So much may be copied again, or what took a tenth of a second. Syncs of 8 MiB take a local disk a fifth more time, those of 32 MiB nothing
  /// that is seen.
  uint64_t between_syncs = uint64_t{16} << 20;

  KnownCommits known() const { return {.segment = segment, .generation = generation}; }
  /// All that was copied is on storage.
  void Synced() {
    for (uint64_t& address : stored) address = std::max(address, copied);
    copied = 0;
  }
  /// Nothing has come to its place.
  void Forget() {
    stored.clear();
    copied = 0;
  }
};

/// Makes the file so, on storage, and removes the segments. `in_memory`: these do not outlive the machine, whatever is done for them.
/// `progress`: how far somebody has come before, and then has come; if there is one.
Status Restore(Device& file, Folder& folder, const std::string& path, const Snapshot& snapshot,
               bool in_memory = false, Progress* progress = nullptr,
               uint64_t request_bytes = kRequestBytes);

/// Whether the file is so already, by its superblock and by all bytes that the log has: then the log is of no use.
bool IsApplied(Device& file, const Superblock& own, const Snapshot& snapshot);

/// Copies bytes of a segment to their places in the file, but for those of the superblock, in the order of addresses. `end`: beyond it nothing is.
/// `copied`: all below this address, after each request.
int CopyTo(Device& file, const Layer& layer, uint64_t end, uint64_t request_bytes,
           uint64_t* copied = nullptr);

}  // namespace tidelane::log
