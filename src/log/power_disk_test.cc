#include "log/power_disk.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace tidelane::log {
namespace {

constexpr uint64_t kTorn = 512;

bool Coin(PowerDisk::Rng& random) { return (random() >> 20 & 1) != 0; }

}  // namespace

void PowerDisk::Apply(const EntryChange& change, Entries& entries) {
  if (!change.gone.empty()) entries.erase(change.gone);
  if (!change.name.empty()) entries[change.name] = change.file;
}

void PowerDisk::Apply(const Change& change, Bytes& bytes) {
  if (change.is_size) return bytes.resize(change.address);
  bytes.resize(std::max<uint64_t>(bytes.size(), change.address + change.bytes.size()));
  std::ranges::copy(change.bytes, bytes.begin() + static_cast<ptrdiff_t>(change.address));
}

void PowerDisk::ApplyTorn(const Change& change, Rng& random, Bytes& bytes) {
  if (change.is_size) {
    if (Coin(random)) bytes.resize(change.address);
    return;
  }
  const uint64_t end = change.address + change.bytes.size();
  if (Coin(random)) bytes.resize(std::max<uint64_t>(bytes.size(), end));
  for (uint64_t at = change.address; at < end;) {
    const uint64_t next = std::min(end, (at / kTorn + 1) * kTorn);
    if (Coin(random)) {
      bytes.resize(std::max<uint64_t>(bytes.size(), next));
      std::copy(change.bytes.begin() + static_cast<ptrdiff_t>(at - change.address),
                change.bytes.begin() + static_cast<ptrdiff_t>(next - change.address),
                bytes.begin() + static_cast<ptrdiff_t>(at));
    }
    at = next;
  }
}

PowerDisk::Bytes PowerDisk::Survived(const File& file, Rng& random) {
  Bytes bytes = file.durable;
  const size_t count = file.unsynced.size();
  if (count == 0) return bytes;
  const uint64_t way = random() % 6;
  if (way == 0) return bytes;
  if (way == 1) {
    for (const Change& change : file.unsynced) Apply(change, bytes);
    return bytes;
  }
  const size_t whole = way < 4 ? random() % count : 0;
  for (size_t i = 0; i < count; ++i) {
    const Change& change = file.unsynced[i];
    if (way < 4) {  // the first ones, and a part of one more
      if (i < whole) Apply(change, bytes);
      if (i == whole) ApplyTorn(change, random, bytes);
    } else {
      const uint64_t fate = random() % 3;
      if (fate == 1) Apply(change, bytes);
      if (fate == 2) ApplyTorn(change, random, bytes);
    }
  }
  return bytes;
}

void PowerDisk::Add(const std::string& name, Bytes bytes) {
  MutexLock lock(mutex_);
  const uint64_t number = next_file_++;
  File& file = files_[number];
  file.durable = bytes;
  file.bytes = std::move(bytes);
  entries_[name] = durable_entries_[name] = number;
}

void PowerDisk::Create(const std::string& name) {
  uint64_t number = 0;
  {
    MutexLock lock(mutex_);
    number = next_file_++;
    files_[number] = {};
  }
  static_cast<void>(DoEntry({.gone = {}, .name = name, .file = number}));
}

bool PowerDisk::Has(const std::string& name) const {
  MutexLock lock(mutex_);
  return entries_.contains(name);
}

std::vector<std::string> PowerDisk::Names() const {
  MutexLock lock(mutex_);
  std::vector<std::string> names;
  for (const auto& [name, file] : entries_) names.push_back(name);
  return names;
}

PowerDisk::Bytes PowerDisk::Contents(const std::string& name) const {
  MutexLock lock(mutex_);
  const auto found = entries_.find(name);
  return found == entries_.end() ? Bytes() : files_.at(found->second).bytes;
}

uint64_t PowerDisk::changes() const {
  MutexLock lock(mutex_);
  return changes_;
}

void PowerDisk::Do(uint64_t file, Change change) {
  {
    MutexLock lock(mutex_);
    File& changed = files_.at(file);
    ++changes_;
    Apply(change, changed.bytes);
    if (power_) changed.unsynced.push_back(std::move(change));
  }
  Changed();
}

int PowerDisk::Sync(uint64_t number) {
  const Fault fault = Ask(FaultPoint::kSync, 0, 0);
  {
    MutexLock lock(mutex_);
    File& file = files_.at(number);
    ++changes_;
    // What a sync that failed has lost stays lost, though programs see it.
    if (fault.code == 0) {
      for (const Change& change : file.unsynced) Apply(change, file.durable);
    } else {
      file.durable = Survived(file, random_);
    }
    file.unsynced.clear();
  }
  Changed();
  return fault.code;
}

int PowerDisk::DoEntry(const EntryChange& change) {
  {
    MutexLock lock(mutex_);
    ++changes_;
    Apply(change, entries_);
    if (power_) unsynced_entries_.push_back(change);
  }
  Changed();
  return 0;
}

int PowerDisk::SyncEntries() {
  const Fault fault = Ask(FaultPoint::kSync, 0, 0);
  {
    MutexLock lock(mutex_);
    ++changes_;
    for (const EntryChange& change : unsynced_entries_) {
      if (fault.code == 0 || Coin(random_)) Apply(change, durable_entries_);
    }
    unsynced_entries_.clear();
  }
  Changed();
  return fault.code;
}

std::shared_ptr<PowerDisk> PowerDisk::AfterEnd() const {
  auto after = std::make_shared<PowerDisk>(power_);
  MutexLock lock(mutex_);
  MutexLock other(after->mutex_);
  after->next_file_ = next_file_;
  after->files_ = files_;
  for (auto& [number, file] : after->files_) file.claimed = false;
  after->entries_ = entries_;
  after->durable_entries_ = durable_entries_;
  after->unsynced_entries_ = unsynced_entries_;
  return after;
}

std::shared_ptr<PowerDisk> PowerDisk::AfterCut(Rng& random) const {
  auto after = std::make_shared<PowerDisk>(power_);
  MutexLock lock(mutex_);
  MutexLock other(after->mutex_);
  after->next_file_ = next_file_;
  Entries entries = durable_entries_;
  const uint64_t way = random() % 4;
  for (const EntryChange& change : unsynced_entries_) {
    if (way == 0 || (way != 1 && Coin(random))) Apply(change, entries);
  }
  for (const auto& [name, number] : entries) {
    File& file = after->files_[number];
    file.bytes = file.durable = Survived(files_.at(number), random);
  }
  after->entries_ = after->durable_entries_ = std::move(entries);
  return after;
}

// One opening of a file.
class PowerDevice final : public Device {
 public:
  PowerDevice(std::shared_ptr<PowerDisk> disk, uint64_t file, bool claims, uint64_t most)
      : disk_(std::move(disk)), file_(file), claims_(claims), most_(most) {}
  ~PowerDevice() override {
    MutexLock lock(disk_->mutex_);
    if (claims_) disk_->files_.at(file_).claimed = false;
  }

  int Read(uint64_t address, void* buffer, size_t n) override {
    if (const Fault fault = disk_->Ask(FaultPoint::kRead, address, n); fault.code != 0)
      return fault.code;
    MutexLock lock(disk_->mutex_);
    const PowerDisk::Bytes& bytes = disk_->files_.at(file_).bytes;
    const size_t there =
        address >= bytes.size() ? 0 : std::min<uint64_t>(n, bytes.size() - address);
    if (there != 0) std::memcpy(buffer, bytes.data() + address, there);
    if (there < n) std::memset(static_cast<std::byte*>(buffer) + there, 0, n - there);
    return 0;
  }
  int Write(uint64_t address, const struct iovec* parts, size_t count) override {
    PowerDisk::Bytes bytes;
    for (size_t i = 0; i < count; ++i) {
      const auto* const from = static_cast<const std::byte*>(parts[i].iov_base);
      bytes.insert(bytes.end(), from, from + parts[i].iov_len);
    }
    Fault fault = disk_->Ask(FaultPoint::kWrite, address, bytes.size());
    // As file systems do: what has room is there.
    if (fault.code == 0 && address + bytes.size() > most_)
      fault = {.code = ENOSPC, .written_first = most_ > address ? most_ - address : 0};
    if (fault.code != 0) bytes.resize(std::min<uint64_t>(fault.written_first, bytes.size()));
    if (bytes.empty()) return fault.code;
    const uint64_t first = kTorn - address % kTorn;
    if (disk_->halves && first < bytes.size()) {
      const auto half = bytes.begin() + static_cast<ptrdiff_t>(first);
      disk_->Do(file_, {.is_size = false, .address = address, .bytes = {bytes.begin(), half}});
      disk_->Do(file_,
                {.is_size = false, .address = address + first, .bytes = {half, bytes.end()}});
    } else {
      disk_->Do(file_, {.is_size = false, .address = address, .bytes = std::move(bytes)});
    }
    return fault.code;
  }
  int Truncate(uint64_t size) override {
    if (const Fault fault = disk_->Ask(FaultPoint::kTruncate, size, 0); fault.code != 0)
      return fault.code;
    disk_->Do(file_, {.is_size = true, .address = size, .bytes = {}});
    return 0;
  }
  int Reserve(uint64_t, uint64_t) override { return EOPNOTSUPP; }
  int Size(uint64_t& size) override {
    MutexLock lock(disk_->mutex_);
    size = disk_->files_.at(file_).bytes.size();
    return 0;
  }
  int Lock(bool) override { return 0; }
  int Unlock() override { return 0; }
  int Sync() override { return disk_->Sync(file_); }
  int Close() override { return 0; }
  int* descriptor() override { return &descriptor_; }
  uint64_t file() const { return file_; }

 private:
  const std::shared_ptr<PowerDisk> disk_;
  const uint64_t file_;
  const bool claims_;
  const uint64_t most_;
  int descriptor_ = -1;
};

class PowerFolder final : public Folder {
 public:
  PowerFolder(std::shared_ptr<PowerDisk> disk, uint64_t most)
      : disk_(std::move(disk)), most_(most) {}

  int Make(const std::string& name, std::unique_ptr<Device>& file) override {
    if (disk_->Has(name)) return EEXIST;
    if (const Fault fault = disk_->Ask(FaultPoint::kWrite, 0, 0); fault.code != 0)
      return fault.code;
    disk_->Create(name);
    return Open(name, true, file);
  }
  int Open(const std::string& name, bool claims, std::unique_ptr<Device>& file) override {
    MutexLock lock(disk_->mutex_);
    const auto found = disk_->entries_.find(name);
    if (found == disk_->entries_.end()) return ENOENT;
    bool& claimed = disk_->files_.at(found->second).claimed;
    if (claims && claimed) return EWOULDBLOCK;
    claimed |= claims;
    file = std::make_unique<PowerDevice>(disk_, found->second, claims, most_);
    return 0;
  }
  int Rename(const std::string& from, const std::string& to) override {
    uint64_t file = 0;
    {
      MutexLock lock(disk_->mutex_);
      const auto found = disk_->entries_.find(from);
      if (found == disk_->entries_.end()) return ENOENT;
      if (disk_->entries_.contains(to)) return EEXIST;
      file = found->second;
    }
    if (const Fault fault = disk_->Ask(FaultPoint::kWrite, 0, 0); fault.code != 0)
      return fault.code;
    return disk_->DoEntry({.gone = from, .name = to, .file = file});
  }
  int Remove(const std::string& name, Device& file) override {
    {
      MutexLock lock(disk_->mutex_);
      const auto found = disk_->entries_.find(name);
      if (found == disk_->entries_.end()) return ENOENT;
      if (found->second != static_cast<PowerDevice&>(file).file()) return ESTALE;
    }
    if (const Fault fault = disk_->Ask(FaultPoint::kWrite, 0, 0); fault.code != 0)
      return fault.code;
    return disk_->DoEntry({.gone = name, .name = {}, .file = 0});
  }
  int Sync() override { return disk_->SyncEntries(); }

 private:
  const std::shared_ptr<PowerDisk> disk_;
  const uint64_t most_;
};

std::unique_ptr<Device> PowerDisk::Open(const std::string& name) {
  uint64_t number = 0;
  {
    MutexLock lock(mutex_);
    const auto found = entries_.find(name);
    if (found == entries_.end()) return nullptr;
    number = found->second;
  }
  return std::make_unique<PowerDevice>(shared_from_this(), number, false, UINT64_MAX);
}

std::unique_ptr<Folder> PowerDisk::MakeFolder(uint64_t most) {
  return std::make_unique<PowerFolder>(shared_from_this(), most);
}

}  // namespace tidelane::log
