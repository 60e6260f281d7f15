#include "file/call_scope.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <new>
#include <utility>

#include "base/counters.h"
#include "buffer/loan.h"
#include "content/deferred_reads.h"
#include "content/extent_read.h"
#include "file/epoch_source.h"

namespace tidelane {
namespace {
// Of one thread. Plain values: thread_local objects with destructors do not survive a plugin's way out.
struct Call {
  CallScope* innermost = nullptr;
  const ElementPlaces* places = nullptr;
  HeldBytes* held = nullptr;
  unsigned keeping = 0;
  unsigned waiting_itself = 0;
  bool is_known = false;  // to Callers
};
thread_local constinit Call in_progress;

// All threads that have made a call.
class Callers {
 public:
  static Callers& Get() {
    static auto* const instance = new Callers;  // never destroyed: calls may come late
    return *instance;
  }
  void Add() TL_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    try {
      threads_.push_back(gettid());
    } catch (const std::bad_alloc&) {
      lost_count_ = true;
    }
  }
  bool OthersAreAlive() TL_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    const pid_t self = gettid();
    std::erase_if(threads_, [&](pid_t thread) {
      return thread != self && syscall(SYS_tgkill, getpid(), thread, 0) != 0;
    });
    return lost_count_ ||
           std::ranges::any_of(threads_, [&](pid_t thread) { return thread != self; });
  }

 private:
  Mutex mutex_;
  std::vector<pid_t> threads_ TL_GUARDED_BY(mutex_);
  bool lost_count_ TL_GUARDED_BY(mutex_) = false;  // there was no memory for one
};
}  // namespace

bool CallScope::OthersMayBeInside() { return Callers::Get().OthersAreAlive(); }

CallScope::CallScope(unsigned flags, bool track)
    : flags_(flags), track_(track), outer_(in_progress.innermost) {
  in_progress.innermost = this;
  if (!std::exchange(in_progress.is_known, true)) Callers::Get().Add();
}

CallScope::~CallScope() {
  in_progress.innermost = outer_;
  // The call failed after all: nobody would say when its memory is free.
  for (const auto& read : pieces_) (void)read->Finish();
  for (const auto& read : reads_) (void)read->Finish();
  if (loan_ == nullptr) return;
  // No request was taken, because the call failed after all: nobody would say when its buffer is free.
  for (const Completion::Part& part : parts_) part.source->EndLoans();
  Arena::Unref(loan_);
}

CallScope* CallScope::current() { return in_progress.innermost; }

CallContext CallContext::Current() {
  const Call& call = in_progress;
  CallContext context;
  context.scope_ = call.innermost;
  context.places_ = call.places;
  context.held_ = call.held;
  context.waits_itself_ = call.waiting_itself != 0;
  context.keeps_refused_ = call.keeping != 0;
  return context;
}

void CallScope::Lend(const void* begin, uint64_t size) {
  lent_begin_ = static_cast<const std::byte*>(begin);
  lent_size_ = size;
  if (loan_ == nullptr) loan_ = tidelane::Lend();
}

Slab* CallScope::LoanOf(const std::byte* bytes, uint64_t size) {
  if (loan_ == nullptr || !track_) return nullptr;
  const std::less_equal<const std::byte*> in_order;  // of any two pointers
  if (!in_order(lent_begin_, bytes) || !in_order(bytes + size, lent_begin_ + lent_size_))
    return nullptr;
  Arena::Ref(loan_);
  return loan_;
}

void CallScope::Touch(const std::shared_ptr<EpochSource>& file, uint64_t epoch, bool and_older) {
  // A barrier waits for all before it.
  if (and_older) std::erase_if(parts_, [&](const auto& part) { return part.source == file; });
  parts_.push_back({file, epoch, and_older});
}

uint64_t CallScope::EpochOf(const EpochSource* file) const {
  const auto newest = std::find_if(parts_.rbegin(), parts_.rend(),
                                   [&](const auto& part) { return part.source.get() == file; });
  return newest == parts_.rend() ? 0 : newest->epoch;
}

bool CallScope::MayComeLater(const std::byte* to, uint64_t size) const {
  const std::less_equal<const std::byte*> in_order;  // of any two pointers
  return std::ranges::any_of(accepted_, [&](const Memory& memory) {
    return in_order(memory.begin, to) && in_order(to + size, memory.begin + memory.size);
  });
}

std::shared_ptr<ExtentRead> CallScope::PiecesOf(const ParallelReadSource& file) const {
  const auto found = std::ranges::find_if(
      pieces_, [&](const auto& read) { return &read->source() == &file && !read->sealed(); });
  return found == pieces_.end() ? nullptr : *found;
}

void CallScope::NoteFlushed(std::shared_ptr<File> file) {
  if (std::ranges::count(flushed_, file) == 0) flushed_.push_back(std::move(file));
}

void CallScope::AddPieces(std::shared_ptr<ExtentRead> read) {
  read->Defer();
  read->source().deferred_reads().Add(read);
  pieces_.push_back(std::move(read));
}

void CallScope::AddRead(std::shared_ptr<ParallelRead> read, uint64_t bytes) {
  Count(Counter::kReadBytesDeferred, bytes);
  read->source().TellDeferred(read->FileBytes());
  read->Defer();
  read->source().deferred_reads().Add(read);
  read->Start();
  reads_.push_back(std::move(read));
}

std::shared_ptr<Completion> CallScope::TakeCompletion() {
  for (auto& read : pieces_) {
    Count(Counter::kReadBytesDeferred, read->FileBytes());
    read->source().TellDeferred(read->FileBytes());
    read->Start();
    reads_.push_back(std::move(read));
  }
  pieces_.clear();
  if (parts_.empty() && reads_.empty()) return nullptr;
  return std::make_shared<Completion>(std::move(parts_), std::move(reads_));
}

ElementsIn::ElementsIn(const ElementPlaces* places)
    : before_(std::exchange(in_progress.places, places)) {}
ElementsIn::~ElementsIn() { in_progress.places = before_; }

HoldsBytes::HoldsBytes(HeldBytes* held) : before_(std::exchange(in_progress.held, held)) {}
HoldsBytes::~HoldsBytes() { in_progress.held = before_; }
HeldBytes* HoldsBytes::current() { return in_progress.held; }

RetainFailedWrites::RetainFailedWrites() { ++in_progress.keeping; }
RetainFailedWrites::~RetainFailedWrites() { --in_progress.keeping; }

void ExplicitWaitScope::Begin() { ++in_progress.waiting_itself; }
void ExplicitWaitScope::End() { --in_progress.waiting_itself; }

}  // namespace tidelane
