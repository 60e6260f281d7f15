// The simulated program: its calls and its checks. The seeds it is run with are in power_test.cc.
#include "log/power_program.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "base/counters.h"
#include "log/superblocks.h"
#include "store/superblock.h"

namespace tidelane::log {
namespace {

const std::string kName = "file.h5";
const std::string kTier = "tier";  // its log's name in a tier that may be full

uint64_t TierBytes(uint64_t seed) { return 4096 + 2500 + seed % 4 * 3000; }
constexpr uint64_t kFileBytes = 6000;  // calls stay below
constexpr uint64_t kSegmentBytes = 4096 + 2500;
constexpr uint64_t kTierSegmentBytes = 4096 + 10000;
constexpr uint64_t kLongestWrite = 900;

std::unique_ptr<Folder> FolderOfLog(PowerDisk& disk, const PowerOptions& options) {
  const bool is_tier = options.full && NameOfLog(disk, true) == kTier;
  return disk.MakeFolder(is_tier ? TierBytes(options.seed) : UINT64_MAX);
}

}  // namespace

std::string NameOfLog(PowerDisk& disk, bool full) {
  Superblock marked;
  static_cast<void>(Superblock::Find(*disk.Open(kName), marked));
  for (const uint64_t number : {1, 2}) {
    const std::string name = SegmentName(kName, number);
    if (!full || !disk.Has(name)) continue;
    Sector bytes{};
    static_cast<void>(disk.Open(name)->Read(0, bytes.data(), bytes.size()));
    const auto header = SegmentHeader::Parse(bytes);
    if (header && marked.MarkedWith(header->id)) return kName;
  }
  return full ? kTier : kName;
}

void PowerProgram::Tally::operator+=(const Tally& other) {
  states += other.states;
  recovered += other.recovered;
  chains += other.chains;
  cut_recoveries += other.cut_recoveries;
  only_read += other.only_read;
  foreign += other.foreign;
  commits += other.commits;
  failed_commits += other.failed_commits;
  failed_calls += other.failed_calls;
  closes += other.closes;
  none += other.none;
  continued += other.continued;
  moved_on += other.moved_on;
  went_on += other.went_on;
}

PowerProgram::PowerProgram(const PowerOptions& options)
    : options_(options),
      random_(options.seed),
      disk_(std::make_shared<PowerDisk>(options.journal == Journal::kPower)),
      fault_random_(options.seed + 1),
      end_random_(options.seed + 2) {
  if (!options.existing) return;
  model_ = RandomBytes(options_.base + 200 + Pick(3000));
  const Bytes superblock = NewSuperblock(model_.size());
  std::ranges::copy(superblock, model_.begin() + static_cast<ptrdiff_t>(options_.base));
  disk_->Add(kName, model_);
  MutexLock lock(mutex_);
  images_.push_back({.bytes = model_, .none = false, .whole = true});
}

PowerProgram::~PowerProgram() = default;

std::string PowerProgram::wrong() const {
  MutexLock lock(mutex_);
  return wrong_;
}

PowerProgram::Tally PowerProgram::tally() const {
  MutexLock lock(mutex_);
  return tally_;
}

PowerProgram::Bytes PowerProgram::RandomBytes(uint64_t size) {
  Bytes bytes(size);
  // Never zeros, and never what was there.
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(1 + random_() % 255);
  return bytes;
}

PowerProgram::Bytes PowerProgram::NewSuperblock(uint64_t end) {
  Bytes bytes = SuperblockOfVersion(options_.version);
  // Something that tells it from others: the scratch pad of the root's entry, or the extension's address.
  const size_t at = options_.version < 2 ? bytes.size() - 16 : 12 + 8;
  for (size_t i = 0; i < 7; ++i) bytes[at + i] = static_cast<std::byte>(random_() & 0xff);
  if (options_.version == 3 && Pick(2) == 0) bytes[11] |= std::byte{5};
  const Superblock superblock = Superblock(options_.base, bytes).Unmarked(end);
  return {superblock.bytes().begin(), superblock.bytes().end()};
}

LoggedFile PowerProgram::Parts(const std::shared_ptr<PowerDisk>& disk, std::unique_ptr<Device> file,
                               How how) const {
  LoggedFile parts{.file = std::move(file),
                   .writable = how != How::kReads,
                   .journal = how == How::kReads ? Journal::kOff : options_.journal,
                   .log = {.place = {.folder = disk->MakeFolder(),
                                     .name = kName,
                                     .segment_bytes = kSegmentBytes,
                                     .all = options_.tier},
                           .path = "/there/" + kName,
                           .commits = {},
                           .lanes = nullptr,
                           .reuse_bytes = options_.seed % 5 < 2 ? 400 : UINT64_MAX,
                           .request_bytes = 256}};  // so that there are states between
  if (options_.tier) {
    parts.left = [](const std::string&, int) {};
    parts.log.place.segment_bytes = kTierSegmentBytes;
    // Some tiers are small.
    if (options_.seed % 3 == 0) parts.log.place.most = kTierSegmentBytes / 4;
  }
  if (options_.full) {
    parts.log.next =
        std::exchange(parts.log.place, {.folder = disk->MakeFolder(TierBytes(options_.seed)),
                                        .name = kTier,
                                        .segment_bytes = kTierSegmentBytes,
                                        .all = true,
                                        .most = parts.log.place.most});
    parts.log.next->all = false;
    parts.log.next->segment_bytes = kSegmentBytes;
    parts.log.next->most = UINT64_MAX;
  }
  if (how == How::kGoesOn || options_.full) {
    parts.find_left = [this, disk, how](const Superblock&, LeftLog& left) {
      left.folder = FolderOfLog(*disk, options_);
      left.name = NameOfLog(*disk, options_.full);
      left.goes_on = how == How::kGoesOn && left.name == (options_.full ? kTier : kName);
      return Status();
    };
  }
  return parts;
}

// ---- the program

void PowerProgram::Run() {
  for (life_ = 0; life_ < options_.lives && wrong().empty(); ++life_) {
    call_ = 0;
    Live();
  }
}

void PowerProgram::Live() {
  if (options_.moves != PowerOptions::Moves::kWithCommits) {
    const bool threads = options_.moves != PowerOptions::Moves::kWhenFull;
    lanes_ = std::make_shared<Lanes>(threads ? 1 : 0);
    // They work when this thread says so.
    if (options_.moves == PowerOptions::Moves::kLater) lanes_->Pause();
  }
  disk_->halves = !power() && Pick(2) == 0;
  const uint64_t full = tidelane::Read(Fallback::kTierFull);
  if (OpenFile()) {
    failing_ = options_.faults && Pick(2) == 0;
    for (call_ = 0; call_ < options_.calls && wrong().empty(); ++call_) Call();
  }
  if (wrong().empty()) EndLife();
  {
    MutexLock lock(mutex_);
    tally_.went_on += tidelane::Read(Fallback::kTierFull) - full;
  }
  failing_ = false;
  if (store_ != nullptr) static_cast<void>(store_->Close());
  if (options_.moves == PowerOptions::Moves::kLater) {
    while (lanes_->RunQueued()) {
    }
    lanes_->Resume();
  }
  store_.reset();
  lanes_.reset();
  disk_->after_change = nullptr;
  MutexLock lock(mutex_);
  durable_ = !power();
  if (end_ == nullptr && lost_) KeepEnd();
  lost_ = false;
  if (end_ == nullptr) return;
  disk_ = std::exchange(end_, nullptr);
  images_ = std::move(images_of_end_);
  durable_ = end_is_durable_;
}

bool PowerProgram::OpenFile() {
  disk_->plan = [this](FaultPoint point, uint64_t, uint64_t size) { return Plan(point, size); };
  const bool created = !disk_->Has(kName);
  {
    MutexLock lock(mutex_);
    if (created) {
      if (!images_.empty() && !images_.front().none) Wrong("the file is not there any more");
      images_.assign(1, {.bytes = {}, .none = true, .whole = false});
    }
  }
  disk_->after_change = [this] { AfterChange(); };
  if (created) disk_->Create(kName);
  // Killed before it had a superblock: a program can but make it anew.
  Superblock left;
  static_cast<void>(Superblock::Find(*disk_->Open(kName), left));
  if (left.empty()) static_cast<void>(disk_->Open(kName)->Truncate(0));
  for (uint64_t movers = options_.tier ? Pick(3) : 0; movers != 0; --movers) MovePart();
  LoggedFile parts =
      Parts(disk_, disk_->Open(kName), options_.tier && Pick(4) != 0 ? How::kGoesOn : How::kWrites);
  const uint64_t continued = Read(Counter::kLogsContinued);
  parts.log.lanes = lanes_.get();
  store_ = std::make_unique<LoggedStore>(std::move(parts));
  finished_ = false;
  const Status status = store_->Settle();
  model_.assign(store_->size(), std::byte{});
  const int error = store_->Read(0, model_.data(), model_.size());
  MutexLock lock(mutex_);
  tally_.continued += Read(Counter::kLogsContinued) - continued;
  if (!status.ok() || error != 0) {
    Wrong("it cannot be opened again: " + status.Message());
    return false;
  }
  const Superblock found(options_.base,
                         std::span(model_).subspan(std::min<size_t>(options_.base, model_.size())));
  if (const std::string differs = Differs({.bytes = model_, .recovered = false});
      !differs.empty()) {
    Wrong("opened again: " + differs);
    return false;
  }
  has_superblock_ = !found.empty();
  // Were power cut now, it may still be what it was before that program ended.
  if (durable_) images_.clear();
  images_.push_back(Now(found.empty()));
  images_.back().whole = false;
  return true;
}

// A mover, until somebody asks for the file.
void PowerProgram::MovePart() {
  const std::unique_ptr<Device> file = disk_->Open(kName);
  const std::string log = NameOfLog(*disk_, options_.full);
  const std::unique_ptr<Folder> folder = FolderOfLog(*disk_, options_);
  Superblock marked;
  static_cast<void>(Superblock::Find(*file, marked));
  if (!marked.marked()) return;
  progress_.between_syncs = 500;
  if (moved_ != disk_->Contents(kName)) progress_.Forget();
  Snapshot snapshot;
  Status status = ReadSnapshot(*folder, log, kName, marked, true, snapshot, progress_.known());
  const auto plan = std::exchange(disk_->plan, nullptr);
  uint64_t left = Pick(20);
  if (Pick(4) != 0) {
    disk_->plan = [&left](FaultPoint point, uint64_t, uint64_t) {
      if (point == FaultPoint::kSync)
        return Fault{};  // a sync that has failed loses what it was for
      if (point != FaultPoint::kWrite || left == 0)
        return Fault{.code = left == 0 ? EWOULDBLOCK : 0};
      --left;
      return Fault{};
    };
  }
  const bool goes_on = std::ranges::any_of(progress_.stored, [](uint64_t at) { return at != 0; });
  if (status.ok()) status = Restore(*file, *folder, kName, snapshot, !power(), &progress_);
  disk_->plan = plan;
  moved_ = disk_->Contents(kName);
  MutexLock lock(mutex_);
  if (!status.ok() && status.code() != EWOULDBLOCK) Wrong("a mover: " + status.Message());
  if (goes_on) ++tally_.moved_on;
}

Fault PowerProgram::Plan(FaultPoint point, uint64_t size) {
  if (!failing_.load(std::memory_order_relaxed) || point == FaultPoint::kRead) return {};
  MutexLock lock(mutex_);
  const uint64_t drawn = fault_random_();
  const bool hit = point == FaultPoint::kSync ? drawn % 60 == 0 : drawn % 40 == 0;
  if (!hit) return {};
  if (point == FaultPoint::kSync) lost_ = true;
  // All, or nothing, or some whole sectors of it.
  const uint64_t way = drawn >> 32 & 3;
  return {.code = point == FaultPoint::kSync ? EIO : ENOSPC,
          .written_first = way == 0                 ? size
                           : way == 1 && size > 512 ? 512 * (drawn >> 40 & 3)
                                                    : 0};
}

void PowerProgram::Call() {
  const uint64_t what = Pick(20);
  if (!has_superblock_ && Pick(3) == 0) return WriteSuperblock(Pick(2) == 0);
  if (options_.moves == PowerOptions::Moves::kLater && Pick(8) == 0)
    static_cast<void>(lanes_->RunQueued());
  if (what < 11) {
    Write();
  } else if (what < 13) {
    Cut();
  } else if (what < 15) {
    WriteSuperblock(Pick(2) == 0);
  } else if (what < 19) {
    CommitNow(false);
  } else {
    CheckRead();
  }
}

void PowerProgram::Put(uint64_t address, const Bytes& bytes) {
  model_.resize(std::max<uint64_t>(model_.size(), address + bytes.size()));
  std::ranges::copy(bytes, model_.begin() + static_cast<ptrdiff_t>(address));
}

// After a call that failed: of these bytes any may be there.
void PowerProgram::Resync(int error, uint64_t begin, uint64_t end) {
  if (error == 0) return;
  Bytes found(store_->size());
  const int read = store_->Read(0, found.data(), found.size());
  MutexLock lock(mutex_);
  ++tally_.failed_calls;
  if (!failing_) return Wrong("a call failed: " + std::to_string(error));
  if (read != 0) return Wrong("no read after a call that failed");
  for (uint64_t i = 0; i < std::max(found.size(), model_.size()); ++i) {
    if (begin <= i && i < end) continue;
    const std::byte before = i < model_.size() ? model_[i] : std::byte{};
    const std::byte now = i < found.size() ? found[i] : std::byte{};
    if (before != now)
      return Wrong("a call that failed has changed the byte at " + std::to_string(i));
  }
  model_ = std::move(found);
}

void PowerProgram::Write() {
  const uint64_t first = options_.base + SuperblockOfVersion(options_.version).size();
  uint64_t begin =
      Pick(3) == 0 ? std::max<uint64_t>(first, model_.size()) : first + Pick(kFileBytes - first);
  if (!rewritten_.empty() && Pick(3) == 0) begin = rewritten_.front();
  const size_t count = Pick(2) == 0 ? 1 : 1 + Pick(4);
  tidelane::Run run;
  run.begin = run.end = begin;
  std::vector<Bytes> contents;
  for (size_t i = 0; i < count; ++i) {
    const uint64_t gap = i == 0 || Pick(2) == 0 ? 0 : 1 + Pick(300);
    const uint64_t size = 1 + Pick(Pick(2) == 0 ? 60 : kLongestWrite);
    run.gap_bytes += gap;
    contents.push_back(RandomBytes(size));
    run.extents.push_back({});
    run.extents.back().address = run.end + gap;
    run.extents.back().size = size;
    run.end += gap + size;
  }
  for (size_t i = 0; i < count; ++i) run.extents[i].data = contents[i].data();
  int error = 0;
  if (count == 1 && Pick(2) == 0) {
    run.extents.clear();
    error = store_->WriteBytes(run, contents[0].data());
    if (error == 0) Put(run.begin, contents[0]);
  } else {
    const std::vector<Extent> extents = run.extents;
    error = store_->Write(run);
    for (size_t i = 0; i < count && error == 0; ++i) Put(extents[i].address, contents[i]);
  }
  Resync(error, run.begin, run.end);
  rewritten_.assign(1, begin);
}

void PowerProgram::WriteSuperblock(bool among_others) {
  const Bytes superblock = NewSuperblock(std::max<uint64_t>(
      model_.size(), options_.base + SuperblockOfVersion(options_.version).size()));
  store_->SetSuperblock(options_.base, options_.base + superblock.size());
  Bytes bytes = superblock;
  if (among_others) {
    const Bytes more = RandomBytes(1 + Pick(200));
    bytes.insert(bytes.end(), more.begin(), more.end());
  }
  tidelane::Run run;
  run.begin = options_.base;
  run.end = run.begin + bytes.size();
  // Its end is what it is after this write.
  const Superblock right =
      Superblock(options_.base, superblock).Unmarked(std::max<uint64_t>(model_.size(), run.end));
  std::ranges::copy(right.bytes(), bytes.begin());
  const int error = store_->WriteBytes(run, bytes.data());
  if (error == 0) Put(run.begin, bytes);
  Resync(error, run.begin, run.end);
  has_superblock_ =
      model_.size() > options_.base + 16 && SuperblockSize(model_.data() + options_.base, 16) != 0;
}

void PowerProgram::Cut() {
  const uint64_t first = options_.base + SuperblockOfVersion(options_.version).size();
  const uint64_t size = Pick(3) != 0 && model_.size() > first
                            ? first + Pick(model_.size() - first + 1)
                            : first + Pick(kFileBytes - first);
  if (!has_superblock_ && size < model_.size()) return;
  const uint64_t before = model_.size();
  const int error = store_->SetSize(size);
  if (error == 0) {
    model_.resize(size);
  } else {
    Resync(error, std::min(before, size), std::max(before, size));
  }
}

void PowerProgram::CheckRead() {
  const uint64_t begin = Pick(kFileBytes);
  Bytes bytes(1 + Pick(kFileBytes), std::byte{0x55});
  const int error = store_->Read(begin, bytes.data(), bytes.size());
  MutexLock lock(mutex_);
  if (error != 0) return Wrong("a read failed");
  if (store_->size() != model_.size())
    return Wrong("the size is " + std::to_string(store_->size()) + " instead of " +
                 std::to_string(model_.size()));
  for (size_t i = 0; i < bytes.size(); ++i) {
    const std::byte right = begin + i < model_.size() ? model_[begin + i] : std::byte{};
    if (bytes[i] != right)
      return Wrong("a read of " + std::to_string(begin) + " is wrong at " +
                   std::to_string(begin + i) + ": " +
                   std::to_string(std::to_integer<unsigned>(bytes[i])) + " instead of " +
                   std::to_string(std::to_integer<unsigned>(right)));
  }
}

uint64_t PowerProgram::EndInModel() const { return EndInSuperblock(model_.data() + options_.base); }

PowerProgram::Image PowerProgram::Now(bool none) const {
  return {.bytes = model_, .none = none, .whole = !none && EndInModel() == model_.size()};
}

void PowerProgram::CommitNow(bool closing) {
  // Natively nothing is flushed without it; and not more than it tells is promised.
  if (!has_superblock_ || EndInModel() > model_.size() || closing || Pick(8) != 0) {
    if (!has_superblock_ || EndInModel() != model_.size() || Pick(4) == 0) WriteSuperblock(false);
  }
  if (!has_superblock_ || EndInModel() > model_.size()) return;  // it failed
  CheckRead();
  {
    MutexLock lock(mutex_);
    images_.push_back(Now(false));
  }
  const int error = closing ? store_->Finish() : store_->Commit(Committing::kNow);
  {
    MutexLock lock(mutex_);
    if (error != 0) {
      ++tally_.failed_commits;
      if (!failing_) Wrong("a commit failed: " + std::to_string(error));
    } else {
      ++tally_.commits;
      images_.erase(images_.begin(), images_.end() - 1);
    }
  }
  AfterChange();
  if (!closing) CheckRead();
}

void PowerProgram::EndLife() {
  // Killed, and opened at once; or one of the ends that were made up on the way, or here.
  const uint64_t way = Pick(4);
  {
    MutexLock lock(mutex_);
    if (way == 0 && end_ != nullptr) return;
    end_ = nullptr;
    if (way == 1) KeepEnd();
  }
  if (way < 3 || store_ == nullptr) return;
  CommitNow(true);
  MutexLock lock(mutex_);
  ++tally_.closes;
}

}  // namespace tidelane::log
