// The simulated program: its calls and its checks. The seeds it is run with are in simulator_test.cc.
#include <algorithm>
#include <bit>
#include <cerrno>
#include <chrono>
#include <thread>

#include "file/simulator.h"

namespace tidelane {
namespace {

// While it lives, a call of the program is in progress.
class InCall {
 public:
  explicit InCall(bool& flag) : flag_(flag), before_(flag) { flag_ = true; }
  ~InCall() { flag_ = before_; }
  InCall(const InCall&) = delete;
  InCall& operator=(const InCall&) = delete;

 private:
  bool& flag_;
  const bool before_;
};

}  // namespace

Simulator::Simulator(const SimulatorOptions& options)
    : options_(options),
      random_(options.seed),
      fault_state_(options.seed * 0x9E3779B97F4A7C15u),
      bench_(options.lanes, options.arena_bytes) {
  bench_.config_.gap_bytes = Pick(3) * 512;
  bench_.config_.linger_us = 100;
  bench_.config_.mode = Pick(3) == 0 ? Mode::kAuto : Mode::kAsync;
  bench_.config_.read_ahead = Pick(2) == 0 ? Toggle::kOn : Toggle::kAuto;
  if (options.timeless) {
    bench_.config_.mode = Mode::kAsync;
    bench_.config_.read_ahead = Toggle::kOn;
    bench_.chooser_times_.quick_request_ns = 3'600'000'000'000;
  }
  bench_.prefetch_budget_ = std::make_shared<PrefetchBudget>(bench_.arena_, UINT64_MAX);
  if (options.existing) {
    model_ = std::string(options.base_address, 'u') + Superblock('o', 1000) +
             std::string(Pick(100'000), 'o');
  }
  bench_.wrap_ = options.wrap;
  bench_.record_ = false;
  bench_.Open(model_);
  bench_.file_->writes().superblock().SetBase(options.base_address);
  // Places of random lengths, of which some are nothing's.
  for (uint64_t begin = 1; begin < options.file_bytes;) {
    const uint64_t end = begin + 1 + Pick(200'000);
    if (Pick(4) != 0) places_.Add({begin, end});
    begin = end;
  }
  if (Pick(3) != 0 && !bench_.file_->Lock(true).ok()) Wrong("no lock on a file of our own");
  if (options.write_through && !bench_.file_->WriteThrough(Fallback::kModeSync).ok())
    Wrong("write-through");
  bench_.plan_ = [this](FaultPoint point, uint64_t address, uint64_t size) {
    return Plan(point, address, size);
  };
}

Simulator::~Simulator() {
  // Lanes may still store what was lent: the buffers go after them.
  for (Issued& issued : requests_) issued.completion.reset();
  failing_ = false;
}

// Asked before every device call, by lanes too: the state of its own generator is atomic.
Fault Simulator::Plan(FaultPoint point, uint64_t address, uint64_t size) {
  if (options_.lanes == 0) {
    ++tally_.requests;
    for (const uint64_t part : {static_cast<uint64_t>(point), address, size})
      tally_.digest = (std::rotl(tally_.digest, 5) ^ part) * 0x9E3779B97F4A7C15u;
  }
  if (options_.interleave && options_.lanes == 0) Interleave(point, address, size);
  // A device that takes its time now and then, so that calls and runs meet.
  if (options_.lanes != 0 && Pause()) std::this_thread::sleep_for(std::chrono::microseconds(100));
  // The program's own reads do not fail here: nothing would be learned from them.
  const bool lane_reads = point == FaultPoint::kRead && options_.lanes == 0 && !program_calls_;
  const bool changes = point == FaultPoint::kWrite || point == FaultPoint::kTruncate;
  if (!failing_ || (!changes && !lane_reads)) return {};
  const uint64_t state = fault_state_.fetch_add(0x9E3779B97F4A7C15u) * 0xBF58476D1CE4E5B9u >> 32;
  if (state % 3 != 0) return {};
  ++failures_;
  return {state % 2 == 0 ? ENOSPC : EIO, state % 5 == 0 ? state % (size + 1) : 0};
}

bool Simulator::Pause() { return (fault_state_.fetch_add(0x9E3779B97F4A7C15u) >> 40) % 4 == 0; }

// The program goes on while the device works: calls from inside the device's. Only those that need
// not wait for the call in progress, since this thread is what they would wait for. Nothing is read inside of a read:
// it may be what is fetched ahead of the program.
void Simulator::Interleave(FaultPoint point, uint64_t address, uint64_t size) {
  if (depth_ >= 3 || program_calls_) return;
  ++depth_;
  if (point == FaultPoint::kWrite) flying_.emplace_back(address, address + size);
  flying_reads_ += point == FaultPoint::kRead;
  const bool resizing = point == FaultPoint::kTruncate;
  for (uint64_t calls = Pick(4); calls > 0; --calls) {
    ++tally_.nested;
    // Larger ones may go through, and would have to wait where they overlap the call in progress.
    const uint64_t length = PickSize(std::min<uint64_t>(16'000, options_.longest_write));
    switch (Pick(6)) {
      case 0:
      case 1:
        if (const uint64_t at = PickAddress(length);
            RoomFor(length) && !SuperblockFlying() && MayChange(at, at + length)) {
          Write(at, length);
        }
        break;
      case 2:
        if (flying_reads_ == 0) Pick(2) == 0 ? Read() : ReadLater();
        break;
      case 3: FlushEarly(); break;
      case 4:
        if (flying_reads_ == 0) RunLane();  // another lane
        break;
      default: {
        uint64_t above = 0;
        for (const auto& [begin, end] : flying_) above = std::max(above, end);
        const bool waits = resizing || SuperblockFlying() || bench_.config_.gap_bytes != 0;
        if (waits || model_.size() <= above) break;
        const uint64_t cut = above + Pick(model_.size() - above);
        if (MayChange(cut, UINT64_MAX)) Truncate(cut);
        break;
      }
    }
  }
  if (point == FaultPoint::kWrite) flying_.pop_back();
  flying_reads_ -= point == FaultPoint::kRead;
  --depth_;
}

// A read that goes on may be what this thread is in the middle of: it cannot wait for itself.
bool Simulator::MayChange(uint64_t begin, uint64_t end) const {
  return flying_reads_ == 0 || std::ranges::none_of(requests_, [&](const Issued& issued) {
           return issued.read != nullptr && issued.address < end &&
                  begin < issued.address + issued.expected.size();
         });
}

bool Simulator::SuperblockFlying() const {
  return std::any_of(flying_.begin(), flying_.end(), [&](const auto& range) {
    return range.first < options_.base_address + 48 && options_.base_address < range.second;
  });
}

void Simulator::RunLane() {
  if (!bench_.lanes_.threaded()) bench_.lanes_.RunQueued();
}

bool Simulator::RoomFor(uint64_t size) const {
  const uint64_t slab = bench_.arena_.slab_size();
  return bench_.arena_.in_use() + size + 3 * slab <= bench_.arena_.cap();
}

uint64_t Simulator::PickSize(uint64_t longest) {
  switch (Pick(4)) {
    case 0: return 1 + Pick(16);
    case 1: return 1 + Pick(600);
    case 2: return 1 + Pick(std::min<uint64_t>(longest, 20'000));
    default: return 1 + Pick(longest);
  }
}

uint64_t Simulator::PickAddress(uint64_t size) {
  const uint64_t limit = options_.file_bytes - size;
  switch (Pick(4)) {
    case 0: return std::min(limit, next_);                    // a stream
    case 1: return std::min(limit, next_ + Pick(1500));       // with gaps
    case 2: return std::min(limit, Pick(1 + model_.size()));  // over what is there
    default: return Pick(1 + limit);
  }
}

void Simulator::Apply(uint64_t address, const std::string& bytes) {
  if (model_.size() < address + bytes.size()) model_.resize(address + bytes.size(), '\0');
  model_.replace(address, bytes.size(), bytes);
}

void Simulator::Issue(CallScope& scope, std::shared_ptr<std::string> lent) {
  Issued issued{scope.TakeCompletion(), std::move(lent), nullptr, {}, 0};
  if (issued.completion == nullptr) {
    issued.End();  // already complete
  } else {
    requests_.push_back(std::move(issued));
  }
}

void Simulator::Write(uint64_t address, uint64_t size) {
  InCall in_call(program_calls_);
  ++tally_.writes;
  const auto buffer = std::make_shared<std::string>(size, '\0');
  std::string& bytes = *buffer;
  const uint64_t pattern = random_();
  for (uint64_t i = 0; i < size; ++i)
    bytes[i] = static_cast<char>(pattern + i * (pattern >> 32 | 1) + (i >> 8));
  CallScope scope(CallScope::kNone, Pick(3) == 0);
  const bool lends = scope.tracks() && Pick(2) == 0;
  if (lends) {
    ++tally_.lent;
    scope.Lend(bytes.data(), size);
  }
  next_ = address + size;
  const ElementsIn elements(&places_);
  if (bench_.Write(address, bytes).ok()) {
    Apply(address, bytes);
    Issue(scope, lends ? buffer : nullptr);
    return;
  }
  // Written through and failed: told, so the program tries again until it is told otherwise.
  ++tally_.failures;
  Recover();
  if (!bench_.Write(address, bytes).ok()) Wrong("a write failed on healthy storage");
  Apply(address, bytes);
}

void Simulator::WriteSuperblock() {
  InCall in_call(program_calls_);
  std::string bytes = Superblock(static_cast<char>('a' + Pick(26)), model_.size());
  uint64_t address = options_.base_address;
  if (Pick(3) == 0) bytes += std::string(Pick(3000), 'n');  // merged with a neighbour
  if (address != 0 && Pick(3) == 0) address -= 5, bytes = "front" + bytes;
  CallScope scope(CallScope::kNone, Pick(3) == 0);
  if (!bench_.Write(address, bytes).ok()) {
    ++tally_.failures;
    Recover();
    if (!bench_.Write(address, bytes).ok()) Wrong("a write failed on healthy storage");
  }
  Apply(address, bytes);
  Issue(scope);
}

void Simulator::Read() {
  InCall in_call(program_calls_);
  ++tally_.reads;
  const uint64_t size = Pick(2) == 0 ? 1 + Pick(300) : PickSize(100'000);
  const uint64_t address = Pick(1 + model_.size());
  const std::string expected = Expected(address, size);
  const std::string got = bench_.Read(address, size, Pick(2) == 0);
  if (got != expected)
    Wrong("read of " + std::to_string(size) + " at " + std::to_string(address) + ": " +
          Difference(got, expected));
  if (bench_.file_->eof() != model_.size()) {
    Wrong("eof is " + std::to_string(bench_.file_->eof()) + " instead of " +
          std::to_string(model_.size()));
  }
}

std::string Simulator::Expected(uint64_t address, uint64_t size) const {
  std::string expected(size, '\0');
  if (address < model_.size()) {
    const uint64_t there = std::min<uint64_t>(size, model_.size() - address);
    expected.replace(0, there, model_, address, there);
  }
  return expected;
}

// A read whose bytes may come after the call, of one piece or of some with gaps between them.
void Simulator::ReadLater() {
  InCall in_call(program_calls_);
  ++tally_.reads_later;
  const uint64_t size = PickSize(100'000);
  const uint64_t address = Pick(1 + model_.size());
  Issued issued{nullptr, nullptr, std::make_shared<std::string>(size, '\0'),
                Expected(address, size), address};
  CallScope scope(CallScope::kNone);
  auto* const to = reinterpret_cast<std::byte*>(issued.read->data());
  scope.AcceptLater(to, size);
  for (uint64_t at = 0; at < size;) {
    const uint64_t piece = Pick(3) == 0 ? 1 + Pick(size - at) : size - at;
    const bool gap = Pick(4) == 0;
    if (gap) {
      issued.expected.replace(at, piece, piece, '\0');
    } else if (!bench_.file_->Read(address + at, piece, to + at, true, InProgress()).ok()) {
      Wrong("a read failed at once");
    }
    at += piece;
  }
  issued.completion = scope.TakeCompletion();
  if (issued.completion == nullptr) {
    CheckRead(issued);  // it was all at hand
  } else {
    requests_.push_back(std::move(issued));
  }
}

void Simulator::CheckRead(const Issued& issued) {
  if (issued.read == nullptr || *issued.read == issued.expected) return;
  Wrong("late read of " + std::to_string(issued.expected.size()) + " at " +
        std::to_string(issued.address) + ": " + Difference(*issued.read, issued.expected));
}

void Simulator::Truncate(uint64_t size) {
  InCall in_call(program_calls_);
  ++(size < model_.size() ? tally_.cuts : tally_.grows);
  if (!bench_.file_->Truncate(size).ok()) {
    ++tally_.failures;
    if (size >= model_.size()) Wrong("growing failed before it was tried");
    failing_ = false;
    if (depth_ == 0) Recover();  // a flush would wait for the device call that we are in
    if (!bench_.file_->Truncate(size).ok()) Wrong("a truncation failed on healthy storage");
  }
  model_.resize(size, '\0');
}

void Simulator::CheckStorage(const char* when) {
  MutexLock lock(bench_.storage_->mutex);
  const std::string difference = Difference(bench_.Stored(), model_);
  if (!difference.empty()) Wrong(std::string(when) + ": storage: " + difference);
}

// After a call that failed half-way, storage is what the model says only when the call has been
// made again: no check here.
void Simulator::Recover() {
  failing_ = false;
  if (Status status = FlushUnchecked(); !status.ok())
    Wrong("flush failed on healthy storage: " + status.Message());
}

Status Simulator::FlushUnchecked() {
  InCall in_call(program_calls_);
  ++tally_.flushes;
  Status status = bench_.file_->Flush(false, InProgress());
  // With lanes of their own, a run may have met its fault before storage recovered and told of it
  // only now.
  if (!status.ok() && !failing_ && bench_.lanes_.threaded())
    status = bench_.file_->Flush(false, InProgress());
  return status;
}

void Simulator::Flush() {
  const bool healthy = !failing_;
  const Status status = FlushUnchecked();
  if (status.ok()) {
    CheckStorage("flush reported success");
    if (!bench_.file_->drainer().drained())
      Wrong("flush reported success, but the file is not drained");
  } else {
    ++tally_.failures;
    if (healthy) Wrong("flush failed on healthy storage: " + status.Message());
  }
}

void Simulator::FlushEarly() {
  InCall in_call(program_calls_);
  CallScope scope(CallScope::kFlushMayReturnEarly, true);
  if (!bench_.file_->Flush(false, InProgress()).ok()) Wrong("a flush that may return early failed");
  Issue(scope);
}

// Requests are waited for in any order; each must end, in success or failure.
void Simulator::WaitForOne() {
  InCall in_call(program_calls_);
  if (requests_.empty()) return;
  ++tally_.waits;
  const size_t index = Pick(requests_.size());
  const auto request = requests_[index].completion;
  if (Pick(2) == 0) {
    if (request->Poll() == Completion::State::kPending) return;
  }
  const auto state = request->Wait(UINT64_MAX);
  if (state == Completion::State::kPending) Wrong("a wait without limit returned early");
  if ((state == Completion::State::kFailed) == request->error().ok())
    Wrong("a request's state and error disagree");
  if (state == Completion::State::kFailed && failures_ == 0)
    Wrong("a request failed on healthy storage");
  if (state == Completion::State::kDone) CheckRead(requests_[index]);
  requests_[index].End();
  requests_.erase(requests_.begin() + static_cast<std::ptrdiff_t>(index));
}

void Simulator::Step() {
  const uint64_t size = PickSize(options_.longest_write);
  switch (Pick(24)) {
    case 0:
    case 1:
    case 2:
    case 3:
    case 4:
    case 5:
    case 6:
    case 7: Write(PickAddress(size), size); break;
    case 8:
    case 9:
    case 10: Read(); break;
    case 11: ReadLater(); break;
    case 12:
    case 13:
    case 14:
    case 15:
      for (uint64_t runs = Pick(4); runs > 0; --runs) RunLane();
      break;
    case 16:
      if (Pick(3) == 0) Truncate(Pick(1 + model_.size()));
      break;
    case 17: Truncate(std::min(options_.file_bytes, model_.size() + Pick(50'000))); break;
    case 18:
      if (Pick(2) == 0) Flush();
      break;
    case 19: FlushEarly(); break;
    case 20:
    case 21: WaitForOne(); break;
    case 22: WriteSuperblock(); break;
    default:
      if (!options_.faults) break;
      if (failing_)
        Recover();
      else
        failing_ = true;
      break;
  }
}

void Simulator::Run(unsigned steps) {
  for (unsigned step = 0; step < steps && wrong_.empty(); ++step) {
    Step();
    if (!wrong_.empty()) wrong_ = "step " + std::to_string(step) + ": " + wrong_;
    while (requests_.size() > 64) WaitForOne();
  }
}

void Simulator::Finish() {
  failing_ = false;
  Flush();
  while (!requests_.empty() && wrong_.empty()) WaitForOne();
  Flush();
  if (bench_.lanes_.threaded()) return;
  bench_.RunLanes();
  bench_.file_->writes().RelieveArena();  // gives up what was read ahead
  bench_.RunLanes();
  const uint64_t held = bench_.arena_.in_use();
  if (held > bench_.arena_.slab_size()) Wrong("slabs are held by nobody: " + std::to_string(held));
}

}  // namespace tidelane
