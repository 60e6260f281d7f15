#include "content/content_view.h"

#include <algorithm>
#include <cstring>

#include "base/activity.h"
#include "base/counters.h"
#include "base/trace.h"

namespace tidelane {
namespace {

Status ReadStored(Store& store, Lanes& lanes, const std::string& path, Reader reader,
                  uint64_t address, uint64_t size, void* buffer, ReadTimes& times) {
  int error = 0;
  if (reader == Reader::kAhead) {
    const uint64_t begin_ns = NowNs();
    error = store.Read(address, buffer, size);
    times.Add(begin_ns, NowNs(), size);
    return error == 0 ? Status() : Status::Failed(error, "read").At(path, address, size);
  }
  const Lanes::ForegroundRead foreground(lanes);
  if (reader == Reader::kProgram) {
    Waiting waiting(Wait::kRead, size, Waiting::kTimed);
    error = store.Read(address, buffer, size);
    waiting.Stop();
    times.Add(waiting.begin_ns(), waiting.end_ns(), size);
  } else {
    const Span span(SpanKind::kRead, size);
    const uint64_t begin_ns = NowNs();
    error = store.Read(address, buffer, size);
    times.Add(begin_ns, NowNs(), size);
  }
  Count(Counter::kStorageReads);
  Count(Counter::kStorageReadBytes, size);
  if (reader != Reader::kProgram) Count(Counter::kReadBytesByLanes, size);
  if (error != 0) return Status::Failed(error, "read").At(path, address, size);
  return {};
}

}  // namespace

Status ReadContent(PendingBytes& pending, Store& store, Lanes& lanes, const std::string& path,
                   Reader reader, uint64_t address, uint64_t size, void* buffer, ReadTimes& times) {
  auto* out = static_cast<std::byte*>(buffer);
  Pieces held;
  std::vector<Piece>& pieces = held.list;
  uint64_t stored = UINT64_MAX;
  bool lent = false;
  pending.Overlay(address, size, out, held, lent, stored);
  const auto read = [&](uint64_t from, uint64_t bytes, std::byte* to) {
    return ReadStored(store, lanes, path, reader, from, bytes, to, times);
  };
  if (pieces.empty() && address < stored) return read(address, size, out);
  if (pieces.empty()) pieces.push_back({address, size, nullptr, nullptr});
  // Bytes that were pending a moment ago may land while we read, which changes nothing: we have them. Bytes that were
  // not pending cannot become so: the program is here.
  const auto from_storage = [&](const Piece& piece) {
    return piece.data == nullptr && piece.address < stored;
  };
  // One request for all, then pending bytes on top, beats many small requests.
  const bool whole = std::ranges::count_if(pieces, from_storage) > 2 && !lent;
  Status status;
  if (whole) status = read(address, size, out);
  for (const Piece& piece : pieces) {
    std::byte* to = out + (piece.address - address);
    if (piece.data != nullptr && piece.slab == nullptr) continue;  // copied already
    if (piece.data != nullptr) {
      std::memcpy(to, piece.data, piece.size);
    } else if (!from_storage(piece)) {
      std::memset(to, 0,
                  piece.size);  // written by nobody yet, and nobody else is there: no need to ask
    } else if (!whole && status.ok()) {
      status = read(piece.address, piece.size, to);
    }
  }
  return status;
}

}  // namespace tidelane
