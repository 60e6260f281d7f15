// The simulation whose state is checkpointed: charged particles turning in a magnetic field.
//
// Eight variables per particle as in VPIC-IO: position (x, y, z), momentum (ux, uy, uz) and two
// identifiers. The work per step is a number of sub-steps, not a time: if background I/O takes the
// processor away from the computation, the step takes longer and is seen to.
//
// Two sets of arrays: a step reads the set that was last written out and fills the other, so an
// explicitly asynchronous program need not wait for its writes before it computes.
//
// Invariant: the state after n steps depends on the particle count and the sub-steps alone.
// Thread safety: none; one thread (a step may use more of its own).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

namespace tidelane::checkpoint {

// Page-aligned, as codes that care for their I/O do.
template <class T>
class Array {
 public:
  explicit Array(size_t n);
  T* data() { return data_.get(); }
  const T* data() const { return data_.get(); }

 private:
  struct Free {
    void operator()(void* p) const { std::free(p); }
  };
  std::unique_ptr<T[], Free> data_;
};

struct Variable {
  const char* name;
  bool is_integer;  // 32-bit integer, else 32-bit float
  const void* data;
};

class Particles {
 public:
  explicit Particles(size_t count);

  size_t count() const { return count_; }
  std::vector<Variable> variables() const;

  // One step of `substeps` on `threads` threads; reads the current set, fills the other.
  void push(int substeps, int threads = 1);
  // Makes what push computed the current set.
  void swap() { current_ = 1 - current_; }
  // Changes a few values in place: steps without computation still differ from one another.
  void stamp(int step);

 private:
  void push_range(int substeps, size_t begin, size_t end);

  static constexpr int kReals = 6;
  size_t count_;
  int current_ = 0;
  std::vector<Array<float>> sets_[2];
  Array<int32_t> id1_;
  Array<int32_t> id2_;
};

// Sub-steps that take about `seconds` for this many particles and threads on this machine now.
int calibrate(size_t count, double seconds, int threads = 1);

}  // namespace tidelane::checkpoint
