// Element types the stress test stores and transfers, and buffers of deterministic contents.
//
// Invariant: a buffer's contents depend only on (memory type, length, seed), so both sides write
// the same values. Values are small integers, exact in every numeric type used here.
// Thread safety: a Buffer belongs to one thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "support/hid.h"

namespace tidelane::stress {

using testing::Hid;

enum class Kind : uint8_t { I32LE, I32BE, I16LE, U8, I64BE, F32BE, F64LE, Compound, VlString };
enum class Mem : uint8_t { I16, I32, I64, F64, Compound, FieldA, FieldB, VlString };

inline constexpr int kKinds = 9;

const char* name(Kind kind);
Hid file_type(Kind kind);
Hid memory_type(Mem mem);
size_t memory_size(Mem mem);

// The memory type for `kind` chosen by `pick`: any numeric one for a numeric kind (so HDF5
// converts), the only legal one with all that there is for the others. A field alone is also legal for a compound kind, but
// what a write leaves as it is must have been written, or filled, before.
Mem memory_for(Kind kind, uint64_t pick);

class Buffer {
 public:
  Buffer(Mem mem, size_t elements) : mem_(mem), n_(elements) {}

  void fill(uint64_t seed);  // for writes
  void add_extremes();       // some that not every type can hold; numbers only
  void prepare_for_read();   // recognisable contents, so that untouched bytes are compared too
  void scribble();           // after an asynchronous write: the library must have copied
  void* data() {
    return mem_ == Mem::VlString ? static_cast<void*>(pointers_.data()) : raw_.data();
  }
  size_t elements() const { return n_; }

  // What a read left here, as comparable bytes; gives memory of strings back to HDF5.
  std::string take();

 private:
  Mem mem_;
  size_t n_;
  std::vector<uint8_t> raw_;
  std::vector<std::string> strings_;
  std::vector<const char*> pointers_;
};

}  // namespace tidelane::stress
