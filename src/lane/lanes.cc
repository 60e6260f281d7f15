#include "lane/lanes.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>

#include <algorithm>
#include <exception>
#include <new>

#include "base/counters.h"
#include "base/trace.h"

namespace tidelane {
namespace {

// Longest time a background write is held back for a program that keeps reading; it must get on in the end.
constexpr auto kLongestYield = std::chrono::milliseconds(20);

constinit thread_local bool on_lane = false;

// Launchers bind a rank to one core; lanes bound there would steal the program's time. Widen to what the system allows.
void LeaveSingleCore(unsigned number) {
  cpu_set_t allowed;
  if (pthread_getaffinity_np(pthread_self(), sizeof(allowed), &allowed) != 0 ||
      CPU_COUNT(&allowed) != 1)
    return;
  cpu_set_t every;
  CPU_ZERO(&every);
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) CPU_SET(cpu, &every);
  (void)pthread_setaffinity_np(pthread_self(), sizeof(every), &every);
  if (number == 0) Count(Fallback::kOneCore);
}

const char* LaneName(unsigned number) {
  static constexpr const char* kNames[] = {"lane 0", "lane 1", "lane 2", "lane 3",
                                           "lane 4", "lane 5", "lane 6", "lane 7"};
  return number < std::size(kNames) ? kNames[number] : "lane";
}

}  // namespace

Lanes::~Lanes() {
  std::vector<std::thread> threads;
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    threads.swap(threads_);
    work_.NotifyAll();
  }
  for (std::thread& thread : threads) thread.join();
}

void Lanes::StartThread() {
  const size_t number = threads_.size();
  if (number >= count_ || stopping_ || refused_.load(std::memory_order_relaxed)) return;
  // Who pauses us may be about to fork: a thread that is just starting holds locks of the allocator's.
  if (paused_ != 0) return;
  if (number != 0 && (running_ < number || no_more_)) return;
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(
      SIG_SETMASK, &all,
      &before);  // threads inherit the mask: the program's signals stay with the program
  try {
    threads_.emplace_back([this, number] { ThreadMain(static_cast<unsigned>(number)); });
    ++running_;
  } catch (const std::exception&) {  // the system's refusal, or no memory
    no_more_ = true;
    if (number == 0 && !refused_.exchange(true)) Count(Fallback::kNoThreads);
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void Lanes::Schedule(std::shared_ptr<LaneTask> task) {
  MutexLock lock(mutex_);
  (task->computes() ? computing_ : ready_).push_back(std::move(task));
  StartThread();
  work_.NotifyOne();
}

void Lanes::ScheduleAfter(std::shared_ptr<LaneTask> task, Clock::duration delay) {
  MutexLock lock(mutex_);
  lingering_.push_back({Clock::now() + delay, std::move(task)});
  if (on_lane) return;  // it looks at what lingers before it does anything else
  StartThread();
  work_.NotifyOne();
}

void Lanes::CollectDue(Clock::time_point now) {
  for (size_t i = 0; i < lingering_.size();) {
    if (lingering_[i].due > now) {
      ++i;
      continue;
    }
    ready_.push_back(std::move(lingering_[i].task));
    lingering_[i] = std::move(lingering_.back());
    lingering_.pop_back();
  }
}

bool Lanes::OthersLinger(const LaneTask& task) const {
  return std::any_of(lingering_.begin(), lingering_.end(),
                     [&task](const Lingering& one) { return one.task.get() != &task; });
}

std::shared_ptr<LaneTask> Lanes::TakeReady() {
  const bool enough = others_ >= std::max(count_ / 2, 1u);
  const bool compute = ready_.empty() || (enough && !computing_.empty());
  auto& queue = compute ? computing_ : ready_;
  std::shared_ptr<LaneTask> task = std::move(queue.front());
  queue.pop_front();
  if (!compute) ++others_;
  ++running_;
  return task;
}

std::shared_ptr<LaneTask> Lanes::Next() {
  MutexLock lock(mutex_);
  for (;;) {
    if (stopping_) return nullptr;
    if (!lingering_.empty()) CollectDue(Clock::now());
    if (AnyReady() && paused_ == 0) {
      std::shared_ptr<LaneTask> task = TakeReady();
      // What this lane would have been awake for needs another one, which may sleep without a date.
      if (AnyReady() || OthersLinger(*task)) {
        StartThread();
        work_.NotifyOne();
      }
      return task;
    }
    if (idle_work_ && paused_ == 0) {
      ++running_;
      mutex_.unlock();
      const bool more = idle_work_();
      mutex_.lock();
      TaskDone();
      if (more || AnyReady()) continue;
    }
    if (lingering_.empty()) {
      work_.Wait(mutex_);
      continue;
    }
    const auto soonest =
        std::min_element(lingering_.begin(), lingering_.end(),
                         [](const Lingering& a, const Lingering& b) { return a.due < b.due; });
    work_.WaitUntil(mutex_, soonest->due);
  }
}

void Lanes::ThreadMain(unsigned number) {
  on_lane = true;
  LeaveSingleCore(number);
  NameTraceThread(LaneName(number));
  {
    MutexLock lock(mutex_);
    TaskDone();  // it counted as running from its start
  }
  while (std::shared_ptr<LaneTask> task = Next()) Run(std::move(task));
}

void Lanes::Run(std::shared_ptr<LaneTask> task) {
  const bool computes = task->computes();
  task->RunOne();
  task.reset();
  MutexLock lock(mutex_);
  if (!computes) --others_;
  TaskDone();
}

void Lanes::TaskDone() {
  if (--running_ == 0) parked_.NotifyAll();
}

void Lanes::Pause() {
  MutexLock lock(mutex_);
  ++paused_;
  while (running_ != 0) parked_.Wait(mutex_);
}

void Lanes::Resume() {
  MutexLock lock(mutex_);
  --paused_;
  if (AnyReady() || !lingering_.empty()) StartThread();
  work_.NotifyAll();
}

bool Lanes::RunQueued() {
  std::shared_ptr<LaneTask> task;
  {
    MutexLock lock(mutex_);
    CollectDue(Clock::time_point::max());
    if (!AnyReady()) return false;
    task = TakeReady();
  }
  Run(std::move(task));
  return true;
}

bool Lanes::idle() {
  MutexLock lock(mutex_);
  return !AnyReady() && running_ == 0;
}

Lanes::ForegroundRead::ForegroundRead(Lanes& lanes) : lanes_(lanes) {
  lanes_.foreground_reads_.fetch_add(1, std::memory_order_acq_rel);
}

Lanes::ForegroundRead::~ForegroundRead() {
  if (lanes_.foreground_reads_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  if (lanes_.yielding_.load(std::memory_order_acquire) == 0) return;
  MutexLock lock(lanes_.mutex_);
  lanes_.reads_done_.NotifyAll();
}

void Lanes::YieldToReads() {
  if (foreground_reads_.load(std::memory_order_acquire) == 0) return;
  const auto deadline = Clock::now() + kLongestYield;
  MutexLock lock(mutex_);
  yielding_.fetch_add(1, std::memory_order_acq_rel);
  while (foreground_reads_.load(std::memory_order_acquire) != 0 &&
         reads_done_.WaitUntil(mutex_, deadline)) {
  }
  yielding_.fetch_sub(1, std::memory_order_acq_rel);
}

void Lanes::ForgetThreadsAfterFork() {
  // The handles refer to threads that do not exist here: destroying them would terminate, joining would hang.
  new (&threads_) std::vector<std::thread>();
  // The condition variables may count waiters that do not exist here either.
  new (&work_) Condition();
  new (&reads_done_) Condition();
  new (&parked_) Condition();
  running_ = 0;
  others_ = 0;
  paused_ = 0;
  foreground_reads_.store(0, std::memory_order_relaxed);
  yielding_.store(0, std::memory_order_relaxed);
}

}  // namespace tidelane
