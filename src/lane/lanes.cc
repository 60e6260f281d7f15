#include "lane/lanes.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <exception>
#include <new>
#include <utility>

#include "base/counters.h"
#include "base/memory_limit.h"
#include "base/thread_name.h"
#include "base/trace.h"

namespace tidelane {
namespace {

// Longest time a background write is held back for a program that keeps reading; it must get on in the end.
constexpr auto kLongestYield = std::chrono::milliseconds(20);

constinit thread_local bool on_lane = false;

// A thread has a stack (8 MiB) and a heap of its own in the C library (128 MiB while it is made). Where `ulimit -v` leaves less than
// this there are no lanes: the program would miss what they take.
constexpr uint64_t kSpaceForThread = uint64_t{512} << 20;

constexpr auto kWithoutMemory = std::chrono::milliseconds(10);  // then it is tried again
constexpr auto kLookAround = std::chrono::seconds(1);

// Whether the program's main thread has ended (with pthread_exit), and all of its others: /proc knows. A process's first thread is
// listed for as long as there are others.
bool OnlyLanesLeft(unsigned lanes) {
  const int file = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  char text[1024];
  const ssize_t size = read(file, text, sizeof text - 1);
  close(file);
  if (size <= 0) return false;
  text[size] = '\0';
  const char* behind_name = std::strrchr(text, ')');
  char state = 0;
  long threads = 0;
  // State is the third field, the number of threads the twentieth.
  return behind_name != nullptr &&
         std::sscanf(behind_name + 1,
                     " %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %ld",
                     &state, &threads) == 2 &&
         state == 'Z' && threads == static_cast<long>(lanes) + 1;
}

// Nobody else is there to receive them: the system's answers, and the program's handlers, are due here.
void UnblockSignals() {
  sigset_t none;
  sigemptyset(&none);
  pthread_sigmask(SIG_SETMASK, &none, nullptr);
}

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
  for (std::thread& thread : threads) {
    if (thread.joinable()) thread.join();
  }
}

unsigned Lanes::alive() const {
  return static_cast<unsigned>(std::ranges::count_if(threads_, &std::thread::joinable));
}

// Only now is it known that they would be of use: the first write of a small file does not look for processors.
void Lanes::AllowMoreThreads() {
  if (count_ == 0 || computing_.empty() || !most_computing_) return;
  const auto most = std::exchange(most_computing_, nullptr);
  try {
    threads_.resize(std::max<size_t>(threads_.size(), most()));
  } catch (const std::bad_alloc&) {  // those that there are will do
  }
}

void Lanes::StartThread() {
  if (std::ranges::all_of(threads_, &std::thread::joinable)) AllowMoreThreads();
  const auto place = std::ranges::find_if_not(threads_, &std::thread::joinable);
  if (place == threads_.end() || stopping_ || refused_.load(std::memory_order_relaxed)) return;
  const auto number = static_cast<unsigned>(place - threads_.begin());
  const unsigned others = alive();
  // Who pauses us may be about to fork: a thread that is just starting holds locks of the allocator's.
  if (paused_ != 0) return;
  const bool needed = Takeable() || (!lingering_.empty() && MayStore());
  if (others != 0 && (running_ < others || no_more_ || !needed)) return;
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(
      SIG_SETMASK, &all,
      &before);  // threads inherit the mask: the program's signals stay with the program
  try {
    if (AddressSpaceLeft() < kSpaceForThread) throw std::bad_alloc();
    *place = std::thread([this, number] {
      NameThread();
      ThreadMain(number);
    });
    ++running_;
  } catch (const std::exception&) {  // the system's refusal, or no memory
    no_more_ = true;
    if (others == 0 && !refused_.exchange(true)) Count(Fallback::kNoThreads);
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void Lanes::Schedule(std::shared_ptr<LaneTask> task) {
  MutexLock lock(mutex_);
  (task->computes() ? computing_ : ready_).push_back(std::move(task));
  WakeOne();
}

void Lanes::ScheduleAfter(std::shared_ptr<LaneTask> task, Clock::duration delay) {
  MutexLock lock(mutex_);
  lingering_.push_back({Clock::now() + delay, std::move(task)});
  if (on_lane) return;  // it looks at what lingers before it does anything else
  WakeOne();
}

// Waking a thread that sleeps on another processor takes the caller longer than all else that it does here. One on its way is
// enough: it wakes the next (Next), and of sixteen tasks the program pays for one wake.
void Lanes::WakeOne() {
  if (waking_) return;
  waking_ = true;
  StartThread();
  work_.NotifyOne();
}

void Lanes::CollectDue(Clock::time_point now) {
  for (size_t i = 0; i < lingering_.size();) {
    if (lingering_[i].due > now) {
      ++i;
      continue;
    }
    try {
      ready_.push_back(lingering_[i].task);
    } catch (const std::bad_alloc&) {
      lingering_[i].due = Clock::now() + kWithoutMemory;
      return;
    }
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

// When there is idle work again: in the past, if something may have come meanwhile.
Lanes::Clock::time_point Lanes::DoIdleWork() {
  if (!idle_work_ || paused_ != 0) return Clock::time_point::max();
  ++running_;
  mutex_.unlock();
  Clock::duration rest = Clock::duration::max();
  try {
    rest = idle_work_();
  } catch (const std::bad_alloc&) {  // it can do without
  }
  mutex_.lock();
  TaskDone();
  if (Takeable()) return Clock::time_point::min();
  const auto now = Clock::now();
  return rest < Clock::time_point::max() - now ? now + rest : Clock::time_point::max();
}

// Sleeps until there may be something to do, idle work at `due` included. False: there was nothing for so long that this
// thread had better end.
bool Lanes::Idle(Clock::time_point due) {
  if (due <= Clock::now()) return true;
  if (lingering_.empty()) {
    bool woken = false;
    const auto end = Clock::now() + longest_idle_;
    for (auto now = Clock::now(); !woken; now = Clock::now()) {
      if (now >= due) return true;
      if (now >= end && (due == Clock::time_point::max() || alive() > 1)) break;
      woken = work_.WaitUntil(mutex_, std::min({due, now < end ? end : due, now + kLookAround}));
      // Whoever could have brought something to do is gone, and the process ends with us.
      if (!woken && !stay_ && OnlyLanesLeft(alive())) {
        UnblockSignals();
        break;
      }
    }
    return woken || Takeable() || stay_ || paused_ != 0 || stopping_ || !lingering_.empty();
  }
  const auto soonest =
      std::min_element(lingering_.begin(), lingering_.end(),
                       [](const Lingering& a, const Lingering& b) { return a.due < b.due; });
  work_.WaitUntil(mutex_, soonest->due);
  return true;
}

std::shared_ptr<LaneTask> Lanes::Next(unsigned number) {
  MutexLock lock(mutex_);
  for (;;) {
    waking_ = false;
    if (stopping_) return nullptr;
    if (!lingering_.empty()) CollectDue(Clock::now());
    if (Takeable() && paused_ == 0) {
      std::shared_ptr<LaneTask> task = TakeReady();
      // What this lane would have been awake for needs another one, which may sleep without a date.
      if (Takeable() || OthersLinger(*task)) WakeOne();
      return task;
    }
    if (Idle(DoIdleWork())) continue;
    threads_[number].detach();  // from here on it touches nothing of this
    return nullptr;
  }
}

void Lanes::ThreadMain(unsigned number) {
  on_lane = true;
  LeaveSingleCore(number);
  NameTraceThread(LaneName(number));
  // Linux gives each thread a niceness of its own; 0 is this one.
  if (niceness_ != 0) setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0) + niceness_);
  {
    MutexLock lock(mutex_);
    TaskDone();  // it counted as running from its start
  }
  auto looked = Clock::now();
  while (std::shared_ptr<LaneTask> task = Next(number)) {
    if (const auto now = Clock::now(); now - looked >= kLookAround) {
      looked = now;
      MutexLock lock(mutex_);
      if (OnlyLanesLeft(alive())) UnblockSignals();
    }
    Run(std::move(task));
  }
  on_lane = false;  // as the last thread of the process it may run the program's exit handlers
}

void Lanes::Stay(bool stay) {
  MutexLock lock(mutex_);
  stay_ = stay;
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
  waking_ = false;
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
  new (&threads_) std::vector<std::thread>(threads_.size());
  // The condition variables may count waiters that do not exist here either.
  new (&work_) Condition();
  new (&reads_done_) Condition();
  new (&parked_) Condition();
  running_ = 0;
  others_ = 0;
  paused_ = 0;
  waking_ = false;
  foreground_reads_.store(0, std::memory_order_relaxed);
  yielding_.store(0, std::memory_order_relaxed);
}

}  // namespace tidelane
