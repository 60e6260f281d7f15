#include "file/file_content.h"

#include <cstring>
#include <utility>

#include "buffer/loan.h"

namespace tidelane {

ByteSource::Keep FileContent::keep() const {
  if (file_.mode.through()) return Keep::kNever;
  return file_.lock.held() || file_.traits.kept_unlocked ? Keep::kYes : Keep::kNotLocked;
}

std::optional<FileVersion> FileContent::watched() const {
  FileVersion version;
  if (file_.writable || file_.store->Version(version) != 0) return std::nullopt;
  return version;
}

void FileContent::Overlay(uint64_t address, uint64_t size, std::byte* out, Pieces& pieces,
                          bool& lent, uint64_t& stored) {
  MutexLock lock(drainer_.mutex());
  PendingMap& pending = drainer_.backlog().pending;
  if (file_.HasExclusiveAccess()) stored = file_.store->size();
  if (pending.Touches(address, address + size)) pending.Overlay(address, size, pieces.list);
  for (Piece& piece : pieces.list) {
    if (piece.data == nullptr || !IsLent(piece.slab)) continue;
    std::memcpy(out + (piece.address - address), piece.data, piece.size);
    Arena::Unref(std::exchange(piece.slab, nullptr));
    lent = true;
  }
}

}  // namespace tidelane
