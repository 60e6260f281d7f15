/// \file
/// Runs of bytes as boxes: what a selection's rows come to, so that one copy by a device takes many of them.
///
/// Runs of one length at one distance become a plane, planes of one shape at one distance (whole rows of it) a solid.
///
/// Invariant: the boxes have the runs' bytes, in the runs' order.
/// Thread safety: none; plain values.
#pragma once

#include <cstdint>
#include <vector>

#include "gpu/runtime.h"

namespace tidelane::gpu {

struct PlacedBox {
  uint64_t at = 0;  ///< where it begins in device memory, in bytes
  Box box;
};

class Boxes {
 public:
  /// From a row to the next one, at most: more no driver takes.
  static constexpr uint64_t kMostPitch = (uint64_t{1} << 31) - 1;

  /// The next run: `size` bytes (not 0) at `at`. May throw std::bad_alloc.
  void Add(uint64_t at, uint64_t size) {
    if (!run_.Takes(at, size)) {
      EndRun();
      run_ = {.at = at, .last = at, .box = {.width = size}};
    }
    bytes_ += size;
  }
  /// After the last one.
  const std::vector<PlacedBox>& Finish() {
    EndRun();
    return boxes_;
  }
  uint64_t bytes() const { return bytes_; }

 private:
  // Rows that are being gathered.
  struct Rows {
    uint64_t at = 0;
    uint64_t last = 0;  // where the last row begins
    Box box;

    bool Takes(uint64_t next, uint64_t size) {
      if (box.width == 0) return false;
      if (box.height == 1 && next == at + box.width) {  // it goes on where the run ends
        box.width += size;
        return true;
      }
      if (size != box.width || next < last + box.width) return false;
      if (box.height == 1) {
        if (next - last > kMostPitch) return false;
        box.pitch = next - last;
      } else if (next - last != box.pitch) {
        return false;
      }
      ++box.height;
      last = next;
      return true;
    }
  };

  void EndRun() {
    if (run_.box.width == 0) return;
    if (!boxes_.empty() && Joins(boxes_.back(), run_)) {
      ++boxes_.back().box.depth;
    } else {
      boxes_.push_back({run_.at, run_.box});
    }
    run_ = {};
  }

  // A plane behind others of its shape.
  static bool Joins(PlacedBox& solid, const Rows& plane) {
    Box& box = solid.box;
    if (box.height == 1 || plane.box.height != box.height || plane.box.width != box.width ||
        plane.box.pitch != box.pitch) {
      return false;
    }
    if (box.depth > 1) return plane.at == solid.at + box.depth * box.slice * box.pitch;
    if (plane.at <= solid.at || (plane.at - solid.at) % box.pitch != 0) return false;
    const uint64_t rows = (plane.at - solid.at) / box.pitch;
    if (rows < box.height) return false;
    box.slice = rows;
    return true;
  }

  std::vector<PlacedBox> boxes_;
  Rows run_;
  uint64_t bytes_ = 0;
};

}  // namespace tidelane::gpu
