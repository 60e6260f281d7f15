#include "gpu/copies.h"

#include <algorithm>
#include <map>
#include <new>
#include <utility>

#include "base/annotations.h"
#include "gpu/loaded.h"

namespace tidelane::gpu {
namespace {

// A piece costs some ten microseconds where nobody has used the driver for a while, and the events that time it as many: what is
// copied in less is one piece. Who waits for more wants several.
constexpr uint64_t kPieces = 8;
constexpr uint64_t kSmallestPiece = uint64_t{4} << 20;
constexpr uint64_t kLargestPiece = uint64_t{32} << 20;
constexpr uint64_t kMostInPassing = uint64_t{16} << 20;
constexpr uint64_t kWhole = uint64_t{2} << 20;

uint64_t PieceOf(uint64_t bytes) {
  if (bytes <= kWhole) return kWhole;
  // What has to be done with the last piece is all that comes after the copy.
  if (bytes <= kMostInPassing) return bytes / 4 * 3;
  return std::clamp(bytes / kPieces, kSmallestPiece, kLargestPiece);
}

// Streams and events that copies of one context take turns with: making one takes longer than a small copy. Those of a context that
// nobody can tell from its successor are not kept: with the context they go, and may not even be asked about.
class Shelf {
 public:
  static Shelf& Get() {
    static auto* const shelf = new Shelf;  // never destroyed: calls may come late
    return *shelf;
  }

  int TakeStream(Runtime& runtime, uint64_t context, Stream& stream) {
    stream = Take(streams_, context);
    return stream != nullptr ? 0 : runtime.MakeStream(stream);
  }
  int TakeEvent(Runtime& runtime, uint64_t context, Event& event) {
    event = Take(events_, context);
    return event != nullptr ? 0 : runtime.MakeEvent(event);
  }
  void GiveBackStream(Runtime& runtime, uint64_t context, Stream stream) {
    if (!Keep(streams_, context, stream)) runtime.DestroyStream(stream);
  }
  void GiveBackEvent(Runtime& runtime, uint64_t context, Event event) {
    if (!Keep(events_, context, event)) runtime.DestroyEvent(event);
  }

 private:
  using Kept = std::map<uint64_t, std::vector<void*>>;  // by the context's number

  void* Take(Kept& kept, uint64_t context) TL_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    const auto at = kept.find(context);
    if (at == kept.end() || at->second.empty()) return nullptr;
    void* const taken = at->second.back();
    at->second.pop_back();
    return taken;
  }
  bool Keep(Kept& kept, uint64_t context, void* what) TL_EXCLUDES(mutex_) {
    if (context == 0) return false;
    MutexLock lock(mutex_);
    try {
      kept[context].push_back(what);
      return true;
    } catch (const std::bad_alloc&) {
      return false;
    }
  }

  Mutex mutex_;
  Kept streams_;
  Kept events_;
};

}  // namespace

Copies::Copies(const Memory& memory, Stream after, uint64_t bytes, When when)
    : memory_(memory),
      piece_(PieceOf(bytes)),
      when_(when),
      own_(when == When::kLater || bytes > kMostInPassing ||
           !memory.runtime->Belongs(after, memory.context)),
      stream_(own_ ? nullptr : after) {
  if (!memory_.runtime->Identify(memory_.context, context_)) context_ = 0;
  if (CheckContext() == 0 && own_) MakeOwnStream(after);
}

// Inside one call a context is taken to live. Asked twice: a driver that fails once must not look like a context that has ended.
bool Copies::HasContext() const {
  if (when_ == When::kInCall) return true;
  if (context_ == 0 || IsForked()) return false;
  uint64_t number = 0;
  return (memory_.runtime->Identify(memory_.context, number) ||
          memory_.runtime->Identify(memory_.context, number)) &&
         number == context_;
}

std::string Copies::Describe() const {
  return error_ == kNoContext ? "its context has ended" : memory_.runtime->Describe(error_);
}

void Copies::MakeOwnStream(Stream after) {
  Runtime& runtime = *memory_.runtime;
  const Entered entered(memory_);
  if (Fail(entered.error()) != 0) return;
  if (Fail(Shelf::Get().TakeStream(runtime, context_, stream_)) != 0) {
    stream_ = nullptr;
    return;
  }
  Event event = nullptr;
  if (Fail(Shelf::Get().TakeEvent(runtime, context_, event)) != 0) return;
  // A stream of another context takes no event of this one: it is waited for.
  const int error = runtime.Record(event, after);
  Fail(error == 0 ? runtime.Follow(stream_, event) : runtime.AwaitStream(after));
  Shelf::Get().GiveBackEvent(runtime, context_, event);
}

Copies::~Copies() {
  if (own_ ? stream_ != nullptr : begun_ != 0) End();
}

void Copies::End() {
  if (!HasContext()) return;
  Runtime& runtime = *memory_.runtime;
  const Entered entered(memory_);
  // After a failure nobody knows what is still under way; what has failed with its context is gone with it, and may not even be
  // asked about.
  if (!done() && runtime.AwaitStream(stream_) != 0) return;
  if (start_ != nullptr) Shelf::Get().GiveBackEvent(runtime, context_, start_);
  for (const Piece& piece : pieces_) Shelf::Get().GiveBackEvent(runtime, context_, piece.event);
  if (own_) Shelf::Get().GiveBackStream(runtime, context_, stream_);
}

int Copies::MarkBegin() {
  if (start_ != nullptr) return 0;
  if (Fail(Shelf::Get().TakeEvent(*memory_.runtime, context_, start_)) != 0) return error_;
  return Fail(memory_.runtime->Record(start_, stream_));
}

int Copies::Mark() {
  if (marked_ == begun_) return 0;
  pieces_.reserve(pieces_.size() + 1);
  Event event = nullptr;
  if (Fail(Shelf::Get().TakeEvent(*memory_.runtime, context_, event)) != 0) return error_;
  pieces_.push_back({begun_, event});
  marked_ = begun_;
  return Fail(memory_.runtime->Record(event, stream_));
}

// A copy's host side crosses no boundary between pinned parts, and no piece is longer than piece_.
template <typename Each>
int Copies::InPieces(std::span<const PlacedBox> boxes, const std::byte* host, uint64_t aligned,
                     Each each) {
  if (error_ != 0 || CheckContext() != 0) return error_;
  const Entered entered(memory_);
  if (Fail(entered.error()) != 0) return error_;
  // Of few bytes the time is not worth an event.
  if (piece_ > kWhole && MarkBegin() != 0) return error_;
  const auto left_in_part = [&](uint64_t done) {
    return aligned - reinterpret_cast<uintptr_t>(host + done) % aligned;
  };
  uint64_t done = 0;
  const auto copy = [&](uint64_t at, const Box& box) {
    if (Fail(each(done, at, box)) != 0) return;
    done += box.bytes();
    begun_ += box.bytes();
    if (begun_ - marked_ >= piece_) Mark();
  };
  // Of lines, planes and solids: what fits into the piece and the part.
  const auto copy_rows = [&](uint64_t at, const Box& box) {
    for (uint64_t row = 0; row < box.height && error_ == 0;) {
      const uint64_t room = std::min(piece_ - (begun_ - marked_), left_in_part(done));
      const uint64_t rows = std::min(room / box.width, box.height - row);
      if (rows != 0) {
        copy(at + row * box.pitch, {.width = box.width, .height = rows, .pitch = box.pitch});
        row += rows;
        continue;
      }
      for (uint64_t along = 0; along < box.width && error_ == 0;) {
        const uint64_t part =
            std::min({box.width - along, piece_ - (begun_ - marked_), left_in_part(done)});
        copy(at + row * box.pitch + along, {.width = part});
        along += part;
      }
      ++row;
    }
  };
  for (const PlacedBox& placed : boxes) {
    const Box& box = placed.box;
    if (box.bytes() <= std::min(piece_ - (begun_ - marked_), left_in_part(done))) {
      copy(placed.at, box);
    } else {
      for (uint64_t plane = 0; plane < box.depth && error_ == 0; ++plane)
        copy_rows(placed.at + plane * box.slice * box.pitch, box);
    }
    if (error_ != 0) return error_;
  }
  return Mark();
}

int Copies::Down(std::byte* host, const void* device, std::span<const PlacedBox> boxes,
                 uint64_t aligned) {
  const auto* from = static_cast<const std::byte*>(device);
  return InPieces(boxes, host, aligned, [&](uint64_t done, uint64_t at, const Box& box) {
    return memory_.runtime->CopyDown(host + done, from + at, box, stream_);
  });
}

int Copies::Up(void* device, const std::byte* host, std::span<const PlacedBox> boxes,
               uint64_t aligned) {
  auto* to = static_cast<std::byte*>(device);
  return InPieces(boxes, host, aligned, [&](uint64_t done, uint64_t at, const Box& box) {
    return memory_.runtime->CopyUp(to + at, host + done, box, stream_);
  });
}

uint64_t Copies::EndOfPiece(uint64_t at) const {
  const auto piece = std::ranges::upper_bound(pieces_, at, {}, &Piece::end);
  return piece == pieces_.end() ? begun_ : piece->end;
}

uint64_t Copies::TakeDeviceNs() {
  if (start_ == nullptr || awaited_ == timed_ || error_ != 0 || !HasContext()) return 0;
  const Entered entered(memory_);
  const Event from = timed_ == 0 ? start_ : pieces_[timed_ - 1].event;
  uint64_t ns = 0;
  if (entered.error() != 0 || !memory_.runtime->Elapsed(from, pieces_[awaited_ - 1].event, ns)) {
    return 0;
  }
  timed_ = awaited_;
  return ns;
}

int Copies::Await(uint64_t bytes) {
  if (error_ != 0 || CheckContext() != 0) return error_;
  while (error_ == 0 && awaited_ < pieces_.size() &&
         (awaited_ == 0 || pieces_[awaited_ - 1].end < bytes)) {
    const Entered entered(memory_);
    if (Fail(entered.error()) != 0 || Fail(memory_.runtime->Await(pieces_[awaited_].event)) != 0)
      break;
    ++awaited_;
  }
  return error_;
}

bool Copies::Poll() {
  if (error_ != 0 || CheckContext() != 0) return true;
  const Entered entered(memory_);
  if (Fail(entered.error()) != 0) return true;
  while (awaited_ < pieces_.size()) {
    bool done = false;
    if (Fail(memory_.runtime->IsDone(pieces_[awaited_].event, done)) != 0) return true;
    if (!done) return false;
    ++awaited_;
  }
  return true;
}

}  // namespace tidelane::gpu
