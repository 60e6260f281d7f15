#include "model/cost_model.h"

#include <algorithm>
#include <cmath>

#include "base/trace.h"
#include "model/joined_writes.h"

namespace tidelane::model {
namespace {

constexpr uint64_t kMib = 1u << 20;
constexpr uint64_t kTelling = 16 * 1024;       // shorter requests say little about storage,
constexpr uint64_t kTellingRate = 256 * 1024;  // and these little about how much passes
// Storage that answers as memory does: so long for each MiB, besides what a request takes.
constexpr uint64_t kQuickMibNs = 1'000'000;
// Slower storage, before it was seen: a network's or a disk's 100 MB/s.
constexpr uint64_t kUsualMibNs = 10'000'000;
constexpr double kSurePause = 0.01;  // seconds: a busy machine stops a program for less
constexpr double kCheaper = 0.97;    // what the other mode must cost at most to be taken up,
constexpr double kClearly = 0.9;     // and to write oneself to storage that is slower than memory
constexpr uint64_t kEpochsToTell =
    3;  // before slower storage is written to by the program, or phases may be longer
constexpr double kMixed =
    10;  // a phase of which less than one in so many was copied was the program's
constexpr double kStillUsual =
    4;  // a phase longer than so many usual ones is not followed by a usual pause
// Of a phase that is hidden, to be worth its copy: as long as little is known of pauses, and later.
constexpr double kMuch = 0.5, kSome = 0.15;
constexpr double kLeft = 0.25;  // of a usual phase, when the next one begins
constexpr double kUsualCopy =
    2;  // a copy that took more than so many times the usual met fresh pages, or a busy machine

constexpr auto kRelaxed = std::memory_order_relaxed;

// Of a phase that is handed over, how much really is: where storage is quick, what pauses can hide.
double HiddenShare(bool quick, const Learned& known, double lanes_seconds, double bytes) {
  if (!quick || known.bytes.mean() <= 0) return 1;
  const double usual = lanes_seconds * known.bytes.mean() / bytes;
  const double slack = known.slack.mean();
  return usual <= slack ? 1 : std::min(1.0, slack / lanes_seconds);
}

}  // namespace

void CostModel::Tally::Clear() {
  for (Sum* sum : {&bytes, &writes, &copied_bytes, &copy_ns, &visible_ns}) sum->Set(0);
}

CostModel::CostModel(const Times& times)
    : times_(times),
      pauses_(times.shortest_pause_ns),
      reads_({.shortest_pause_ns = times.shortest_pause_ns, .ranks = times.ranks}) {}

uint64_t CostModel::NsPerMib(const Device& device) const {
  const uint64_t seen = device.ns_per_mib.load(kRelaxed);
  return seen != 0 ? seen : IsQuick(device) ? kQuickMibNs : kUsualMibNs;
}

bool CostModel::Opened(uint64_t device, bool promises) {
  Device& slot = Slot(device);
  if ((slot.name.load(kRelaxed) & ~uint64_t{1}) != Name(device)) {
    MutexLock lock(mutex_);
    slot.tally.Clear();
    slot.speed.Begin(promises);
    slot.stored.Clear();
    slot.title.clear(), slot.file.clear();
    slot.earlier_runs = 0, slot.remembered = false;
    slot.async.reset(), slot.forecast.reset();
    slot.known = {}, slot.own = {}, slot.left = 0, slot.log_bytes = {};
    slot.ns_per_mib.store(0, kRelaxed);
    slot.request_ns.store(0, kRelaxed);
    slot.blocks.Forget();
    slot.name.store(Name(device) | (promises ? 1 : 0), kRelaxed);
    Decide(slot);
  }
  return QuickOn(device);
}

bool CostModel::Remembers(uint64_t device) {
  const Device& slot = Slot(device);
  if ((slot.name.load(kRelaxed) & ~uint64_t{1}) != Name(device)) return false;
  MutexLock lock(mutex_);
  return slot.remembered;
}

void CostModel::Remember(uint64_t device, std::string name, const Learned& learned, uint64_t runs) {
  MutexLock lock(mutex_);
  Device& slot = Slot(device);
  slot.title = std::move(name);
  slot.remembered = true;
  slot.earlier_runs = runs;
  slot.known = learned;
  slot.known.Merge(slot.own);
  slot.async.reset();
  Decide(slot);
}

CostModel::WriteBudget CostModel::Begin(uint64_t now_ns, const Place& place, uint64_t bytes) {
  const uint64_t last_end = pauses_.last_end_ns();
  Device& slot = Slot(place.device);
  if (last_end == 0 || pauses_.Pausing(now_ns)) NextEpoch(now_ns);
  if (slot.tally.bytes.get() == 0) {
    slot.mode.store(place.mode, kRelaxed);
    slot.room.store(place.room, kRelaxed);
    MutexLock lock(mutex_);
    slot.file = place.file;
    slot.held = place.held;
    Decide(slot);
  }
  const bool unusual = slot.tally.bytes.get() >= slot.usual.load(kRelaxed);
  slot.tally.bytes.Add(bytes);
  slot.tally.writes.Add(1);
  phase_bytes_.Add(bytes);
  return {unusual ? 0 : slot.allowance.load(kRelaxed), slot.anywhere.load(kRelaxed)};
}

void CostModel::End(uint64_t device, const Written& written) {
  Tally& tally = Slot(device).tally;
  tally.copied_bytes.Add(written.copied_bytes);
  tally.copy_ns.Add(written.copy_ns);
  tally.visible_ns.Add(written.end_ns - written.begin_ns);
  pauses_.Ended(written.end_ns);
  waited_since_end_ns_.Set(0);
}

uint64_t CostModel::Expected(uint64_t now_ns) const {
  if (!pauses_.Pausing(now_ns) || asked_early_.load(kRelaxed)) return 0;
  return phase_bytes_.get();
}

void CostModel::Asked(uint64_t now_ns) {
  JoinedWrites::OfProgram().Asked(now_ns);
  const uint64_t last_end = pauses_.last_end_ns();
  if (last_end == 0) return;
  if (asked_ns_.get() == 0) asked_ns_.Set(now_ns);
  for (Device& device : devices_) {
    const uint64_t takes = device.tally.bytes.get() / kMib * NsPerMib(device);
    if (takes == 0 || now_ns > last_end + takes) continue;
    asked_early_.store(true, kRelaxed);
    if (device.allowance.load(kRelaxed) != UINT64_MAX) device.allowance.store(0, kRelaxed);
  }
}

void CostModel::Waited(uint64_t ns) {
  waited_ns_.Add(ns);
  waited_since_end_ns_.Add(ns);
}

bool CostModel::Stored(uint64_t device, uint64_t bytes, uint64_t begin_ns, uint64_t end_ns) {
  const uint64_t ns = end_ns - begin_ns;
  Device& slot = Slot(device);
  const bool quick = slot.speed.Quick(ns < times_.quick_request_ns + bytes * kQuickMibNs / kMib);
  if (bytes >= kTelling) slot.name.store(Name(device) | (quick ? 1 : 0), kRelaxed);
  if (bytes >= kTellingRate) {
    const uint64_t before = NsPerMib(slot);
    slot.ns_per_mib.store((3 * before + ns * kMib / bytes) / 4, kRelaxed);
  } else {
    const uint64_t quickest = slot.request_ns.load(kRelaxed);
    // It creeps up, so that storage may become slower.
    if (quickest == 0 || ns < quickest) {
      slot.request_ns.store(std::max<uint64_t>(ns, 1), kRelaxed);
    } else {
      slot.request_ns.store(std::min(ns, quickest + quickest / 64), kRelaxed);
    }
  }
  slot.stored.Add(bytes, begin_ns, end_ns);
  return quick;
}

uint64_t CostModel::WorthARequest(uint64_t device, uint64_t unseen) const {
  const Device& slot = Slot(device);
  const uint64_t request_ns = slot.request_ns.load(kRelaxed);
  if (request_ns == 0) return unseen;
  const uint64_t ns_per_mib = std::max<uint64_t>(NsPerMib(slot), 1);
  return std::clamp(request_ns * kMib / ns_per_mib, kLeastPiece, kMostPiece);
}

void CostModel::NextEpoch(uint64_t now_ns) {
  MutexLock lock(mutex_);
  const uint64_t last_end = pauses_.last_end_ns();
  if (last_end != 0 && !pauses_.Pausing(now_ns)) return;
  if (phase_begin_ns_.get() == 0) {
    if (epoch_ == 0 && times_.start_ns != 0) NoteStart(Seconds(now_ns - times_.start_ns));
  } else if (phase_begin_ns_.get() <= last_end) {  // else another thread was faster
    EndPhase(now_ns, false);
  }
  phase_begin_ns_.Set(now_ns);
}

void CostModel::EndPhase(uint64_t now_ns, bool last) {
  const uint64_t last_end = pauses_.last_end_ns();
  const uint64_t asked = asked_ns_.get();
  const uint64_t paused =
      now_ns - std::min(last_end, now_ns);  // another thread may just have written
  const uint64_t waited = std::min(waited_since_end_ns_.get(), paused);
  Pause pause;
  pause.last = last;
  pause.begin_ns = phase_begin_ns_.get();
  pause.seconds = Seconds(now_ns - pause.begin_ns);
  pause.compute = Seconds(paused - waited);
  pause.asks = asked != 0;
  pause.waits = Seconds(waited_ns_.get());
  pause.slack = asked == 0         ? pause.compute
                : asked < last_end ? 0
                                   : std::min(Seconds(asked - last_end), pause.compute);
  const auto total = static_cast<double>(phase_bytes_.get());
  ++epoch_;
  for (Device& device : devices_) {
    const auto bytes = static_cast<double>(device.tally.bytes.get());
    if (bytes > 0) LookBack(device, pause, bytes / std::max(total, bytes));
    device.tally.Clear();
  }
  phase_bytes_.Set(0);
  asked_ns_.Set(0);
  asked_early_.store(false, kRelaxed);
  waited_ns_.Set(0);
  waited_since_end_ns_.Set(0);
}

void CostModel::LookBack(Device& device, const Pause& pause, double share) {
  const Tally& tally = device.tally;
  const uint64_t bytes = tally.bytes.get();
  if (bytes < kLittle) return;
  const double waited = Seconds(tally.visible_ns.get()) + pause.waits * share;
  // What was not copied yet must be known all the same, to tell what copying it would have cost the phases to come.
  // Measuring takes a millisecond or two: too much for a first pause that may have been none.
  const bool pauses = !pause.last && (epoch_ > 1 || pause.compute >= kSurePause);
  const bool matters = pauses && (bytes >= kWorthALane || !NothingToHide(device));
  if (matters && !device.known.copy.known()) times_.calibrate(device.known.copy);
  for (Learned* to : {&device.known, &device.own}) LearnRates(device, *to, waited);
  if (!pause.last) {
    device.log_bytes.Add(std::log(static_cast<double>(bytes)));
    for (Learned* to : {&device.known, &device.own}) LearnHabits(device, *to, pause, waited);
    const auto total = static_cast<double>(bytes);
    const Pace pace = PaceOf(device, total, total / static_cast<double>(tally.writes.get()));
    device.left =
        Deferred(device, pace, pause, HiddenShare(IsQuick(device), device.known, pace.lanes, total))
            .left;
  }
  device.stored.Clear();
  Decision decision;
  decision.epoch = epoch_;
  decision.file = device.file;
  decision.storage = device.title;
  decision.begin_ns = pause.begin_ns;
  decision.bytes = bytes;
  decision.async = 2 * tally.copied_bytes.get() >= bytes;
  decision.fixed = device.mode.load(kRelaxed) != Mode::kAuto;
  decision.last = pause.last;
  decision.forecast = device.forecast;
  decision.seconds = pause.seconds;
  decision.compute_seconds = pause.compute;
  if (internal::tracing.load(kRelaxed)) {
    const double expected = decision.forecast ? decision.forecast->chosen : 0;
    internal::RecordSpan(decision.async ? SpanKind::kEpochAsync : SpanKind::kEpochSync,
                         pause.begin_ns,
                         pause.begin_ns + static_cast<uint64_t>(pause.seconds * 1e9),
                         static_cast<uint64_t>(expected * 1e6));
  }
  NoteDecision(std::move(decision));
}

void CostModel::LearnRates(const Device& device, Learned& to, double waited) {
  const Tally& tally = device.tally;
  const auto bytes = static_cast<double>(tally.bytes.get());
  const auto copied = static_cast<double>(tally.copied_bytes.get());
  const auto stored = static_cast<double>(device.stored.bytes());
  const double write_bytes = bytes / static_cast<double>(tally.writes.get());
  ++to.epochs;
  if (copied * kMixed < bytes) to.sync.Add(bytes, times_.ranks, waited);
  if (copied * kMixed >= bytes && stored >= static_cast<double>(kLittle))
    to.lanes.Add(stored, times_.ranks, device.stored.seconds());
  if (copied < static_cast<double>(kTelling)) return;
  const double usual = device.known.copy.Seconds(write_bytes, copied);
  to.copy.Add(write_bytes, copied, std::min(Seconds(tally.copy_ns.get()), kUsualCopy * usual));
}

void CostModel::LearnHabits(const Device& device, Learned& to, const Pause& pause, double waited) {
  const Tally& tally = device.tally;
  const auto bytes = static_cast<double>(tally.bytes.get());
  const auto copied = static_cast<double>(tally.copied_bytes.get());
  const double write_bytes = bytes / static_cast<double>(tally.writes.get());
  to.bytes.Add(bytes), to.write_bytes.Add(write_bytes);
  to.compute.Add(pause.compute), to.slack.Add(pause.slack);
  const Pace pace = PaceOf(device, bytes, write_bytes);
  const double share = HiddenShare(IsQuick(device), device.known, pace.lanes, bytes);
  const Queue queue = Deferred(device, pace, pause, share);
  // What is left for later is waited for in the end; what was left before is done now.
  const double async = queue.waits + (1 - share) * pace.sync + queue.left - device.left;
  const double sync = copied * kMixed < bytes ? waited : pace.sync;
  // Small phases count for less, and a huge one for no more than a usual one.
  const double weight = bytes / std::exp(device.log_bytes.mean());
  to.sync_cost.Add(sync / bytes, weight);
  to.async_cost.Add(std::max(async, 0.0) / bytes, weight);
}

CostModel::Pace CostModel::PaceOf(const Device& device, double bytes, double write_bytes) const {
  const Learned& known = device.known;
  const auto sync = known.sync.Predict(bytes, times_.ranks);
  const auto lanes = known.lanes.Predict(bytes, times_.ranks);
  const double guess = Seconds(NsPerMib(device)) * bytes / static_cast<double>(kMib);
  Pace pace;
  pace.lanes = lanes ? lanes->seconds : sync ? sync->seconds : guess;
  // One thread is not quicker than all lanes: where that was found long ago, storage has become slower since.
  pace.sync = std::max(sync ? sync->seconds : 0, pace.lanes);
  pace.copy = known.copy.Seconds(write_bytes, bytes);
  pace.room = static_cast<double>(device.room.load(kRelaxed)) / bytes * pace.lanes;
  return pace;
}

// A program that only writes is stopped for some milliseconds now and then, by a busy machine or for memory, which looks like a
// pause. Were its phases copied for that, it would be stopped more often.
bool CostModel::HidesEnough(const Device& device) const {
  const Learned& known = device.known;
  if (!IsQuick(device) || known.bytes.mean() <= 0) return true;
  const Pace pace = PaceOf(device, known.bytes.mean(), known.write_bytes.mean());
  const double share = HiddenShare(IsQuick(device), known, pace.lanes, known.bytes.mean());
  return share >= (known.epochs < kEpochsToTell ? kMuch : kSome);
}

Queue CostModel::Deferred(const Device& device, const Pace& pace, const Pause& pause,
                          double share) const {
  QueuedEpoch epoch;
  epoch.times = {share * pace.lanes, pause.compute, share * pace.copy};
  epoch.asks = pause.asks;
  epoch.slack = pause.slack;
  epoch.alongside = IsQuick(device) ? 0 : 1;
  epoch.room = pace.room;
  return AfterEpoch(device.left, epoch);
}

void CostModel::Decide(Device& device) {
  const Learned& known = device.known;
  const bool quick = IsQuick(device);
  const bool evidence = known.sync_cost.count() != 0 && known.async_cost.count() != 0;
  const double sync = known.sync_cost.mean(), async = known.async_cost.mean();
  if (!device.async) device.async = evidence && quick ? async < sync : !quick;
  // Written through only because it was quick.
  if (!quick && !device.anywhere.load(kRelaxed)) device.async = true;
  const bool sync_is_cheaper =
      quick ? sync < kCheaper * async : sync < kClearly * async && known.epochs >= kEpochsToTell;
  if (evidence && *device.async && sync_is_cheaper) {
    device.async = false;
  } else if (evidence && !*device.async && async < kCheaper * sync) {
    device.async = true;
  }
  const bool defers = *device.async && !NothingToHide(device) && HidesEnough(device);
  uint64_t allowance = defers ? UINT64_MAX : 0, usual = UINT64_MAX;
  if (defers && quick) {
    // As much as lanes can store in a pause, also of a phase that is longer than the usual one.
    const double bytes = std::max(known.bytes.mean(), 1.0);
    const Pace pace = PaceOf(device, bytes, known.write_bytes.mean());
    const double most = std::min(static_cast<double>(device.room.load(kRelaxed)) / 2, 1e18);
    const double storable = bytes / std::max(pace.lanes, 1e-9) * known.slack.mean();
    allowance = static_cast<uint64_t>(storable >= bytes ? most : std::min(storable, most));
    // The last pause has not sufficed: more would only be copied twice, into memory that has yet to be found.
    if (device.held > kWorthALane && static_cast<double>(device.held) > kLeft * bytes)
      allowance = 0;
    // Much longer ones are no gamble where a copy costs little, and pauses are known.
    if (2 * pace.copy > pace.sync || known.epochs < kEpochsToTell)
      usual = static_cast<uint64_t>(std::min(kStillUsual * bytes, 1e18));
  }
  device.allowance.store(allowance, kRelaxed);
  device.usual.store(usual, kRelaxed);
  device.anywhere.store(!quick && evidence && !*device.async, kRelaxed);
  Forecast(device);
}

void CostModel::Forecast(Device& device) const {
  const Learned& known = device.known;
  device.forecast.reset();
  if (known.compute.count() == 0) return;
  const Pace pace = PaceOf(device, known.bytes.mean(), known.write_bytes.mean());
  Pause pause;
  pause.compute = known.compute.mean(), pause.slack = known.slack.mean();
  pause.asks = pause.slack < kClearly * pause.compute;
  const EpochTimes times{pace.lanes, pause.compute, pace.copy};
  EpochForecast forecast;
  forecast.sync = SyncEpoch({pace.sync, pause.compute, 0});
  forecast.async = Deferred(device, pace, pause, 1).waits + pause.compute;
  forecast.async_by_equation = AsyncEpoch(times);
  const Mode mode = device.mode.load(kRelaxed);
  forecast.chosen = forecast.sync;
  if (mode == Mode::kAuto ? device.allowance.load(kRelaxed) != 0 : mode == Mode::kAsync) {
    const double share = mode == Mode::kAuto ? HiddenShare(IsQuick(device), device.known,
                                                           pace.lanes, known.bytes.mean())
                                             : 1;
    forecast.chosen =
        Deferred(device, pace, pause, share).waits + (1 - share) * pace.sync + pause.compute;
  }
  device.forecast = forecast;
}

void CostModel::End(uint64_t now_ns) {
  reads_.Finish(now_ns);
  MutexLock lock(mutex_);
  const uint64_t last_end = pauses_.last_end_ns();
  if (last_end == 0 || phase_begin_ns_.get() == 0) return;
  // What follows the last phase is the program's end, no computation between two phases.
  const uint64_t waited = waited_since_end_ns_.get();
  NoteEnd(Seconds(now_ns - last_end - std::min(waited, now_ns - last_end)));
  EndPhase(last_end + waited, true);
  phase_begin_ns_.Set(0);
  pauses_.Forget();
  for (const Device& device : devices_) Tell(device);
}

void CostModel::Tell(const Device& device) {
  const Learned& known = device.known;
  if (known.epochs == 0) return;
  const double bytes = std::max(known.bytes.mean(), 1.0);
  const double copy = known.copy.Seconds(known.write_bytes.mean(), bytes);
  ModeledStorage storage;
  storage.name = device.title;
  storage.earlier_runs = device.earlier_runs;
  storage.sync = RateToTell(known.sync, bytes, times_.ranks);
  storage.lanes = RateToTell(known.lanes, bytes, times_.ranks);
  storage.copy_bytes_per_second = copy > 0 ? bytes / copy : 0;
  NoteStorage(std::move(storage));
}

std::vector<std::pair<std::string, Learned>> CostModel::TakeLearnings(uint64_t epochs) {
  MutexLock lock(mutex_);
  std::vector<std::pair<std::string, Learned>> learnings;
  for (Device& device : devices_) {
    if (!device.title.empty() && device.own.epochs >= epochs)
      learnings.emplace_back(device.title, std::exchange(device.own, {}));
  }
  return learnings;
}

void CostModel::LockForFork() {
  mutex_.lock();
  reads_.LockForFork();
}

void CostModel::UnlockAfterFork(bool child) {
  reads_.UnlockAfterFork(child);
  if (child) {
    for (Device& device : devices_) {
      device.own = {};
      device.tally.Clear();
    }
    phase_bytes_.Set(0);
    phase_begin_ns_.Set(0);
    pauses_.Forget();
    epoch_ = 0;
  }
  mutex_.unlock();
}

}  // namespace tidelane::model
