#include "engine/call_scope.h"

#include <functional>

#include "buffer/loan.h"
#include "engine/file.h"

namespace tidelane {
namespace {
// A plain pointer: thread_local objects with destructors do not survive a plugin's way out.
thread_local CallScope* innermost = nullptr;
thread_local unsigned keeping = 0;
thread_local unsigned waiting_itself = 0;
}  // namespace

CallScope::CallScope(unsigned permissions, bool track)
    : permissions_(permissions), track_(track), outer_(innermost) {
  innermost = this;
}

CallScope::~CallScope() {
  innermost = outer_;
  if (loan_ == nullptr) return;
  // No request was taken, because the call failed after all: nobody would say when its buffer is free.
  for (const Completion::Part& part : parts_) part.file->EndLoans();
  Arena::Unref(loan_);
}

CallScope* CallScope::current() { return innermost; }

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

void CallScope::Touch(const std::shared_ptr<File>& file, uint64_t epoch, bool and_older) {
  for (Completion::Part& part : parts_) {
    if (part.file != file) continue;
    if (part.epoch < epoch) part.epoch = epoch;
    part.and_older |= and_older;
    return;
  }
  parts_.push_back({file, epoch, and_older});
}

uint64_t CallScope::EpochOf(const File* file) const {
  for (const Completion::Part& part : parts_) {
    if (part.file.get() == file) return part.epoch;
  }
  return 0;
}

std::shared_ptr<Completion> CallScope::TakeCompletion() {
  if (parts_.empty()) return nullptr;
  return std::make_shared<Completion>(std::move(parts_));
}

KeepRefused::KeepRefused() { ++keeping; }
KeepRefused::~KeepRefused() { --keeping; }
bool KeepRefused::active() { return keeping != 0; }

void WaitsItself::Begin() { ++waiting_itself; }
void WaitsItself::End() { --waiting_itself; }
bool WaitsItself::active() { return waiting_itself != 0; }

}  // namespace tidelane
