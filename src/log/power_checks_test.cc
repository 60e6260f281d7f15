// Ends that are made up, and what must be found after them.
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <thread>
#include <utility>

#include "log/format.h"
#include "log/power_program.h"
#include "store/superblock.h"

namespace tidelane::log {
namespace {

const std::string kName = "file.h5";

std::string Hex(std::byte byte) { return std::to_string(std::to_integer<unsigned>(byte)); }

}  // namespace

void PowerProgram::Wrong(const std::string& what) {
  if (wrong_.empty())
    wrong_ = "life " + std::to_string(life_) + ", call " + std::to_string(call_) + ", state " +
             std::to_string(tally_.states) + ", change " + std::to_string(disk_->changes()) + ": " +
             what;
}

std::shared_ptr<PowerDisk> PowerProgram::MadeUp(const PowerDisk& disk) {
  return power() ? disk.AfterCut(end_random_) : disk.AfterEnd();
}

void PowerProgram::AfterChange() {
  // Otherwise lanes are as quick as the program, or as slow, every time.
  if (options_.moves == PowerOptions::Moves::kByLanes) {
    thread_local Rng random{options_.seed};
    if (random() % 8 == 0) std::this_thread::sleep_for(std::chrono::microseconds(random() % 300));
  }
  MutexLock lock(mutex_);
  const unsigned ends = power() ? options_.ends : 1;
  for (unsigned i = 0; i < ends && wrong_.empty(); ++i) {
    const auto found = MadeUp(*disk_);
    if (end_random_() % 100 == 0) KeepEnd();
    CheckEnd(found);
  }
}

// Of the program, or of the machine: but not of the program alone after storage has failed to keep what the next one would see.
void PowerProgram::KeepEnd() {
  end_is_durable_ = !power() || lost_ || end_random_() % 2 == 0;
  end_ = end_is_durable_ ? MadeUp(*disk_) : disk_->AfterEnd();
  images_of_end_ = images_;
}

void PowerProgram::CheckEnd(const std::shared_ptr<PowerDisk>& found) {
  ++tally_.states;
  if (!found->Has(kName)) {
    ++tally_.none;
    if (!images_.front().none) Wrong("the file is gone");
    return;
  }
  if (!CheckRaw(*found)) return;
  Superblock superblock;
  static_cast<void>(Superblock::Find(*found->Open(kName), superblock));
  if (superblock.marked()) {
    ++tally_.recovered;
    if (end_random_() % 4 == 0) CheckReopened(found, How::kReads, "only read");
    if (options_.tier && end_random_() % 4 == 0)
      CheckReopened(found->AfterEnd(), How::kGoesOn, "continued");
    if (end_random_() % 4 == 0) CheckCutRecovery(*found);
    if (end_random_() % 4 == 0) CheckForeign(*found, superblock);
    CheckPart(*found, superblock);
  }
  CheckReopened(found, How::kWrites, "recovered");
  if (wrong_.empty() && superblock.marked()) {
    static_cast<void>(Superblock::Find(*found->Open(kName), superblock));
    if (superblock.marked()) Wrong("still marked after its recovery");
    CheckRaw(*found);
  }
}

// As HDF5 without Tidelane would read it.
bool PowerProgram::CheckRaw(const PowerDisk& found) {
  const Bytes bytes = found.Contents(kName);
  const Superblock superblock(
      options_.base, std::span(bytes).subspan(std::min<size_t>(options_.base, bytes.size())));
  if (superblock.marked()) return true;
  if (const std::string differs = Differs({.bytes = bytes, .recovered = false}); !differs.empty()) {
    Wrong("the file itself: " + differs);
    return false;
  }
  return true;
}

void PowerProgram::CheckReopened(const std::shared_ptr<PowerDisk>& disk, How how,
                                 const char* words) {
  std::string why;
  const std::optional<View> view = Reopen(disk, how, why);
  if (!view) return Wrong(std::string(words) + ": " + why);
  if (how == How::kReads) ++tally_.only_read;
  if (const std::string differs = Differs(*view); !differs.empty())
    Wrong(std::string(words) + ": " + differs);
}

std::optional<PowerProgram::View> PowerProgram::Reopen(const std::shared_ptr<PowerDisk>& disk,
                                                       How how, std::string& why) const {
  View view;
  Superblock superblock;
  static_cast<void>(Superblock::Find(*disk->Open(kName), superblock));
  view.recovered = superblock.marked();
  const uint64_t changes = disk->changes();
  LoggedStore store(Parts(disk, disk->Open(kName), how));
  if (const Status status = store.Settle(); !status.ok()) {
    why = status.Message();
    return std::nullopt;
  }
  view.bytes.resize(store.size());
  if (const int error = store.Read(0, view.bytes.data(), view.bytes.size()); error != 0) {
    why = "error " + std::to_string(error);
    return std::nullopt;
  }
  if (how == How::kReads && disk->changes() != changes) {
    why = "something was changed";
    return std::nullopt;
  }
  return view;
}

// A recovery that is cut somewhere, and the next one.
void PowerProgram::CheckCutRecovery(const PowerDisk& found) {
  const auto first = found.AfterEnd();
  std::shared_ptr<PowerDisk> second;
  uint64_t left = 1 + end_random_() % 8;
  // Within the check, which holds the lock.
  first->after_change = [&]() TL_NO_ANALYSIS {
    if (--left == 0) second = MadeUp(*first);
  };
  CheckReopened(first, How::kWrites, "recovered, to be cut");
  first->after_change = nullptr;
  if (second == nullptr) return;
  ++tally_.cut_recoveries;
  if (CheckRaw(*second)) CheckReopened(second, How::kWrites, "recovered after a cut");
}

// Its log is another one's: a copy of the file, put beside an older log.
void PowerProgram::CheckForeign(const PowerDisk& found, const Superblock& marked) {
  std::map<std::string, Bytes> log;
  for (const std::string& name : found.Names()) {
    if (name != kName) log[name] = found.Contents(name);
  }
  bool foreign = !old_log_.empty() && marked.mark() != kNeverCommitted;
  for (const auto& [name, bytes] : old_log_) {
    Sector sector{};
    std::copy_n(bytes.begin(), std::min(bytes.size(), sector.size()), sector.begin());
    const auto header = SegmentHeader::Parse(sector);
    if (header && marked.MarkedWith(header->id)) foreign = false;
  }
  if (foreign) {
    ++tally_.foreign;
    const auto disk = std::make_shared<PowerDisk>(power());
    disk->Add(kName, found.Contents(kName));
    for (const auto& [name, bytes] : old_log_) disk->Add(name, bytes);
    const uint64_t changes = disk->changes();
    std::string why;
    if (Reopen(disk, How::kWrites, why) || disk->changes() != changes)
      Wrong("the log of something else was used");
  }
  if (!log.empty() && (foreign || old_log_.empty())) old_log_ = std::move(log);
}

// A copy of the file with that segment alone which it is marked with: what the other one has is missed.
void PowerProgram::CheckPart(const PowerDisk& found, const Superblock& marked) {
  const auto disk = std::make_shared<PowerDisk>(power());
  disk->Add(kName, found.Contents(kName));
  const std::string log = NameOfLog(*found.AfterEnd(), options_.full);
  for (uint64_t number = 1; number <= 2; ++number) {
    const std::string name = SegmentName(log, number);
    if (!found.Has(name)) return;
    const Bytes bytes = found.Contents(name);
    Sector sector{};
    std::copy_n(bytes.begin(), std::min(bytes.size(), sector.size()), sector.begin());
    const auto header = SegmentHeader::Parse(sector);
    if (header && marked.MarkedWith(header->id)) disk->Add(name, bytes);
  }
  std::string why;
  const std::optional<View> view = Reopen(disk, How::kWrites, why);
  if (!view) return;
  if (const std::string differs = Differs(*view); !differs.empty())
    Wrong("with a part of its log: " + differs);
}

std::string PowerProgram::Differs(const View& view) const {
  std::string differs;
  for (const Image& image : images_) {
    const std::string from = DiffersFrom(view, image);
    if (from.empty()) return {};
    differs += (differs.empty() ? "" : "; and ") + from;
  }
  return "(of " + std::to_string(images_.size()) + " that it may be) " + differs;
}

std::string PowerProgram::DiffersFrom(const View& view, const Image& image) const {
  const Bytes& bytes = view.bytes;
  const Superblock found(options_.base,
                         std::span(bytes).subspan(std::min<size_t>(options_.base, bytes.size())));
  if (image.none) {
    if (!found.empty()) return "it has a superblock before its first commit";
    return view.recovered && !bytes.empty() ? "it is not empty before its first commit" : "";
  }
  if (found.empty()) return "it has no superblock";
  const Superblock superblock(options_.base, std::span(image.bytes).subspan(options_.base));
  if (!(found == superblock) && !(found == superblock.Closed()))
    return "its superblock is another one";
  const uint64_t end = std::min<uint64_t>(superblock.end_of_file(), image.bytes.size());
  if (bytes.size() < end || (view.recovered && image.whole && bytes.size() != end))
    return std::to_string(bytes.size()) + " bytes instead of " + std::to_string(end);
  for (uint64_t i = 0; i < end; ++i) {
    if (i >= superblock.base() && i < superblock.end()) continue;
    if (bytes[i] != image.bytes[i])
      return "at " + std::to_string(i) + " is " + Hex(bytes[i]) + " instead of " +
             Hex(image.bytes[i]) + " (of " + std::to_string(end) + ")";
  }
  return {};
}

}  // namespace tidelane::log
