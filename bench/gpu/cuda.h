// The few functions of CUDA's driver that measuring takes, found at run time: no CUDA is needed to build this.
//
// Thread safety: none; a Cuda belongs to the main thread, whose context it makes current.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tidelane::gpu_bench {

class Cuda {
 public:
  Cuda();  // ends the program where there is no GPU

  void* allocate(size_t size);
  void* allocate_pinned(size_t size);
  void upload(void* to, const void* from, size_t size);
  // Waits until it is done.
  void copy_to_pinned(void* to, const void* from, size_t size);
  void copy_to_pageable(void* to, const void* from, size_t size);
  void copy_from_pinned(void* to, const void* from, size_t size);
  // The GPU works for so long, and the processor waits for it as programs do: busily, inside the driver.
  void compute(int milliseconds);
  const char* device_name() const { return name_; }

 private:
  void check(int error, const char* what) const;

  char name_[256] = {};
  void* stream_ = nullptr;
  void* field_ = nullptr;
};

}  // namespace tidelane::gpu_bench
