// Reads: pending bytes on top of storage, small reads through blocks of the same, large ones from what lanes fetched ahead.
#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "base/trace.h"
#include "buffer/loan.h"
#include "engine/file.h"
#include "engine/piece_read.h"

namespace tidelane {
namespace {

// Smaller reads tell nothing of what comes next: looking at them would take as long as they do.
constexpr uint64_t kLargeRead = uint64_t{16} * 1024;
// Below this one request is as good as two.
constexpr uint64_t kLeastShared = 2u << 20;
// A copy of less takes little longer than the clocks that would time it.
constexpr uint64_t kTimedCopy = uint64_t{128} * 1024;
// Of a file whose successor is to be fetched.
constexpr size_t kMostPlaces = 1024;

/// Pieces of a read, whose slabs stay until it is done or given up.
class Pieces {
 public:
  Pieces() = default;
  ~Pieces() {
    for (const Piece& piece : list) {
      if (piece.slab != nullptr) Arena::Unref(piece.slab);
    }
  }
  Pieces(const Pieces&) = delete;
  Pieces& operator=(const Pieces&) = delete;

  std::vector<Piece> list;
};

}  // namespace

Status File::Read(uint64_t address, uint64_t size, void* buffer, bool raw,
                  const CallContext& call) {
  if (size == 0) return {};
  Status status;
  Took took;
  if (shared_) return LogicalRead(Reader::kProgram, address, size, buffer, took);
  if (raw && DeferRead(address, size, buffer, call)) return {};
  if (raw && size >= kLeastShared) {
    const std::shared_ptr<PieceRead> read = ShareRead(size, 1);
    if (read != nullptr && read->Add(address, size, static_cast<std::byte*>(buffer))) {
      return read->ReadNow();
    }
  }
  const bool large = raw && size >= kLargeRead;
  if (FetchedAhead(address, size, raw)) {
    const uint64_t begin_ns = large && size >= kTimedCopy ? NowNs() : 0;
    status = ReadFetched(Reader::kProgram, address, size, buffer, took);
    if (large && status.ok()) TellFetched(begin_ns, size, took);
    if (!large && took.waited_ns != 0) {
      const uint64_t now_ns = NowNs();
      chooser_->reads().Small(now_ns - took.waited_ns, now_ns);
    }
  } else {
    if (size <= BlockCache::kSmall || caching_.load(std::memory_order_relaxed)) {
      MutexLock lock(read_mutex_);
      if (ReadThroughCache(address, size, buffer, raw, status)) return status;
    }
    status = LogicalRead(Reader::kProgram, address, size, buffer, took);
    if (!large) {
      TellSmall(took);
    } else if (took.bytes != 0 && status.ok()) {
      TellRead(took.begin_ns, size, took);
    }
  }
  if (took.last_ns != 0) NoteSpeed(size, took.last_ns);
  if (!raw && noting_places_) NotePlace(address, size);
  if (raw && status.ok()) NoteRead(address, size);
  return status;
}

Status File::ReadAlongside(Reader reader, uint64_t address, uint64_t size, void* buffer) {
  Took took;
  const bool fetched = FetchedAhead(address, size, true);
  Status status = fetched ? ReadFetched(reader, address, size, buffer, took)
                          : LogicalRead(reader, address, size, buffer, took);
  if (!fetched && reader == Reader::kProgram && took.last_ns != 0) NoteSpeed(size, took.last_ns);
  if (status.ok()) TellAnswered(reader, took);
  return status;
}

void File::TellAnswered(Reader reader, const Took& took) {
  if (took.bytes < kLargeRead) return;
  const bool later = reader == Reader::kLater || reader == Reader::kAhead;
  chooser_->reads().Answered(
      identity_.device, later ? model::ReadPhases::For::kLater : model::ReadPhases::For::kProgram,
      {.begin_ns = took.begin_ns, .end_ns = took.end_ns, .bytes = took.bytes});
}

void File::TellRead(uint64_t begin_ns, uint64_t size, const Took& took) {
  model::ReadPhases& reads = chooser_->reads();
  reads.Begin(begin_ns);
  TellAnswered(Reader::kProgram, took);
  reads.End(identity_.device, {.end_ns = took.end_ns, .bytes = size});
}

void File::TellFetched(uint64_t begin_ns, uint64_t size, const Took& took) {
  const uint64_t end_ns = NowNs();
  model::ReadPhases& reads = chooser_->reads();
  reads.Begin(begin_ns == 0 ? end_ns : begin_ns);
  TellAnswered(Reader::kProgram, took);
  if (took.waited_ns != 0) reads.Waited(took.waited_ns);
  reads.End(identity_.device, {.end_ns = end_ns,
                               .bytes = size,
                               .copied_bytes = took.copied_bytes,
                               .copy_ns = took.copy_ns});
}

void File::TellDeferred(uint64_t bytes) {
  if (bytes < kLargeRead) return;
  const uint64_t now_ns = NowNs();
  chooser_->reads().Begin(now_ns);
  chooser_->reads().End(identity_.device, {.end_ns = now_ns, .bytes = bytes});
}

bool File::DeferRead(uint64_t address, uint64_t size, void* buffer, const CallContext& call) {
  CallScope* const scope = call.scope();
  auto* const to = static_cast<std::byte*>(buffer);
  if (scope == nullptr || !scope->MayComeLater(to, size) || writes_through()) return false;
  {
    MutexLock lock(read_mutex_);
    if (cache_.Read(address, size, buffer)) {
      Count(Counter::kReadAheadHits);
      return true;
    }
  }
  try {
    std::shared_ptr<PieceRead> read = scope->PiecesOf(*this);
    if (read == nullptr) {
      read = std::make_shared<PieceRead>(shared_from_this(), lanes_, config_.lanes);
      scope->AddPieces(read);
    }
    if (!read->Add(address, size, to)) return false;
  } catch (const std::bad_alloc&) {
    return false;
  }
  NoteRead(address, size);
  return true;
}

std::shared_ptr<PieceRead> File::ShareRead(uint64_t bytes, uint64_t pieces) {
  if (bytes < kLeastShared || bytes / pieces < kLargeRead || !read_speed_.slow() ||
      !config_.parallel_reads || !lanes_.threaded()) {
    return nullptr;
  }
  try {
    return std::make_shared<PieceRead>(shared_from_this(), lanes_, config_.lanes);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

void File::NoteSpeed(uint64_t size, uint64_t ns) {
  read_speed_.Note(size, ns);
  cache_.Observe(size, ns);
}

bool File::ReadThroughCache(uint64_t address, uint64_t size, void* buffer, bool raw,
                            Status& status) {
  if (cache_.Read(address, size, buffer)) {
    Count(Counter::kReadAheadHits);
    return true;
  }
  const uint64_t end = eof();
  if (!cache_.Wants(address, size, raw, end)) return false;
  // Nobody but us may change the file under a cached block: a lock tells, and what the program does with its own
  // descriptor (or a SWMR writer in another process) nobody tells.
  if (write_through_.load(std::memory_order_relaxed)) return false;
  if (!lock_.held()) {
    CountUnlockedLocked();
    return false;
  }
  const uint64_t start = BlockCache::BlockStart(address);
  const uint64_t valid = std::min(BlockCache::kBlock, end - start);
  if (noting_places_) NotePlace(start, valid);
  Took took;
  caching_.store(true, std::memory_order_relaxed);
  status = LogicalRead(Reader::kProgram, start, valid, cache_.Claim(start), took);
  if (raw && took.bytes >= kLargeRead && status.ok()) {
    TellRead(took.begin_ns, valid, took);
  } else {
    TellSmall(took);
  }
  cache_.Commit(start, status.ok() ? valid : 0);
  if (!status.ok()) return false;  // the plain read decides what the program is told
  return cache_.Read(address, size, buffer);
}

Status File::LogicalRead(Reader reader, uint64_t address, uint64_t size, void* buffer, Took& took) {
  auto* out = static_cast<std::byte*>(buffer);
  Pieces held;
  std::vector<Piece>& pieces = held.list;
  uint64_t stored = UINT64_MAX;
  bool lent = false;
  {
    MutexLock lock(mutex_);
    if (Alone()) stored = store_->size();
    if (pending_.Touches(address, address + size)) pending_.Overlay(address, size, pieces);
    // A lent buffer is the program's again as soon as its bytes are stored, and another thread may hear of it.
    for (Piece& piece : pieces) {
      if (piece.data == nullptr || !IsLent(piece.slab)) continue;
      std::memcpy(out + (piece.address - address), piece.data, piece.size);
      Arena::Unref(std::exchange(piece.slab, nullptr));
      lent = true;
    }
  }
  if (pieces.empty() && address < stored) {
    return ReadStorage(reader, address, size, buffer, took);
  }
  if (pieces.empty()) pieces.push_back({address, size, nullptr, nullptr});
  // Bytes that were pending a moment ago may land while we read, which changes nothing: we have them. Bytes that were
  // not pending cannot become so: the program is here.
  const auto from_storage = [&](const Piece& piece) {
    return piece.data == nullptr && piece.address < stored;
  };
  const auto storage_pieces = std::count_if(pieces.begin(), pieces.end(), from_storage);
  const bool whole =
      storage_pieces > 2 &&
      !lent;  // one request for all, then pending bytes on top, beats many small requests
  Status status;
  if (whole) status = ReadStorage(reader, address, size, buffer, took);
  for (const Piece& piece : pieces) {
    std::byte* to = out + (piece.address - address);
    if (piece.data != nullptr && piece.slab == nullptr) continue;  // copied above
    if (piece.data != nullptr) {
      std::memcpy(to, piece.data, piece.size);
    } else if (!from_storage(piece)) {
      std::memset(to, 0,
                  piece.size);  // written by nobody yet, and nobody else is there: no need to ask
    } else if (!whole && status.ok()) {
      status = ReadStorage(reader, piece.address, piece.size, to, took);
    }
  }
  return status;
}

void File::NoteTook(uint64_t begin_ns, uint64_t end_ns, uint64_t size, Took& took) {
  if (took.bytes == 0) took.begin_ns = begin_ns;
  took.end_ns = end_ns;
  took.last_ns = end_ns - begin_ns;
  took.bytes += size;
}

Status File::ReadStorage(Reader reader, uint64_t address, uint64_t size, void* buffer, Took& took) {
  int error = 0;
  if (reader == Reader::kAhead) {
    const uint64_t begin_ns = NowNs();
    error = store_->Read(address, buffer, size);
    NoteTook(begin_ns, NowNs(), size, took);
    return error == 0 ? Status() : Status::Failed(error, "read").At(path_, address, size);
  }
  const Lanes::ForegroundRead foreground(lanes_);
  if (reader == Reader::kProgram) {
    Waiting waiting(Wait::kRead, size, Waiting::kTimed);
    error = store_->Read(address, buffer, size);
    waiting.Stop();
    NoteTook(waiting.begin_ns(), waiting.end_ns(), size, took);
  } else {
    const Span span(SpanKind::kRead, size);
    const uint64_t begin_ns = NowNs();
    error = store_->Read(address, buffer, size);
    NoteTook(begin_ns, NowNs(), size, took);
  }
  Count(Counter::kStorageReads);
  Count(Counter::kStorageReadBytes, size);
  if (reader != Reader::kProgram) Count(Counter::kReadBytesByLanes, size);
  if (error != 0) return Status::Failed(error, "read").At(path_, address, size);
  return {};
}

// Metadata that is not all there is better read by the block.
bool File::FetchedAhead(uint64_t address, uint64_t size, bool raw) const {
  ReadAhead* const ahead = Ahead();
  if (ahead == nullptr || ahead->pieces().empty() || !MayReadAhead() || !ahead->ours())
    return false;
  return raw && size >= kLargeRead ? ahead->pieces().Touches(address, address + size)
                                   : ahead->pieces().Covers(address, address + size);
}

Status File::ReadFetched(Reader reader, uint64_t address, uint64_t size, void* buffer, Took& took) {
  AheadPieces& pieces = Ahead()->pieces();
  auto* out = static_cast<std::byte*>(buffer);
  const uint64_t end = address + size;
  bool whole = true;
  while (address < end) {
    const bool timed = reader == Reader::kProgram && end - address >= kTimedCopy;
    const AheadPieces::Part part = pieces.Take(address, end);
    const uint64_t length = part.end - address;
    took.waited_ns += part.waited_ns;
    if (part.data != nullptr && timed) {
      const uint64_t taken_ns = NowNs();
      std::memcpy(out, part.data, length);
      took.copy_ns += NowNs() - taken_ns;
      took.copied_bytes += length;
    } else if (part.data != nullptr) {
      std::memcpy(out, part.data, length);
    } else {
      whole = false;
      Status status = LogicalRead(reader, address, length, out, took);
      if (!status.ok()) return status;
    }
    out += length;
    address = part.end;
  }
  if (whole) Count(Counter::kAheadHits);
  if (!whole && size >= kLargeRead) Count(Counter::kAheadMisses);
  return {};
}

void File::NoteRead(uint64_t address, uint64_t size) {
  if (noting_places_) NotePlace(address, size);
  if (size < kLargeRead || !may_read_ahead_ || write_through_.load(std::memory_order_relaxed))
    return;
  if (config_.read_ahead == Toggle::kAuto && !read_speed_.slow()) return;
  if (!lock_.held()) {
    MutexLock lock(read_mutex_);
    return CountUnlockedLocked();
  }
  if (ahead_owner_ == nullptr) MakeAhead(std::make_shared<AheadPieces>(ahead_room_->slab_size()));
  if (!ahead_owner_->ours()) return;
  try {
    ahead_owner_->Note(address, size, eof());
  } catch (const std::bad_alloc&) {
    ahead_owner_->pieces().DropAll();  // no memory, no guess
  }
}

void File::MakeAhead(std::shared_ptr<AheadPieces> pieces) {
  // Called by lanes as long as the device is open: StopAhead comes before its end.
  auto fetch = [this](uint64_t from, uint64_t bytes, std::byte* to) {
    Took took;
    const bool read = LogicalRead(Reader::kAhead, from, bytes, to, took).ok();
    if (read) TellAnswered(Reader::kAhead, took);
    return read;
  };
  ahead_owner_ =
      std::make_unique<ReadAhead>(lanes_, ahead_room_, std::move(pieces), std::move(fetch));
  ahead_.store(ahead_owner_.get(), std::memory_order_release);
}

void File::AdoptAhead(std::shared_ptr<AheadPieces> pieces, const FileVersion& version) {
  MakeAhead(std::move(pieces));
  adopted_version_ = version;
  adopted_ahead_ = true;
}

void File::NotePlace(uint64_t address, uint64_t size) {
  if (!places_.empty()) {
    ByteRange& last = places_.back();
    if (address >= last.begin && address <= last.end + BlockCache::kBlock) {
      last.end = std::max(last.end, address + size);
      return;
    }
  }
  if (places_.size() == kMostPlaces) {
    noting_places_ = false;
    places_ = {};
  } else {
    places_.push_back({address, address + size});
  }
}

std::vector<ByteRange> File::TakePlaces() {
  noting_places_ = false;
  // Who read what lanes had fetched has not been slow.
  const bool slow = config_.read_ahead == Toggle::kOn || read_speed_.slow() || Ahead() != nullptr;
  return slow && MayReadAhead() ? std::exchange(places_, {}) : std::vector<ByteRange>();
}

void File::StopAhead() {
  ReadAhead* const ahead = Ahead();
  if (ahead == nullptr || !ahead->ours()) return;
  const Waiting waiting(Wait::kClose, 0, Waiting::kRest);
  ahead->Stop();
}

}  // namespace tidelane
