/// \file
/// Where a rank of an MPI program wrote elements that it may not have stored yet, as boxes of coordinates, and whether
/// other ranks are about to write there: then the order in which ranks store would decide what the dataset holds.
///
/// Two questions, both on the safe side (a box may cover more than was written):
///   1. RangeOf: from the first to the last element, in storage order. Ranges of all ranks together are two numbers, which
///      a reduction finds; steps that follow one another in the dataset are told apart by it.
///   2. BoxesOf: a few boxes. Ranks that each write here and there in a part of their own are told apart by them.
///
/// Invariant: an element that was added lies in the range and in a box, until Clear.
/// Thread safety: none; used by one thread at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace tidelane {

/// Coordinates [begin, end) in each of the first dimensions; further ones are not looked at. Empty where an end is not
/// above its begin.
struct WrittenBox {
  static constexpr int kDimensions = 5;
  std::array<uint64_t, kDimensions> begin{};
  std::array<uint64_t, kDimensions> end{};

  bool empty() const;
  bool Overlaps(const WrittenBox& other) const;
  /// True and the result in this one, if both together are one box.
  bool Join(const WrittenBox& other);
  void Cover(const WrittenBox& other);
  bool operator==(const WrittenBox&) const = default;
};

/// Elements by their number in storage order: [begin, end).
struct ElementRange {
  uint64_t begin = UINT64_MAX;
  uint64_t end = 0;
  bool Overlaps(const ElementRange& other) const { return begin < other.end && other.begin < end; }
};

/// A selection in a dataset whose extent is `extent`.
struct Place {
  uint64_t dataset = 0;  ///< what tells datasets of a file apart
  std::vector<uint64_t> extent;
  ElementRange range;
  WrittenBox box;
};

class WriteFootprint {
 public:
  static constexpr size_t kBoxes = 4;  ///< of a dataset; more are joined to larger ones
  using Boxes = std::array<WrittenBox, kBoxes>;

  void Add(const Place& place);
  void Clear() { datasets_.clear(); }
  bool empty() const { return datasets_.empty(); }
  /// What was added of that dataset; everything, if its extent has changed since.
  ElementRange RangeOf(const Place& place) const;
  Boxes BoxesOf(const Place& place) const;

 private:
  struct Dataset {
    std::vector<uint64_t> extent;
    ElementRange range;
    Boxes boxes;
  };
  std::map<uint64_t, Dataset> datasets_;
};

/// What a rank is about to write, and where it has written: numbers to be exchanged.
std::vector<uint64_t> EncodeBoxes(const WrittenBox& next, const WriteFootprint::Boxes& written);
/// Of all ranks' numbers, in the order of ranks: whether one is about to write where another one has written.
bool AnyOverwrites(const std::vector<uint64_t>& all);

}  // namespace tidelane
