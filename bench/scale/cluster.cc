#include "scale/cluster.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <numeric>
#include <queue>
#include <tuple>

#include "throttle/meter.h"

namespace tidelane::scale {
namespace {

using throttle::Cost;
using throttle::Kind;
using throttle::Meter;

uint64_t Nanoseconds(double seconds) { return static_cast<uint64_t>(std::llround(seconds * 1e9)); }
uint64_t Whole(double value) { return static_cast<uint64_t>(std::llround(value)); }

// Pipes of the nodes, and storage's. Requests come in the order of their times.
class Storage {
 public:
  Storage(const Machine& machine, const Program& program)
      : ranks_per_node_(std::max<uint64_t>(machine.ranks_per_node, 1)),
        request_bytes_(std::max<uint64_t>(program.request_bytes, 1)),
        small_requests_(program.async ? 0 : program.small_requests),
        small_bytes_(program.small_bytes),
        // Storage's own time for a request is as if it carried so many bytes more.
        service_bytes_(Whole(machine.service * machine.storage_bandwidth)),
        storage_(Cost{Nanoseconds(machine.latency), Whole(machine.storage_bandwidth)}),
        lanes_(program.ranks) {
    const uint64_t nodes = (program.ranks + ranks_per_node_ - 1) / ranks_per_node_;
    for (uint64_t i = 0; i < nodes; ++i)
      links_.emplace_back(Cost{0, Whole(machine.node_bandwidth)});
  }

  // All ranks put `bytes` each to storage, one request after the other, from `begin_ns` on or when what they put before is
  // done; when the last one is.
  uint64_t Put(uint64_t begin_ns, uint64_t bytes) {
    std::priority_queue<Event, std::vector<Event>, std::greater<>> events;
    for (uint64_t rank = 0; rank < lanes_.size(); ++rank)
      events.push({std::max(begin_ns, lanes_[rank]), rank, bytes, small_requests_, false});
    uint64_t end_ns = begin_ns;
    while (!events.empty()) {
      Event event = events.top();
      events.pop();
      const bool small = SmallIsNext(event, bytes);
      const uint64_t part = small ? small_bytes_ : std::min(event.left, request_bytes_);
      if (!event.arrived) {
        event.time_ns =
            links_[event.rank / ranks_per_node_].book(Kind::kWrite, event.time_ns, part);
        event.arrived = true;
        events.push(event);
        continue;
      }
      event.time_ns = storage_.book(Kind::kWrite, event.time_ns, part + service_bytes_);
      small ? --event.small_left : event.left -= part;
      event.arrived = false;
      lanes_[event.rank] = event.time_ns;
      end_ns = std::max(end_ns, event.time_ns);
      if (event.left + event.small_left != 0) events.push(event);
    }
    return end_ns;
  }

 private:
  struct Event {
    uint64_t time_ns;
    uint64_t rank;
    uint64_t left;        // bytes
    uint64_t small_left;  // requests besides
    bool arrived;         // at storage
    bool operator>(const Event& other) const {
      return std::tie(time_ns, rank) > std::tie(other.time_ns, other.rank);
    }
  };

  // Small requests come evenly between the others.
  bool SmallIsNext(const Event& event, uint64_t bytes) const {
    if (event.small_left == 0 || event.left == 0) return event.left == 0;
    const double small =
        static_cast<double>(event.small_left) / static_cast<double>(small_requests_);
    return small > static_cast<double>(event.left) / static_cast<double>(bytes);
  }

  const uint64_t ranks_per_node_, request_bytes_, small_requests_, small_bytes_, service_bytes_;
  std::deque<Meter> links_;
  Meter storage_;
  std::vector<uint64_t> lanes_;  // when each is free
};

}  // namespace

Outcome Simulate(const Machine& machine, const Program& program) {
  Storage storage(machine, program);
  const uint64_t compute_ns = Nanoseconds(program.compute);
  const uint64_t copy_ns = Nanoseconds(
      machine.copy.Seconds(static_cast<double>(std::min(program.bytes, program.request_bytes)),
                           static_cast<double>(program.bytes)));
  Outcome outcome;
  uint64_t now_ns = 0, stored_ns = 0;
  for (int epoch = 0; epoch < program.epochs; ++epoch) {
    const uint64_t begin_ns = now_ns;
    if (program.async && program.reads) {
      now_ns =
          epoch == 0 ? storage.Put(now_ns, program.bytes) : std::max(now_ns, stored_ns) + copy_ns;
      stored_ns = epoch + 1 == program.epochs ? now_ns : storage.Put(now_ns, program.bytes);
    } else if (program.async) {
      now_ns = std::max(now_ns, stored_ns) + copy_ns;
      stored_ns = storage.Put(now_ns, program.bytes);
    } else {
      now_ns = stored_ns = storage.Put(now_ns, program.bytes);
    }
    outcome.io.push_back(static_cast<double>(now_ns - begin_ns) / 1e9);
    now_ns += compute_ns;
  }
  outcome.total = static_cast<double>(std::max(now_ns, stored_ns)) / 1e9;
  outcome.end = outcome.total - static_cast<double>(now_ns) / 1e9;
  return outcome;
}

double SeenBandwidth(const Program& program, const Outcome& outcome) {
  const size_t first = outcome.io.size() > 1 ? 1 : 0;
  const auto begin = outcome.io.begin() + static_cast<ptrdiff_t>(first);
  const double seconds = std::accumulate(begin, outcome.io.end(), 0.0);
  const auto phases = static_cast<double>(outcome.io.size() - first);
  return static_cast<double>(program.ranks * program.bytes) * phases / seconds;
}

}  // namespace tidelane::scale
