#include "store/direct_store.h"

#include <limits.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <vector>

#include "base/counters.h"
#include "base/trace.h"

namespace tidelane {
namespace {

constexpr std::byte kZeros[4096]{};

// How many parts a run has at most, with zeros in its gaps.
size_t MostParts(const Run& run) {
  const size_t extents = run.extents.size();
  return run.gap_bytes == 0 ? extents : 2 * extents + run.gap_bytes / sizeof kZeros;
}

void RaiseTo(std::atomic<uint64_t>& size, uint64_t end) {
  uint64_t known = size.load(std::memory_order_relaxed);
  while (known < end && !size.compare_exchange_weak(known, end, std::memory_order_release)) {
  }
}

}  // namespace

DirectStore::DirectStore(std::shared_ptr<Device> device) : device_(std::move(device)) {
  uint64_t size = 0;
  if (device_->Size(size) == 0) size_.store(size, std::memory_order_relaxed);
}

int DirectStore::WriteTimed(Run& run, const iovec* parts, size_t count) {
  run.write_begin_ns = NowNs();
  const int error = device_->Write(run.begin, parts, count);
  run.write_end_ns = NowNs();
  RaiseTo(size_, error == 0 ? run.end : EndAfterFailure(*device_, run.end));
  return error;
}

// In gaps lies nothing yet: zeros, then.
int DirectStore::WriteParts(Run& run) {
  std::vector<iovec> parts;
  parts.reserve(MostParts(run));
  uint64_t at = run.begin;
  for (const Extent& extent : run.extents) {
    for (; at < extent.address; at += parts.back().iov_len) {
      const uint64_t gap = std::min<uint64_t>(extent.address - at, sizeof kZeros);
      parts.push_back({const_cast<std::byte*>(kZeros), gap});
    }
    parts.push_back({const_cast<std::byte*>(extent.data), extent.size});
    at = extent.end();
  }
  return WriteTimed(run, parts.data(), parts.size());
}

// One buffer for the whole run: with gaps it is read first, and written back with what is new on top.
int DirectStore::WriteWhole(Run& run, uint64_t stored) {
  // Local memory, not the arena: a lane that waited for the arena could wait for itself.
  const auto whole = std::make_unique_for_overwrite<std::byte[]>(run.size());
  if (run.gap_bytes != 0 && run.begin >= stored) {
    std::memset(whole.get(), 0, run.size());
  } else if (run.gap_bytes != 0) {
    Span span(SpanKind::kGapRead, run.size());
    Count(Counter::kGapFillReads);
    Count(Counter::kGapFillBytes, run.gap_bytes);
    if (const int error = device_->Read(run.begin, whole.get(), run.size()); error != 0)
      return error;
  }
  for (const Extent& extent : run.extents) {
    std::memcpy(whole.get() + (extent.address - run.begin), extent.data, extent.size);
  }
  const iovec part{whole.get(), run.size()};
  return WriteTimed(run, &part, 1);
}

int DirectStore::Write(Run& run) {
  const uint64_t stored = size();
  const bool nothing_to_keep = run.gap_bytes == 0 || run.begin >= stored;
  const bool in_parts =
      nothing_to_keep && MostParts(run) <= IOV_MAX;  // more would be several requests
  try {
    return in_parts ? WriteParts(run) : WriteWhole(run, stored);
  } catch (const std::bad_alloc&) {
    return ENOMEM;
  }
}

int DirectStore::WriteBytes(Run& run, const void* bytes) {
  const iovec part{const_cast<void*>(bytes), run.size()};
  return WriteTimed(run, &part, 1);
}

int DirectStore::SetSize(uint64_t size) {
  const int error = device_->Truncate(size);
  if (error == 0) size_.store(size, std::memory_order_release);
  return error;
}

int DirectStore::Reserve(uint64_t address, uint64_t size) {
  const int error = device_->Reserve(address, size);
  if (error == 0) reserved_.store(true, std::memory_order_relaxed);
  return error;
}

void DirectStore::EndReservations(uint64_t& found) {
  const uint64_t expected = size();
  found = expected;
  if (expected == 0 || device_->Size(found) != 0) {
    found = expected;
  } else if (found == expected && reserved_.load(std::memory_order_relaxed)) {
    (void)device_->Truncate(expected);
  }
}

std::unique_ptr<Store> DirectStoreOn(const std::shared_ptr<Device>& device) {
  return std::make_unique<DirectStore>(device);
}

}  // namespace tidelane
