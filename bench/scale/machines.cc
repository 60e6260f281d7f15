#include "scale/machines.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace tidelane::scale {
namespace {

constexpr double kKib = 1024, kMib = 1024 * kKib;

// A rank's copies: the rate that is its share of the node's, and some microseconds for each write.
model::CopyCost Copies(double bytes_per_second, double seconds_a_write) {
  model::CopyCost copy;
  for (double bytes = 4 * kKib; bytes <= 128 * kMib; bytes *= 2)
    copy.Add(bytes, bytes, seconds_a_write + bytes / bytes_per_second);
  return copy;
}

// 6 ranks a node; GPFS, which 768 ranks saturate. A GPFS client moves about 2 GB/s.
Machine Summit() {
  return {.ranks_per_node = 6,
          .node_bandwidth = 2e9,
          .storage_bandwidth = 128 * 2e9,
          .latency = 1e-3,
          .service = 2e-6,
          .copy = Copies(8e9, 20e-6)};
}

// 32 ranks a node; Lustre with 72 of 248 OSTs of 700 GB/s in all, which 1024 ranks saturate.
Machine Cori() {
  const double share = 700e9 * 72 / 248;
  return {.ranks_per_node = 32,
          .node_bandwidth = share / 32,
          .storage_bandwidth = share,
          .latency = 2e-3,
          .service = 4e-6,
          .copy = Copies(2e9, 30e-6)};
}

// The throttle's defaults, and no network.
Machine Here() {
  return {.ranks_per_node = 1,
          .node_bandwidth = 0,
          .storage_bandwidth = 200e6,
          .latency = 2e-3,
          .service = 0,
          .copy = Copies(4e9, 5e-6)};
}

constexpr Workload kWorkloads[] = {
    // 8 x 1024 x 1024 particles of 8 properties, 32 MiB each; 30 s of sleep. BD-CATS-IO reads as many.
    {"vpic", false, 8 * 32 * kMib, 32 * kMib, 30, 5},
    {"bdcats", false, 8 * 32 * kMib, 32 * kMib, 30, 5, true},
    // 2048³ cells, 6 components of 8 bytes; boxes of 64³.
    {"nyx-large", true, 2048.0 * 2048 * 2048 * 6 * 8, 64.0 * 64 * 64 * 6 * 8, 600, 5},
    // 256³ cells; boxes of 32³.
    {"nyx-small", true, 256.0 * 256 * 256 * 6 * 8, 32.0 * 32 * 32 * 6 * 8, 60, 5},
    // 128³ cells, three levels of as many, 6 components, 2 particles a cell of 7 reals; boxes of 32³.
    {"castro", true, 3 * 128.0 * 128 * 128 * (6 + 2 * 7) * 8, 32.0 * 32 * 32 * 6 * 8, 60, 5},
    // A batch of 8 samples of 128³ voxels, 4 numbers of 2 bytes.
    {"cosmoflow", false, 8 * 128.0 * 128 * 128 * 4 * 2, 128.0 * 128 * 128 * 4 * 2, 30, 5},
    // 30000 x 30000 x 17000 m at 50 m, 3 components at 2 times, 8 bytes.
    {"eqsim", true, 600.0 * 600 * 340 * 3 * 2 * 8, 16 * kMib, 300, 5},
    // As of this repository's VPIC-IO: bench/papers, which counts what its steps are.
    {"vpic-here", false, 8 * kMib, kMib, 0.5, 5},
};

}  // namespace

Program Workload::At(uint64_t ranks) const {
  const double mine = strong ? bytes / static_cast<double>(ranks) : bytes;
  return {.ranks = ranks,
          .bytes = static_cast<uint64_t>(std::llround(std::max(mine, 1.0))),
          .request_bytes = static_cast<uint64_t>(std::llround(write_bytes)),
          .small_requests = static_cast<uint64_t>(std::llround(small_requests)),
          .small_bytes = static_cast<uint64_t>(std::llround(small_bytes)),
          .compute = compute,
          .epochs = epochs,
          .reads = reads};
}

Machine MachineCalled(const std::string& name) {
  if (name == "summit") return Summit();
  if (name == "cori") return Cori();
  if (name == "here") return Here();
  throw std::invalid_argument("no machine is called " + name);
}

Workload WorkloadCalled(const std::string& name) {
  for (const Workload& workload : kWorkloads) {
    if (name == workload.name) return workload;
  }
  throw std::invalid_argument("no workload is called " + name);
}

}  // namespace tidelane::scale
