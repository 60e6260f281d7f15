#include "model/read_phases.h"

#include <algorithm>

#include "base/decisions.h"
#include "model/history_key.h"

namespace tidelane::model {
namespace {

// A phase of which less than one byte in so many was lanes' was the program's, and the other way round.
constexpr double kMixed = 10;
// A copy of so little tells nothing of what copies cost.
constexpr double kTelling = 16 * 1024;

}  // namespace

void ReadPhases::Device::Clear() {
  for (Sum* sum : {&reads, &bytes, &copied_bytes, &copy_ns}) sum->Set(0);
  awaited.Clear();
  later.Clear();
}

void ReadPhases::Take(Device& slot, uint64_t device) {
  MutexLock lock(mutex_);
  slot.Clear();
  slot.known = slot.untaken = {};
  slot.name.Set(device + 1);
}

void ReadPhases::End(uint64_t device, const Read& read) {
  Device& slot = Slot(device);
  if (slot.name.get() != device + 1) Take(slot, device);
  slot.reads.Add(1);
  slot.bytes.Add(read.bytes);
  if (read.copied_bytes != 0) {
    slot.copied_bytes.Add(read.copied_bytes);
    slot.copy_ns.Add(read.copy_ns);
  }
  last_end_ns_.Set(read.end_ns);
}

void ReadPhases::Answered(uint64_t device, For whom, const Request& request) {
  Device& slot = Slot(device);
  if (slot.name.get() != device + 1) Take(slot, device);
  Requests& requests = whom == For::kProgram ? slot.awaited : slot.later;
  requests.Add(request.bytes, request.begin_ns, request.end_ns);
}

void ReadPhases::Waited(uint64_t ns) { waited_ns_.Add(ns); }

void ReadPhases::NextPhase() {
  MutexLock lock(mutex_);
  const uint64_t burst = burst_ns_.get();
  if (burst == begin_ns_.get()) return;  // another thread was faster
  if (begin_ns_.get() != 0 && begin_ns_.get() < burst) EndPhase(burst, false);
  begin_ns_.Set(burst);
  small_ns_.Set(lead_ns_.get());
  lead_ns_.Set(0);
}

void ReadPhases::EndPhase(uint64_t now_ns, bool last) {
  Epoch epoch;
  epoch.last = last;
  epoch.seconds = Seconds(now_ns - begin_ns_.get());
  epoch.small = Seconds(small_ns_.get());
  epoch.compute = epoch.seconds - Seconds(waited_ns_.get()) - epoch.small;
  for (const Device& device : devices_)
    epoch.compute -= device.awaited.seconds() + Seconds(device.copy_ns.get());
  epoch.compute = std::max(epoch.compute, 0.0);
  for (Device& device : devices_) {
    if (device.bytes.get() >= kLittle) LookBack(device, epoch);
    device.Clear();
  }
  waited_ns_.Set(0);
  small_ns_.Set(0);
}

void ReadPhases::LookBack(Device& device, Epoch epoch) {
  const bool hidden = 2 * device.HiddenBytes() >= device.bytes.get();
  // Small reads are a part of what the program waits for; but where lanes read the large ones, they work meanwhile.
  if (hidden) epoch.compute += std::exchange(epoch.small, 0);
  NoteReadEpoch({.async = hidden,
                 .seconds = epoch.seconds,
                 .expected = epoch.last ? std::nullopt : Expected(device, hidden)});
  for (LearnedReads* to : {&device.known, &device.untaken}) Learn(device, epoch, *to);
}

std::optional<double> ReadPhases::Expected(const Device& device, bool hidden) const {
  const LearnedReads& known = device.known;
  if (known.compute.count() == 0) return std::nullopt;
  const double bytes = known.bytes.mean();
  const auto sync = known.sync.Predict(bytes, times_.ranks);
  const auto lanes = known.lanes.Predict(bytes, times_.ranks);
  const auto& io = hidden && lanes ? lanes : sync ? sync : lanes;
  if (!io) return std::nullopt;
  const EpochTimes times{io->seconds, known.compute.mean(),
                         known.copy.Seconds(known.read_bytes.mean(), bytes)};
  return hidden ? AsyncEpoch(times) : SyncEpoch(times);
}

void ReadPhases::Learn(const Device& device, const Epoch& epoch, LearnedReads& to) {
  const auto bytes = static_cast<double>(device.bytes.get());
  const auto hidden = static_cast<double>(device.HiddenBytes());
  const auto awaited = static_cast<double>(device.awaited.bytes());
  const auto later = static_cast<double>(device.later.bytes());
  const auto copied = static_cast<double>(device.copied_bytes.get());
  const double read_bytes = bytes / static_cast<double>(device.reads.get());
  constexpr auto kEnough = static_cast<double>(kLittle);
  ++to.epochs;
  // Where the program and lanes asked for much at the same time, neither had storage for itself.
  if (awaited >= kEnough && hidden * kMixed < bytes)
    to.sync.Add(awaited, times_.ranks, device.awaited.seconds() + epoch.small);
  if (later >= kEnough && awaited * kMixed < later)
    to.lanes.Add(later, times_.ranks, device.later.seconds());
  if (copied >= kTelling) to.copy.Add(read_bytes, copied, Seconds(device.copy_ns.get()));
  if (epoch.last) return;  // what follows is the program's end
  to.bytes.Add(bytes), to.read_bytes.Add(read_bytes);
  to.compute.Add(epoch.compute);
}

void ReadPhases::Finish(uint64_t now_ns) {
  MutexLock lock(mutex_);
  const uint64_t last_end = last_end_ns_.get();
  if (last_end == 0 || begin_ns_.get() == 0) return;
  EndPhase(std::max(std::min(now_ns, last_end), begin_ns_.get()), true);
  begin_ns_.Set(0);
  burst_ns_.Set(0);
  last_end_ns_.Set(0);
  for (const Device& device : devices_) Tell(device);
}

void ReadPhases::Tell(const Device& device) {
  const LearnedReads& known = device.known;
  if (known.epochs == 0) return;
  const double bytes = std::max(known.bytes.mean(), 1.0);
  const double copy = known.copy.Seconds(known.read_bytes.mean(), bytes);
  NoteReads(FileSystemName(device.name.get() - 1),
            {.sync = RateToTell(known.sync, bytes, times_.ranks),
             .lanes = RateToTell(known.lanes, bytes, times_.ranks),
             .copy_bytes_per_second = copy > 0 ? bytes / copy : 0});
}

std::vector<std::pair<std::string, LearnedReads>> ReadPhases::TakeLearnings(uint64_t epochs) {
  MutexLock lock(mutex_);
  std::vector<std::pair<std::string, LearnedReads>> learnings;
  for (Device& device : devices_) {
    if (device.untaken.epochs < epochs || device.name.get() == 0) continue;
    learnings.emplace_back(FileSystemName(device.name.get() - 1),
                           std::exchange(device.untaken, {}));
  }
  return learnings;
}

void ReadPhases::UnlockAfterFork(bool child) {
  if (child) {
    for (Device& device : devices_) {
      device.Clear();
      device.untaken = {};
    }
    for (Sum* sum : {&begin_ns_, &burst_ns_, &last_end_ns_, &waited_ns_, &small_ns_, &lead_ns_})
      sum->Set(0);
  }
  mutex_.unlock();
}

}  // namespace tidelane::model
