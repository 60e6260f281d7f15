/// \file
/// Several threads on one file of quick storage that now and then is slow, or fails: each writes, flushes, waits for
/// requests and asks how things stand, while one of them closes the file and opens it again.
///
/// Checked: every read, all of storage after every flush that succeeds, that every request ends, and that nothing is
/// missing once storage has recovered. TIDELANE_STORM_MS says how long it goes on, TIDELANE_STORM_SEED where it starts.
///
/// Thread safety: `library_` is HDF5's lock: under it are all calls of the program's side, and the model.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/counters.h"
#include "file/file_fixture.h"

namespace tidelane {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;
using State = Completion::State;

constexpr uint64_t kFileBytes = 3u << 20;
constexpr unsigned kThreads = 4;

uint64_t FromEnvironment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

class QuickStorm {
 public:
  explicit QuickStorm(uint64_t seed) : seed_(seed), bench_(2, 1u << 20) {
    bench_.config_.mode = Mode::kAuto;
    bench_.config_.linger_us = 300;
    bench_.record_ = false;
    bench_.storage_->promises_speed = true;
    bench_.plan_ = [this](FaultPoint point, uint64_t, uint64_t size) { return Plan(point, size); };
    bench_.Open();
  }

  void Run(milliseconds duration) {
    const auto end = Clock::now() + duration, late = end + std::chrono::seconds(60);
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < kThreads; ++t) {
      threads.emplace_back([this, end, late, t] {
        Rng random(seed_ * kThreads + t);
        for (auto now = Clock::now(); now < end || (now < late && !SeenAll()); now = Clock::now()) {
          if (::testing::Test::HasFailure()) return;
          Step(random);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    failing_percent_ = 0;
    const std::lock_guard lock(library_);
    EXPECT_TRUE(bench_.file_->Flush().ok());
    Check("at the end");
  }

  // Whether everything that the test is about has happened: on a busy machine that may take longer.
  bool SeenAll() {
    return flushed > 0 && waited > 0 && adopted + retired > 0 && writers() > kThreads;
  }

  std::atomic<uint64_t> flushed{0}, failed{0}, waited{0}, adopted{0}, retired{0};
  size_t writers() {
    const std::lock_guard lock(writers_mutex_);
    return writers_.size();
  }

 private:
  using Rng = std::mt19937_64;

  Fault Plan(FaultPoint point, uint64_t size) {
    const uint64_t dice = dice_.fetch_add(0x9e3779b97f4a7c15) >> 32;
    if (point == FaultPoint::kWrite) {
      const std::lock_guard lock(writers_mutex_);
      writers_.insert(std::this_thread::get_id());
    }
    if (dice % 64 == 0) std::this_thread::sleep_for(std::chrono::microseconds(dice / 64 % 3000));
    const bool may_fail = point == FaultPoint::kWrite || point == FaultPoint::kTruncate;
    if (may_fail && dice % 1009 % 100 < failing_percent_) return {ENOSPC, dice % (size + 1)};
    return {};
  }

  void Step(Rng& random) {
    switch (random() % 16) {
      case 0: return FlushNow(random);
      case 1: return FlushEarly();
      case 2: return Resize(random);
      case 3: return ReadSome(random);
      case 4: return CloseAndOpen(random);
      case 5: return Ask(random);
      default: return WriteSome(random);
    }
  }

  void WriteSome(Rng& random) {
    const uint64_t sizes[] = {40, 900, 5'000, 16'384, 40'000, 65'537, 300'000};
    const uint64_t size = 1 + random() % sizes[random() % std::size(sizes)];
    const auto mark = static_cast<char>('a' + random() % 26);
    std::string bytes = random() % 16 == 0 ? Superblock(mark) : std::string(size, mark);
    const uint64_t address = bytes.size() == size ? 48 + random() % (kFileBytes - size) : 0;
    const bool tracked = random() % 2 == 0;
    std::shared_ptr<Completion> request;
    {
      const std::lock_guard lock(library_);
      CallScope scope(CallScope::kNone, tracked);
      if (tracked && random() % 2 == 0) scope.Lend(bytes.data(), bytes.size());
      Put(address, bytes);
      request = scope.TakeCompletion();
    }
    if (request != nullptr) WaitFor(*request, random);
  }

  // A write that went through may fail, and leave any prefix of its bytes: then it is tried again.
  void Put(uint64_t address, const std::string& bytes) {
    Status status = bench_.Write(address, bytes);
    if (!status.ok()) {
      failed.fetch_add(1);
      const unsigned before = failing_percent_.exchange(0);
      for (int i = 0; i < 10 && !status.ok(); ++i) status = bench_.Write(address, bytes);
      failing_percent_ = before;
      ASSERT_TRUE(status.ok()) << status.Message();
    }
    if (model_.size() < address + bytes.size()) model_.resize(address + bytes.size(), '\0');
    model_.replace(address, bytes.size(), bytes);
  }

  // Not under the library's lock: of an event set's threads, and of programs that wait in a task.
  void WaitFor(Completion& request, Rng& random) {
    if (random() % 4 == 0) request.Poll();
    if (random() % 4 == 0) (void)request.Wait(random() % 200'000);
    const auto late = Clock::now() + std::chrono::seconds(30);
    State state = State::kPending;
    if (random() % 2 == 0) {
      state = request.Wait(UINT64_MAX);
    } else {
      while (state == State::kPending && Clock::now() < late) state = request.Wait(1'000'000);
    }
    EXPECT_NE(state, State::kPending);
    waited.fetch_add(1);
  }

  void FlushNow(Rng& random) {
    const std::lock_guard lock(library_);
    failing_percent_ = random() % 4 == 0 ? 5 : 0;
    if (bench_.file_->Flush().ok()) {
      flushed.fetch_add(1);
      Check("after a flush");
    } else {
      failed.fetch_add(1);
    }
  }

  void FlushEarly() {
    std::shared_ptr<Completion> request;
    {
      const std::lock_guard lock(library_);
      CallScope scope(CallScope::kFlushMayReturnEarly, true);
      EXPECT_TRUE(bench_.file_->Flush(false, InProgress()).ok());
      request = scope.TakeCompletion();
    }
    if (request != nullptr) {
      EXPECT_NE(request->Wait(UINT64_MAX), State::kPending);
    }
  }

  void Resize(Rng& random) {
    const uint64_t size = 48 + random() % kFileBytes;
    const std::lock_guard lock(library_);
    if (!bench_.file_->Truncate(size).ok()) {
      const unsigned before = failing_percent_.exchange(0);
      EXPECT_TRUE(bench_.file_->Truncate(size).ok());
      failing_percent_ = before;
    }
    model_.resize(size, '\0');
  }

  void ReadSome(Rng& random) {
    const std::lock_guard lock(library_);
    if (model_.empty()) return;
    const uint64_t address = random() % model_.size();
    const uint64_t size = std::min<uint64_t>(1 + random() % 100'000, model_.size() - address);
    EXPECT_EQ(Difference(bench_.Read(address, size), model_.substr(address, size)), "");
  }

  // As other threads' waits and tests: of requests, of forks, of an exit.
  void Ask(Rng& random) {
    std::shared_ptr<File> file;
    {
      const std::lock_guard lock(library_);
      file = bench_.file_;
    }
    bool stored = false;
    switch (random() % 3) {
      case 0: (void)file->drainer().Test(stored); break;
      case 1: (void)file->drainer().Drain(Wait::kOther); break;
      default: file->writes().RelieveArena();
    }
  }

  void CloseAndOpen(Rng& random) {
    std::shared_ptr<Completion> closed;
    {
      const std::lock_guard lock(library_);
      CallScope scope(CallScope::kNone, random() % 2 == 0);
      bench_.file_->closing().Begin(
          [this](const std::shared_ptr<File>& file) {
            EXPECT_TRUE(file->closing().CloseDevice().ok());
            retired.fetch_add(1);
          },
          InProgress());
      closed = scope.TakeCompletion();
      if (random() % 2 == 0) std::this_thread::sleep_for(std::chrono::microseconds(random() % 500));
      if (random() % 4 == 0) failing_percent_ = 0;
      Adopt();
    }
    if (closed != nullptr) {
      EXPECT_NE(closed->Wait(UINT64_MAX), State::kPending);
    }
  }

  // As the engine opens a file that may still be draining.
  void Adopt() {
    const std::shared_ptr<File> file = bench_.file_;
    for (int i = 0; i < 100; ++i) {
      if (file->closing().Adopt()) {
        adopted.fetch_add(1);
        return;
      }
      if (file->closing().WaitClosed(Wait::kOpen).ok()) {
        bench_.Open();
        return;
      }
      failing_percent_ = 0;
    }
    ADD_FAILURE() << "neither open nor closed";
  }

  void Check(const char* when) {
    const MutexLock lock(bench_.storage_->mutex);
    EXPECT_EQ(Difference(bench_.Stored(), model_), "") << when;
  }

  const uint64_t seed_;
  std::mutex library_;
  std::string model_;
  std::atomic<unsigned> failing_percent_{0};
  std::atomic<uint64_t> dice_{seed_};
  std::mutex writers_mutex_;
  std::set<std::thread::id> writers_;
  FileBench bench_;
};

TEST(QuickStormTest, NothingIsLostAndNobodyWaitsForEver) {
  const uint64_t deferred = Read(Counter::kBytesDeferred);
  const uint64_t seed = FromEnvironment("TIDELANE_STORM_SEED", 1);
  QuickStorm storm(seed);
  storm.Run(milliseconds(FromEnvironment("TIDELANE_STORM_MS", 1500)));
  EXPECT_GT(Read(Counter::kBytesDeferred), deferred);
  EXPECT_GT(storm.writers(), size_t{kThreads}) << "lanes and waiters";
  EXPECT_GT(storm.flushed, 0u);
  EXPECT_GT(storm.waited, 0u);
  EXPECT_GT(storm.adopted + storm.retired, 0u);
  RecordProperty("failed", std::to_string(storm.failed));
  RecordProperty("adopted", std::to_string(storm.adopted));
  RecordProperty("closed", std::to_string(storm.retired));
}

}  // namespace
}  // namespace tidelane
