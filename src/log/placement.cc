#include "log/placement.h"

#include <algorithm>
#include <cerrno>
#include <new>
#include <vector>

#include "base/counters.h"
#include "base/notices.h"
#include "base/trace.h"
#include "extent/test_hooks.h"

namespace tidelane::log {

Placement::Placement(MarkedFile& file, LogParts& parts)
    : file_(file), parts_(parts), size_(file.direct().size()), log_(file, parts, size_) {}

void Placement::RaiseSize(uint64_t end) {
  uint64_t known = size_.load(std::memory_order_relaxed);
  while (known < end && !size_.compare_exchange_weak(known, end, std::memory_order_release)) {
  }
}

// What the log takes, the rest, and what is HDF5's superblock.
int Placement::WriteNow(Run& run, std::span<const Part> parts) {
  auto [high_water, begin, end, taken] = log_.places();
  if (MutationEnabled("log_high_water")) high_water = 0;
  if (parts_.place.all && GoesToLog(run.begin, run.end, taken)) high_water = UINT64_MAX;
  if (run.begin >= high_water && run.begin >= end) return WriteStraight(run, parts);
  std::vector<Part> logged;
  std::vector<Part> straight;
  std::vector<Part> superblock;
  for (Part part : parts) {
    while (!part.bytes.empty()) {
      const uint64_t at = part.address;
      uint64_t cut = at + part.bytes.size();
      for (const uint64_t boundary : {begin, end, high_water}) {
        if (at < boundary && boundary < cut) cut = boundary;
      }
      const Part piece{at, part.bytes.first(cut - at)};
      const bool is_superblock = begin <= at && at < end;
      (is_superblock ? superblock : at < high_water ? logged : straight).push_back(piece);
      part = {cut, part.bytes.subspan(cut - at)};
    }
  }
  const auto end_of = [](const Part& part) { return part.address + part.bytes.size(); };
  run.write_begin_ns = NowNs();
  int error = 0;
  if (!logged.empty()) {
    // What is written again since the last commit cannot go to the file.
    const bool too_much = taken / 2 >= parts_.place.most && parts_.next.has_value();
    error = too_much ? kNoRoom : log_.Write(logged);
    if (error == 0) RaiseSize(end_of(logged.back()));
  }
  if (error == 0 && !straight.empty()) {
    Run rest;
    rest.begin = straight.front().address;
    rest.end = end_of(straight.back());
    error = WriteStraight(rest, straight);
  }
  // Last, as it tells that the rest is there.
  for (const Part& part : superblock) {
    if (error == 0) error = log_.WriteSuperblock(part.address - begin, part.bytes);
    if (error == 0) RaiseSize(end_of(part));
  }
  run.write_end_ns = NowNs();
  return error;
}

// `call`: 0 or an errno, or kNoRoom; it is made again where there is room.
template <typename Call>
int Placement::WithRoom(Call call) {
  for (;;) {
    const bool was_full = full_.load(std::memory_order_relaxed);
    int error = 0;
    {
      SharedLock lock(place_mutex_);
      error = behind_ ? kNoRoom : call();
    }
    if (error != kNoRoom) return error;
    if (const int failed = MakeRoom(was_full); failed != 0) return failed;
  }
}

// First, what can goes to the file from now on; then the log goes elsewhere.
int Placement::MakeRoom(bool was_full) {
  ExclusiveLock lock(place_mutex_);
  try {
    if (behind_) return WriteAgain();
    // Somebody else was here first; or it had what nobody needs.
    if (!parts_.place.all || parts_.place.folder->MakeRoom()) return 0;
    if (was_full) return parts_.next.has_value() ? GoToNextPlace() : ENOSPC;
    full_.store(true, std::memory_order_relaxed);
    return 0;
  } catch (const std::bad_alloc&) {
    return ENOMEM;
  }
}

int Placement::GoToNextPlace() {
  if (const int error = log_.GoToNextPlace(); error != 0) return error;
  Count(Fallback::kTierFull);
  NoteNative(Fallback::kTierFull, parts_.path);
  behind_ = true;
  return WriteAgain();
}

// What no commit has, by the rules of this place. Before that there is no commit, and nothing else is written.
int Placement::WriteAgain() {
  constexpr uint64_t kMost = 1024 * 1024;
  const Layer left = MutationEnabled("log_leave_behind") ? Layer() : log_.left_behind();
  const uint64_t high_water = log_.places().high_water;
  int error = file_.direct().SetSize(std::max(size(), high_water));
  std::vector<std::byte> bytes;
  left.pieces.VisitPieces([&](uint64_t address, const LoggedPiece& piece) {
    const uint64_t end = address + piece.size;
    // Beyond the high water the file has nothing where something was cut off.
    if (piece.offset == 0 && error == 0) error = log_.Cut(address, std::min(end, high_water));
    for (uint64_t at = address; piece.offset != 0 && at < end && error == 0;) {
      bytes.resize(std::min(end - at, kMost));
      error = left.segment->Read(piece.offset + (at - address), bytes.data(), bytes.size());
      Run run;
      run.begin = at;
      run.end = at + bytes.size();
      const Part part{at, bytes};
      if (error == 0) error = WriteNow(run, {&part, 1});
      at = run.end;
    }
  });
  if (error != 0) return error;
  log_.ForgetLeftBehind();
  behind_ = false;
  return 0;
}

bool Placement::IsLogged(uint64_t begin, uint64_t end) const {
  std::vector<Source> sources;
  Superblock superblock;
  log_.Find(begin, end, sources, superblock);
  return std::ranges::any_of(sources,
                             [](const Source& source) { return source.segment != nullptr; });
}

// Where the log is full, what no commit has need not go there; but not under what is there.
bool Placement::GoesToLog(uint64_t begin, uint64_t end, uint64_t taken) const {
  const bool full = full_.load(std::memory_order_relaxed) || taken >= parts_.place.most;
  if (!full || IsLogged(begin, end)) return true;
  Count(Counter::kBytesPastTier, end - begin);
  return false;
}

// No commit has these addresses. What lies between the parts is zeros, or was written before.
int Placement::WriteStraight(Run& run, std::span<const Part> parts) {
  DirectStore& direct = file_.direct();
  int error = 0;
  if (parts.size() == run.extents.size() && !run.extents.empty()) {
    error = direct.Write(run);
  } else {
    run.write_begin_ns = NowNs();
    for (const Part& part : parts) {
      Run piece;
      piece.begin = part.address;
      piece.end = part.address + part.bytes.size();
      if (error == 0) error = direct.WriteBytes(piece, part.bytes.data());
    }
    run.write_end_ns = NowNs();
  }
  file_.Wrote();
  // The file may be longer: it has bytes yet that were cut off.
  RaiseSize(error == 0 ? run.end : std::min(run.end, direct.size()));
  return error;
}

int Placement::SetSizeNow(uint64_t size) {
  DirectStore& direct = file_.direct();
  const uint64_t before = this->size();
  const uint64_t high_water = log_.places().high_water;
  // Above it no commit knows anything.
  const uint64_t stored = std::max(size, high_water);
  const bool is_short = direct.size() < size && !parts_.place.all;
  if ((size < before && direct.size() > stored) || is_short) {
    const int error = direct.SetSize(stored);
    file_.Wrote();
    if (error != 0) return error;
    // So far it is cut, also if the rest fails.
    if (size < before) size_.store(std::min(before, stored), std::memory_order_release);
  }
  try {
    const bool all = parts_.place.all;
    const bool logged = size < high_water || (all && IsLogged(size, before));
    const uint64_t end = all ? std::max(before, high_water) : high_water;
    const int error = size < before && logged ? log_.Cut(size, end) : 0;
    if (error != 0) return error;
  } catch (const std::bad_alloc&) {
    return ENOMEM;
  }
  size_.store(size, std::memory_order_release);
  return 0;
}

int Placement::Write(Run& run, std::span<const Part> parts) {
  return WithRoom([&] { return WriteNow(run, parts); });
}

int Placement::SetSize(uint64_t size) {
  return WithRoom([&] { return SetSizeNow(size); });
}

int Placement::Commit(Committing when) {
  return WithRoom([&] { return log_.Commit(when); });
}

int Placement::Finish(bool may_stay, bool& stays) {
  stays = false;
  return WithRoom(
      [&] { return may_stay && parts_.place.all ? log_.FinishInLog(stays) : log_.Finish(); });
}

}  // namespace tidelane::log
