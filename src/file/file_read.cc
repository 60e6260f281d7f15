// The program's side of reading: what a file adds to content/read_path.h.
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include "base/counters.h"
#include "buffer/loan.h"
#include "buffer/probe.h"
#include "content/extent_read.h"
#include "file/file.h"

namespace tidelane {

Status File::Read(uint64_t address, uint64_t size, void* buffer, bool raw,
                  const CallContext& call) {
  if (size == 0) return {};
  if (shared_) {  // nothing of it is kept
    ReadTimes times;
    return content_.Read(Reader::kProgram, address, size, buffer, times);
  }
  if (raw && DeferRead(address, size, buffer, call)) return {};
  // It leaves something there, so not before a read that comes later.
  if (raw && size >= kLeastProbed && !MayWriteTo(buffer, size))
    return Status::Failed(EFAULT, "read").At(path_, address, size);
  if (raw && size >= ReadPath::kLeastShared) {
    const std::shared_ptr<ExtentRead> read = reads_.Share(SharedReads(), size, 1);
    if (read != nullptr && read->Add(address, size, static_cast<std::byte*>(buffer))) {
      return read->ReadNow();
    }
  }
  return reads_.Read(address, size, buffer, raw);
}

bool File::DeferRead(uint64_t address, uint64_t size, void* buffer, const CallContext& call) {
  CallScope* const scope = call.scope();
  auto* const to = static_cast<std::byte*>(buffer);
  if (scope == nullptr || !scope->MayComeLater(to, size) || writes_through()) return false;
  if (reads_.Find(address, size, buffer)) return true;
  try {
    std::shared_ptr<ExtentRead> read = scope->PiecesOf(reads_);
    if (read == nullptr) {
      read = std::make_shared<ExtentRead>(SharedReads(), env_.lanes, env_.config.lanes);
      scope->AddPieces(read);
    }
    if (!read->Add(address, size, to)) return false;
  } catch (const std::bad_alloc&) {
    return false;
  }
  reads_.NoteRead(address, size);
  return true;
}

ByteSource::Keep File::Content::keep() const {
  if (file_.writes_through()) return Keep::kNever;
  return file_.locked() ? Keep::kYes : Keep::kNotLocked;
}

std::optional<FileVersion> File::Content::watched() const {
  FileVersion version;
  if (file_.writable_ || file_.store_->Version(version) != 0) return std::nullopt;
  return version;
}

void File::Content::Overlay(uint64_t address, uint64_t size, std::byte* out, Pieces& pieces,
                            bool& lent, uint64_t& stored) {
  MutexLock lock(file_.mutex_);
  if (file_.HasExclusiveAccess()) stored = file_.store_->size();
  if (file_.pending_.Touches(address, address + size))
    file_.pending_.Overlay(address, size, pieces.list);
  for (Piece& piece : pieces.list) {
    if (piece.data == nullptr || !IsLent(piece.slab)) continue;
    std::memcpy(out + (piece.address - address), piece.data, piece.size);
    Arena::Unref(std::exchange(piece.slab, nullptr));
    lent = true;
  }
}

}  // namespace tidelane
