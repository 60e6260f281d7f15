/// \file
/// The stages work from one buffer into the other. Neither is zeroed first, and none is made for a
/// stage that needs none.
///
/// Thread safety: see the header.
#include "codec/pipeline.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <new>
#include <utility>

#include "codec/fletcher32.h"
#include "codec/shuffle.h"

namespace tidelane {
namespace {

constexpr size_t kMostFilters = 32;  // HDF5's, and the bits of a mask

Status Corrupt(const char* what) { return Status::Failed(EBADMSG, what); }

// Uninitialised memory that grows; what it held is gone then.
class Room {
 public:
  std::byte* Have(size_t bytes) {
    if (bytes > capacity_) {
      memory_.reset();
      memory_.reset(new (std::nothrow) std::byte[bytes]);
      capacity_ = memory_ == nullptr ? 0 : bytes;
    }
    return memory_.get();
  }

 private:
  std::unique_ptr<std::byte[]> memory_;
  size_t capacity_ = 0;
};

}  // namespace

// Where the bytes are at present, and where the next stage may put its own.
struct Pipeline::Data {
  std::span<const std::byte> bytes;
  Room* next;
  Room* after;
  std::span<std::byte> result = {};  // where the last stage's bytes go, if that is known

  std::byte* Target(size_t room, bool last = false) {
    if (last && room == result.size()) return result.data();
    return next->Have(room == 0 ? 1 : room);
  }
  void Done(std::span<const std::byte> made) {
    bytes = made;
    std::swap(next, after);
  }
};

// What HDF5 itself would refuse, or we do not know, is left to HDF5.
std::optional<Pipeline::Stage> Pipeline::MakeStage(const FilterSpec& filter, DeflateWith with,
                                                   Use use) {
  const std::vector<unsigned>& values = filter.values;
  Stage stage{static_cast<FilterId>(filter.id), filter.optional, values.empty() ? 0 : values[0],
              nullptr};
  bool can_run = true;
  switch (stage.id) {
    case FilterId::kDeflate:
      can_run = with != DeflateWith::kNative && values.size() == 1 && values[0] < kDeflateLevels;
      break;
    case FilterId::kShuffle: can_run = values.size() == 1 && values[0] != 0; break;
    case FilterId::kFletcher32: break;
    default:
      stage.id = FilterId::kRegistered;
      stage.registered = BindRegisteredFilter(filter.id, filter.code, values);
      can_run =
          stage.registered != nullptr && (use == Use::kDecode || stage.registered->CanEncode());
  }
  if (!can_run) return std::nullopt;
  return stage;
}

// Most bytes that a stage makes of `bytes`.
size_t Pipeline::BoundOf(const Stage& stage, size_t bytes) {
  switch (stage.id) {
    case FilterId::kDeflate: return DeflateBound(bytes);
    case FilterId::kFletcher32: return bytes + kFletcherBytes;
    case FilterId::kRegistered: return stage.registered->Bound(bytes);
    case FilterId::kShuffle: break;
  }
  return bytes;
}

std::optional<Pipeline> Pipeline::Make(std::span<const FilterSpec> filters, DeflateWith with,
                                       Use use) {
  if (filters.size() > kMostFilters) return std::nullopt;
  Pipeline pipeline;
  pipeline.with_ = with;
  for (const FilterSpec& filter : filters) {
    std::optional<Stage> stage = MakeStage(filter, with, use);
    if (!stage.has_value()) return std::nullopt;
    pipeline.stages_.push_back(*std::move(stage));
  }
  return pipeline;
}

bool Pipeline::compresses() const {
  return std::ranges::any_of(stages_, [](const Stage& stage) {
    return stage.id != FilterId::kShuffle && stage.id != FilterId::kFletcher32;
  });
}

size_t Pipeline::Bound(size_t bytes) const {
  for (const Stage& stage : stages_) bytes = BoundOf(stage, bytes);
  return bytes;
}

bool Pipeline::EncodeStage(const Stage& stage, Data& data) const {
  const size_t room = BoundOf(stage, data.bytes.size());
  std::byte* to = data.Target(room);
  if (to == nullptr) return false;
  size_t made = room;
  switch (stage.id) {
    case FilterId::kShuffle: Shuffle(data.bytes, stage.value, to); break;
    case FilterId::kFletcher32:
      if (!data.bytes.empty()) std::memcpy(to, data.bytes.data(), data.bytes.size());
      StoreFletcher32(Fletcher32(data.bytes), to + data.bytes.size());
      break;
    case FilterId::kDeflate: {
      const std::optional<size_t> size = DeflateEncode(with_, stage.value, data.bytes, {to, room});
      if (!size) return false;
      made = *size;
      break;
    }
    case FilterId::kRegistered: {
      const std::optional<size_t> size = stage.registered->Encode(data.bytes, {to, room});
      if (!size) return false;
      made = *size;
      break;
    }
  }
  data.Done({to, made});
  return true;
}

Status Pipeline::Encode(std::span<const std::byte> chunk, RawBytes& out, uint32_t& mask) const {
  Room rooms[2];
  Data data{chunk, &rooms[0], &rooms[1]};
  mask = 0;
  for (size_t i = 0; i < stages_.size(); ++i) {
    if (EncodeStage(stages_[i], data)) continue;
    if (!stages_[i].optional) return Status::Failed(ENOMEM, "filter a chunk");
    mask |= uint32_t{1} << i;
  }
  out = RawBytes(data.bytes.size());
  if (!data.bytes.empty()) std::memcpy(out.data(), data.bytes.data(), data.bytes.size());
  return {};
}

// `room`: most bytes that this stage was given when the chunk was encoded.
Status Pipeline::DecodeStage(const Stage& stage, size_t room, bool last, Data& data) const {
  if (stage.id == FilterId::kFletcher32) {
    if (data.bytes.size() < kFletcherBytes)
      return Corrupt("read a chunk shorter than its checksum");
    if (!EndsWithFletcher32(data.bytes)) {
      return Corrupt("read a chunk: its Fletcher32 checksum is wrong");
    }
    data.bytes = data.bytes.first(data.bytes.size() - kFletcherBytes);
    return {};
  }
  const bool shuffled = stage.id == FilterId::kShuffle;
  if (shuffled) room = data.bytes.size();
  std::byte* to = data.Target(room, last);
  if (to == nullptr && room != 0) return Status::Failed(ENOMEM, "read a filtered chunk");
  size_t made = room;
  if (shuffled) {
    Unshuffle(data.bytes, stage.value, to);
  } else if (stage.id == FilterId::kRegistered) {
    const std::optional<size_t> size = stage.registered->Decode(data.bytes, {to, room});
    if (!size) return Corrupt("read a chunk: what its filter made is damaged or too long");
    made = *size;
  } else if (DeflateDecode(data.bytes, {to, room}, made) != Inflated::kDone) {
    return Corrupt("read a chunk: its deflate stream is corrupt or too long");
  }
  data.Done({to, made});
  return {};
}

Status Pipeline::Decode(std::span<const std::byte> stored, uint32_t mask,
                        std::span<std::byte> chunk) const {
  std::vector<size_t> given(stages_.size());  // to each stage at most, when it was encoded
  size_t last = stages_.size();
  size_t bytes = chunk.size();
  for (size_t i = 0; i < stages_.size(); ++i) {
    given[i] = bytes;
    if ((mask >> i & 1) != 0) continue;
    bytes = BoundOf(stages_[i], bytes);
    if (last == stages_.size()) last = i;
  }
  Room rooms[2];
  Data data{stored, &rooms[0], &rooms[1], chunk};
  for (size_t i = stages_.size(); i-- > 0;) {
    if ((mask >> i & 1) != 0) continue;
    Status status = DecodeStage(stages_[i], given[i], i == last, data);
    if (!status.ok()) return status;
  }
  if (data.bytes.size() != chunk.size()) return Corrupt("read a chunk: it has the wrong length");
  if (data.bytes.data() != chunk.data() && !chunk.empty()) {
    std::memcpy(chunk.data(), data.bytes.data(), chunk.size());
  }
  return {};
}

}  // namespace tidelane
