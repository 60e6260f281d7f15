#include "ranks/write_footprint.h"

#include <algorithm>
#include <limits>

namespace tidelane {
namespace {

constexpr uint64_t kAll = std::numeric_limits<uint64_t>::max();
constexpr size_t kNumbersOfBox = size_t{2} * WrittenBox::kDimensions;
constexpr size_t kNumbersOfRank = (1 + WriteFootprint::kBoxes) * kNumbersOfBox;

void Encode(const WrittenBox& box, std::vector<uint64_t>& numbers) {
  numbers.insert(numbers.end(), box.begin.begin(), box.begin.end());
  numbers.insert(numbers.end(), box.end.begin(), box.end.end());
}

WrittenBox Decode(const uint64_t* numbers) {
  WrittenBox box;
  std::copy_n(numbers, WrittenBox::kDimensions, box.begin.begin());
  std::copy_n(numbers + WrittenBox::kDimensions, WrittenBox::kDimensions, box.end.begin());
  return box;
}

}  // namespace

bool WrittenBox::empty() const {
  for (int d = 0; d < kDimensions; ++d) {
    if (end[d] <= begin[d]) return true;
  }
  return false;
}

bool WrittenBox::Overlaps(const WrittenBox& other) const {
  if (empty() || other.empty()) return false;
  for (int d = 0; d < kDimensions; ++d) {
    if (end[d] <= other.begin[d] || other.end[d] <= begin[d]) return false;
  }
  return true;
}

void WrittenBox::Cover(const WrittenBox& other) {
  for (int d = 0; d < kDimensions; ++d) {
    begin[d] = std::min(begin[d], other.begin[d]);
    end[d] = std::max(end[d], other.end[d]);
  }
}

bool WrittenBox::Join(const WrittenBox& other) {
  int differs = -1;
  for (int d = 0; d < kDimensions; ++d) {
    if (begin[d] == other.begin[d] && end[d] == other.end[d]) continue;
    if (differs >= 0) return false;
    differs = d;
  }
  if (differs >= 0 && (other.end[differs] < begin[differs] || end[differs] < other.begin[differs]))
    return false;
  Cover(other);
  return true;
}

void WriteFootprint::Add(const Place& place) {
  if (place.box.empty()) return;
  Dataset& dataset = datasets_[place.dataset];
  if (dataset.extent != place.extent && dataset.range.end != 0) {
    dataset.range = {0, kAll};
  } else {
    dataset.range.begin = std::min(dataset.range.begin, place.range.begin);
    dataset.range.end = std::max(dataset.range.end, place.range.end);
  }
  dataset.extent = place.extent;
  for (WrittenBox& box : dataset.boxes) {
    if (box.empty() || box == place.box || box.Join(place.box)) {
      if (box.empty()) box = place.box;
      return;
    }
  }
  dataset.boxes.back().Cover(place.box);
}

ElementRange WriteFootprint::RangeOf(const Place& place) const {
  const auto found = datasets_.find(place.dataset);
  if (found == datasets_.end()) return {};
  return found->second.extent == place.extent ? found->second.range : ElementRange{0, kAll};
}

WriteFootprint::Boxes WriteFootprint::BoxesOf(const Place& place) const {
  const auto found = datasets_.find(place.dataset);
  return found == datasets_.end() ? Boxes() : found->second.boxes;
}

std::vector<uint64_t> EncodeBoxes(const WrittenBox& next, const WriteFootprint::Boxes& written) {
  std::vector<uint64_t> numbers;
  numbers.reserve(kNumbersOfRank);
  Encode(next, numbers);
  for (const WrittenBox& box : written) Encode(box, numbers);
  return numbers;
}

bool AnyOverwrites(const std::vector<uint64_t>& all) {
  const size_t ranks = all.size() / kNumbersOfRank;
  for (size_t writer = 0; writer < ranks; ++writer) {
    const WrittenBox next = Decode(&all[writer * kNumbersOfRank]);
    if (next.empty()) continue;
    for (size_t owner = 0; owner < ranks; ++owner) {
      if (owner == writer) continue;
      for (size_t i = 1; i <= WriteFootprint::kBoxes; ++i) {
        if (next.Overlaps(Decode(&all[owner * kNumbersOfRank + i * kNumbersOfBox]))) return true;
      }
    }
  }
  return false;
}

}  // namespace tidelane
