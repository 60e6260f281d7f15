// What the parts of the stand-in share: who may call, what is counted, and which calls shall fail.
//
// Invariant: every exported function of the driver's begins with enter(), so that nothing escapes the counters, the faults
// and the check for children of a fork.
//
// Thread safety: any thread; a lock of its own, under which nothing else is locked.
#pragma once

#include <chrono>
#include <string>

#include "gpu/standin_cuda.h"

#define STANDIN_EXPORT __attribute__((visibility("default")))

namespace tidelane::standin {

// Notes a call; an error is what the call has to return.
CUresult enter(const char* function);
// What a test planned for the copy whose call the thread has entered last: taken once.
struct LateFault {
  CUresult error = kCudaSuccess;
  bool sticky = false;
  bool dropped = false;
  bool planned() const { return dropped || error != kCudaSuccess; }
};
LateFault take_late_fault();

void initialize();
std::chrono::microseconds delay();
void count_pageable();
// Notes what is undefined with the real driver, and gives the error.
CUresult misuse(const std::string& what, CUresult error);

// While one of these lives the thread runs a function of the program's on a stream, where no call is allowed.
class InHostFunction {
 public:
  InHostFunction();
  ~InHostFunction();
  InHostFunction(const InHostFunction&) = delete;
  InHostFunction& operator=(const InHostFunction&) = delete;
};

}  // namespace tidelane::standin
