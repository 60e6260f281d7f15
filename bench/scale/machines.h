// The machines and programs of the performance paper, as far as it says what they are.
//
// Where it does not, a number is chosen, once, and says so: the rate of a node's link, so that storage is saturated by as
// many ranks as the paper names (768 and 1024); the cost of a request; copies. The curves follow.
//
// Thread safety: values.
#pragma once

#include <string>

#include "scale/cluster.h"

namespace tidelane::scale {

struct Workload {
  const char* name;
  bool strong;         // the same bytes in all, however many ranks
  double bytes;        // of a rank, or of all
  double write_bytes;  // of one write, at most
  double compute;      // seconds
  int epochs;
  bool reads = false;
  double small_requests = 0;  // of a rank in a phase, besides
  double small_bytes = 0;
  Program At(uint64_t ranks) const;
};

// Throw std::invalid_argument where there is none of that name.
Machine MachineCalled(const std::string& name);
Workload WorkloadCalled(const std::string& name);

}  // namespace tidelane::scale
