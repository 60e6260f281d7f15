// What a fork does to the engine: both sides find whole files and free locks.
//
// fork copies memory and descriptors but no threads:
//   1. end reads and drain everything, so that no byte is on its way in two processes;
//   2. park the lanes, so that none is inside an allocator or a C library call;
//   3. take every lock in order, so that none is held by a thread that the child will not have, at a moment when no thread of the
//      program is closing a drained file's device: in the child nobody would end that, and its descriptor would keep the lock;
//   4. release them on both sides; the child gives up its parent's locks of journalled files (device/fork_locks.h) and forgets its lanes; the
//      next write starts new ones.
#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "base/summary.h"
#include "base/trace.h"
#include "device/fork_locks.h"
#include "engine/engine.h"
#include "gpu/loaded.h"
#include "publish/unpublished.h"
#include "ranks/bell.h"
#include "ranks/inquiry.h"

namespace tidelane {

// Before the engine was made nobody watched.
bool IsForkedProcess() {
  constexpr unsigned kForkedWithoutExec = 0x40;  // PF_FORKNOEXEC of the kernel's sched.h
  // Without C++ streams: every program would pay for setting up their locales, 0.1 ms and some dozens of pages.
  char text[1024] = {};
  const int file = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
  const ssize_t length = file < 0 ? -1 : read(file, text, sizeof text - 1);
  if (file >= 0) close(file);
  const char* const after_name =
      length <= 0 ? nullptr : std::strrchr(text, ')');  // it may have blanks
  unsigned flags = 0;
  // state, ppid, pgrp, session, tty, tpgid, flags
  return after_name != nullptr &&
         std::sscanf(after_name + 1, " %*c %*d %*d %*d %*d %*d %u", &flags) == 1 &&
         (flags & kForkedWithoutExec) != 0;
}

void Engine::PrepareFork() TL_NO_ANALYSIS {
  Engine& engine = Get();
  for (const auto& file : engine.Known()) file->reads().deferred_reads().AwaitAll();
  (void)engine.DrainAll(Wait::kFork);
  engine.lanes_.Pause();
  engine.registry_.mutex.lock();
  for (auto file = engine.closed_.BeingClosed(); file != nullptr;
       file = engine.closed_.BeingClosed()) {
    engine.registry_.mutex.unlock();
    (void)file->closing().AwaitClosed(Wait::kFork);
    sched_yield();  // who has just closed it takes it off the list next
    engine.registry_.mutex.lock();
  }
  engine.held_for_fork_ = engine.registry_.files.Known();
  for (const auto& file : engine.held_for_fork_) file->LockForFork();
  Bell::Get().LockForFork();
  InquiryDesk::Get().LockForFork();
  engine.lanes_.LockForFork();
  engine.arena_.LockForFork();
  engine.staging_.LockForFork();
  engine.cost_model_->LockForFork();
  Unpublished::Get().LockForFork();
  ForkLocks::Get().LockForFork();
}

void Engine::ParentAfterFork() TL_NO_ANALYSIS {
  Engine& engine = Get();
  ForkLocks::Get().UnlockAfterFork(false);
  Unpublished::Get().UnlockAfterFork(false);
  engine.cost_model_->UnlockAfterFork(false);
  engine.staging_.UnlockAfterFork(false);
  engine.arena_.UnlockAfterFork();
  engine.lanes_.UnlockAfterFork();
  InquiryDesk::Get().UnlockAfterFork(false);
  Bell::Get().UnlockAfterFork(false);
  for (const auto& file : engine.held_for_fork_) file->UnlockAfterFork(false);
  engine.held_for_fork_.clear();
  engine.registry_.mutex.unlock();
  engine.lanes_.Resume();
}

void Engine::ChildAfterFork() TL_NO_ANALYSIS {
  Engine& engine = Get();
  ForkLocks::Get().UnlockAfterFork(true);
  Unpublished::Get().UnlockAfterFork(true);
  engine.cost_model_->UnlockAfterFork(true);
  gpu::ForgetAfterFork();
  engine.staging_.UnlockAfterFork(true);
  engine.arena_.UnlockAfterFork();
  engine.lanes_.ForgetThreadsAfterFork();
  engine.lanes_.UnlockAfterFork();
  InquiryDesk::Get().UnlockAfterFork(true);
  Bell::Get().UnlockAfterFork(true);
  engine.forked_ = true;
  for (const auto& file : engine.held_for_fork_) {
    file->UnlockAfterFork(true);
    FileSettings settings = file->settings();
    if (DeferNothing(settings)) file->SetSettings(settings);
  }
  engine.held_for_fork_.clear();
  engine.registry_.mutex.unlock();
  ResetTraceAfterFork();
  ResetSummaryAfterFork();
}

}  // namespace tidelane
