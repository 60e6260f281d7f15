#include "content/read_path.h"

#include <cstring>
#include <new>
#include <utility>

#include "base/counters.h"
#include "content/extent_read.h"

namespace tidelane {
namespace {

// A copy of less takes little longer than the clocks that would time it.
constexpr uint64_t kTimedCopy = uint64_t{128} * 1024;

}  // namespace

ReadPath::ReadPath(ByteSource& source, Surroundings surroundings)
    : source_(source),
      around_(std::move(surroundings)),
      prefetch_(around_.lanes, around_.prefetch_budget),
      may_fetch_(around_.config.read_ahead != Toggle::kOff && prefetch_.possible()),
      blocks_(around_.config.read_ahead, around_.costs.blocks()) {}

Status ReadPath::Read(uint64_t address, uint64_t size, void* buffer, bool raw) {
  const bool large = raw && size >= kLarge;
  ReadTimes times;
  Status status;
  ForgetIfChanged();
  if (FetchedAhead(address, size, raw)) {
    status = ReadAfterFetching(address, size, buffer, large, times);
  } else if (blocks_.MayHave(size) && ReadBlock(address, size, buffer, raw)) {
    return {};
  } else {
    status = ReadPlainly(address, size, buffer, large, times);
  }
  if (times.last_ns != 0) NoteSpeed(size, times.last_ns);
  if (!raw && places_.noting()) places_.Add(address, size, BlockCache::kBlock);
  if (raw && status.ok()) NoteRead(address, size);
  return status;
}

Status ReadPath::ReadAfterFetching(uint64_t address, uint64_t size, void* buffer, bool large,
                                   ReadTimes& times) {
  const uint64_t begin_ns = large && size >= kTimedCopy ? NowNs() : 0;
  Status status = ReadFetched(Reader::kProgram, address, size, buffer, times);
  if (large && status.ok()) TellFetched(begin_ns, size, times);
  if (!large && times.waited_ns != 0) {
    const uint64_t now_ns = NowNs();
    around_.costs.Small(now_ns - times.waited_ns, now_ns);
  }
  return status;
}

Status ReadPath::ReadPlainly(uint64_t address, uint64_t size, void* buffer, bool large,
                             ReadTimes& times) {
  Status status = source_.Read(Reader::kProgram, address, size, buffer, times);
  if (!large) {
    TellSmall(times);
  } else if (times.bytes != 0 && status.ok()) {
    TellRead(times.begin_ns, size, times);
  }
  return status;
}

bool ReadPath::ReadBlock(uint64_t address, uint64_t size, void* buffer, bool raw) {
  Blocks::Filled filled;
  const bool read = blocks_.Read(source_, address, size, buffer, raw, filled);
  if (filled.size == 0) return read;
  if (places_.noting()) places_.Add(filled.begin, filled.size, BlockCache::kBlock);
  if (raw && filled.times.bytes >= kLarge && filled.ok) {
    TellRead(filled.times.begin_ns, filled.size, filled.times);
  } else {
    TellSmall(filled.times);
  }
  return read;
}

Status ReadPath::ReadAlongside(Reader reader, uint64_t address, uint64_t size, void* buffer) {
  ReadTimes times;
  const bool fetched = FetchedAhead(address, size, true);
  Status status = fetched ? ReadFetched(reader, address, size, buffer, times)
                          : source_.Read(reader, address, size, buffer, times);
  if (!fetched && reader == Reader::kProgram && times.last_ns != 0) NoteSpeed(size, times.last_ns);
  if (status.ok()) TellAnswered(reader, times);
  return status;
}

void ReadPath::TellAnswered(Reader reader, const ReadTimes& times) {
  if (times.bytes < kLarge) return;
  around_.costs.Answered(reader, times);
}

void ReadPath::TellRead(uint64_t begin_ns, uint64_t size, const ReadTimes& times) {
  around_.costs.Begin(begin_ns);
  TellAnswered(Reader::kProgram, times);
  around_.costs.End({.end_ns = times.end_ns, .bytes = size});
}

void ReadPath::TellFetched(uint64_t begin_ns, uint64_t size, const ReadTimes& times) {
  const uint64_t end_ns = NowNs();
  around_.costs.Begin(begin_ns == 0 ? end_ns : begin_ns);
  TellAnswered(Reader::kProgram, times);
  if (times.waited_ns != 0) around_.costs.Waited(times.waited_ns);
  around_.costs.End({.end_ns = end_ns,
                     .bytes = size,
                     .copied_bytes = times.copied_bytes,
                     .copy_ns = times.copy_ns});
}

void ReadPath::TellDeferred(uint64_t bytes) {
  if (bytes < kLarge) return;
  const uint64_t now_ns = NowNs();
  around_.costs.Begin(now_ns);
  around_.costs.End({.end_ns = now_ns, .bytes = bytes});
}

std::shared_ptr<ExtentRead> ReadPath::Share(const std::shared_ptr<ReadPath>& self, uint64_t bytes,
                                            uint64_t pieces) {
  ForgetIfChanged();
  if (bytes < kLeastShared || bytes / pieces < kLarge || !speed_.slow() ||
      !around_.config.parallel_reads || !around_.lanes.threaded()) {
    return nullptr;
  }
  try {
    return std::make_shared<ExtentRead>(self, around_.lanes, around_.config.lanes_for_all());
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

void ReadPath::NoteSpeed(uint64_t size, uint64_t ns) {
  speed_.Note(size, ns);
  blocks_.Observe(size, ns);
}

// Small reads use fetched bytes only where they have all: on a part of it one read of a block is cheaper.
bool ReadPath::FetchedAhead(uint64_t address, uint64_t size, bool raw) const {
  PrefetchBuffer* const pieces = prefetch_.pieces();
  if (pieces == nullptr || pieces->empty() || !may_fetch_ ||
      source_.keep() != ByteSource::Keep::kYes) {
    return false;
  }
  return raw && size >= kLarge ? pieces->Touches(address, address + size)
                               : pieces->Covers(address, address + size);
}

Status ReadPath::ReadFetched(Reader reader, uint64_t address, uint64_t size, void* buffer,
                             ReadTimes& times) {
  PrefetchBuffer& pieces = *prefetch_.pieces();
  auto* out = static_cast<std::byte*>(buffer);
  const uint64_t end = address + size;
  bool whole = true;
  while (address < end) {
    const bool timed = reader == Reader::kProgram && end - address >= kTimedCopy;
    const PrefetchBuffer::Part part = pieces.Take(address, end);
    const uint64_t length = part.end - address;
    times.waited_ns += part.waited_ns;
    if (part.data != nullptr && timed) {
      const uint64_t taken_ns = NowNs();
      std::memcpy(out, part.data, length);
      times.copy_ns += NowNs() - taken_ns;
      times.copied_bytes += length;
    } else if (part.data != nullptr) {
      std::memcpy(out, part.data, length);
    } else {
      whole = false;
      Status status = source_.Read(reader, address, length, out, times);
      if (!status.ok()) return status;
    }
    out += length;
    address = part.end;
  }
  if (whole) Count(Counter::kAheadHits);
  if (!whole && size >= kLarge) Count(Counter::kAheadMisses);
  return {};
}

void ReadPath::NoteRead(uint64_t address, uint64_t size) {
  if (places_.noting()) places_.Add(address, size, BlockCache::kBlock);
  if (size < kLarge || !may_fetch_) return;
  const ByteSource::Keep keep = source_.keep();
  if (keep == ByteSource::Keep::kNever) return;
  if (around_.config.read_ahead == Toggle::kAuto && !speed_.slow()) return;
  if (keep == ByteSource::Keep::kNotLocked) return blocks_.CountUnlocked();
  if (!prefetch_.started()) prefetch_.Start(Fetcher());
  prefetch_.Note(address, size, source_.size());
}

AheadFetcher::Fetch ReadPath::Fetcher() {
  return [this](uint64_t from, uint64_t bytes, std::byte* to) {
    ReadTimes times;
    const bool read = source_.Read(Reader::kAhead, from, bytes, to, times).ok();
    if (read) TellAnswered(Reader::kAhead, times);
    return read;
  };
}

std::vector<ByteRange> ReadPath::TakeRecordedRanges() {
  // Prefetch hits make storage look fast, and that something was fetched proves that it is slow.
  const bool slow =
      around_.config.read_ahead == Toggle::kOn || speed_.slow() || prefetch_.started();
  std::vector<ByteRange> places = places_.Take();
  if (!slow || !may_fetch_ || source_.keep() != ByteSource::Keep::kYes) places.clear();
  return places;
}

}  // namespace tidelane
