// A process that owns device memory and hands it to this one, and starting programs in general.
//
// Invariant: an Owner's process lives as long as it does, and ends by itself when this process does.
// Thread safety: start() and await() may be called from any thread.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>
#include <vector>

#include "gpu/real/driver.h"

namespace tidelane::gpu_real {

// This program again, with these arguments, and in an environment where each variable of `changes` ("NAME=value") is as given, or
// ("NAME") is gone. Its input and output are those descriptors; -1: as they are.
pid_t start(const std::vector<std::string>& arguments, const std::vector<std::string>& changes,
            int input = -1, int output = -1);
// "": it ended with 0. Else how, in words; `status` 128 and more: by a signal.
std::string await(pid_t process, int& status);

class Owner {
 public:
  explicit Owner(size_t bytes);  // throws Unavailable
  ~Owner();
  Owner(const Owner&) = delete;
  Owner& operator=(const Owner&) = delete;
  const IpcHandle& handle() const { return handle_; }

 private:
  pid_t process_ = -1;
  int to_process_ = -1;
  IpcHandle handle_{};
};

// What the owner's process does: allocates, writes the handle to its output, and waits until its input ends.
int own(size_t bytes);

}  // namespace tidelane::gpu_real
