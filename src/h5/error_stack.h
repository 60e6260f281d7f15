/// \file
/// HDF5's own failures, kept while we call it.
///
/// Invariant: what was on the stack of the calling thread is there again afterwards, and nothing else.
/// Thread safety: used inside callbacks, under HDF5's lock; the stack is the calling thread's.
#pragma once

#include "h5/functions.h"

namespace tidelane::h5 {

/// Keeps the current error stack over public HDF5 calls, each of which would clear it. Nearly always it is empty: a copy of it
/// would cost more than most of those calls.
class KeepErrorStack {
 public:
  explicit KeepErrorStack(Functions& library)
      : library_(library),
        stack_(library.Eget_num(kDefault) == 0 ? kNoId : library.Eget_current_stack()) {}
  ~KeepErrorStack() {
    if (stack_ >= 0) {
      library_.Eset_current_stack(stack_);
    } else {
      library_.Eclear2(kDefault);
    }
  }
  KeepErrorStack(const KeepErrorStack&) = delete;
  KeepErrorStack& operator=(const KeepErrorStack&) = delete;

 private:
  Functions& library_;
  const hid_t stack_;
};

}  // namespace tidelane::h5
