// A program of many ranks on a machine with shared storage, simulated: what its epochs take, synchronously and asynchronously.
//
// The devices are the throttle's (throttle/meter.h): every node has a pipe to storage, and storage is one pipe for all, with a
// latency for each request and a bandwidth that saturates. The equations are not put in: they come out, and the tests hold
// them (model/epoch.h) against it. Copies cost what model/copy_cost.h says.
//
//   synchronous    all ranks make their requests, one after the other; when the last one is done, all compute
//   asynchronous   all ranks copy their bytes, then compute, while a lane of each makes the requests; a rank whose memory holds
//                  the bytes of an epoch that is not stored yet waits before it copies the next
//   reads          asynchronously: lanes read an epoch's bytes from the end of the I/O phase before on, the program waits for
//                  what is not there yet and copies; nobody reads the first ones before they are asked for
//
// An epoch begins when all ranks are ready. Time is in seconds and begins at zero; nothing here waits or reads a clock.
//
// Invariant: no time goes back; every byte of every epoch is booked once.
// Thread safety: values.
#pragma once

#include <cstdint>
#include <vector>

#include "model/copy_cost.h"

namespace tidelane::scale {

struct Machine {
  uint64_t ranks_per_node = 1;
  double node_bandwidth = 0;     // bytes a second; 0: no limit
  double storage_bandwidth = 0;  // of all nodes together
  double latency = 0;            // of a request
  double service = 0;            // storage's own time for a request, in which it does nothing else
  model::CopyCost copy;          // of one rank while all others of its node copy too
};

struct Program {
  uint64_t ranks = 1;
  uint64_t bytes = 0;           // of a rank in an epoch
  uint64_t request_bytes = 0;   // at most; a rank's last request may be smaller
  uint64_t small_requests = 0;  // besides, between those: metadata, what was split off; not lanes'
  uint64_t small_bytes = 0;     // of each
  double compute = 0;           // seconds after each I/O phase
  int epochs = 1;
  bool async = false;
  bool reads = false;
};

struct Outcome {
  double total = 0;        // seconds, to the last byte stored
  double end = 0;          // of it after the last epoch
  std::vector<double> io;  // seconds for which an epoch's I/O phase held the program up
  double last_phase() const { return io.back(); }
};

Outcome Simulate(const Machine& machine, const Program& program);

// Bytes a second of all ranks as the program sees them, over all its I/O phases but the first: that one finds storage idle
// and memory empty.
double SeenBandwidth(const Program& program, const Outcome& outcome);

}  // namespace tidelane::scale
