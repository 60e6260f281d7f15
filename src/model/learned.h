/// \file
/// What is known of one program on one file system: how quick storage and copies are, how the program computes, writes
/// and reads, and what both ways of writing would have cost it.
///
/// Thread safety: a value.
#pragma once

#include <cstdint>

#include "base/decisions.h"
#include "model/copy_cost.h"
#include "model/io_rate.h"
#include "model/recent_mean.h"

namespace tidelane::model {

/// Of its phases of large reads (model/read_phases.h).
struct LearnedReads {
  IoRate sync;            ///< phases that the program waited for
  IoRate lanes;           ///< what lanes brought before it did
  CopyCost copy;          ///< from what they brought
  RecentMean bytes;       ///< of a phase
  RecentMean read_bytes;  ///< of one read in it
  RecentMean compute;     ///< seconds of an epoch in which the program waited for no read
  uint64_t epochs = 0;

  void Merge(const LearnedReads& newer) {
    sync.Merge(newer.sync), lanes.Merge(newer.lanes), copy.Merge(newer.copy);
    bytes.Merge(newer.bytes), read_bytes.Merge(newer.read_bytes), compute.Merge(newer.compute);
    epochs += newer.epochs;
  }
};

struct Learned {
  IoRate sync;             ///< phases as the program saw them, written by itself
  IoRate lanes;            ///< phases as storage saw them, written by lanes
  CopyCost copy;           ///< bytes handed over
  RecentMean bytes;        ///< of an I/O phase
  RecentMean write_bytes;  ///< of one write in it
  RecentMean compute;  ///< seconds between two phases in which the program neither wrote nor waited
  RecentMean
      slack;  ///< of these, before it asked for its bytes to be stored: what can be hidden behind
  RecentMean
      sync_cost;  ///< seconds a byte that writes cost, or would have cost, made by the program
  RecentMean async_cost;  ///< the same, handed over
  uint64_t epochs = 0;
  LearnedReads reads;

  void Merge(const Learned& newer) {
    sync.Merge(newer.sync), lanes.Merge(newer.lanes), copy.Merge(newer.copy);
    bytes.Merge(newer.bytes), write_bytes.Merge(newer.write_bytes);
    compute.Merge(newer.compute), slack.Merge(newer.slack);
    sync_cost.Merge(newer.sync_cost), async_cost.Merge(newer.async_cost);
    epochs += newer.epochs;
    reads.Merge(newer.reads);
  }
};

/// As the record of decisions has it, for a phase of the usual size.
ModeledRate RateToTell(const IoRate& rate, double bytes, double ranks);

}  // namespace tidelane::model
