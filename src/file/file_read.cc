// The program's side of reading: what a file adds to content/read_path.h.
#include <cerrno>
#include <new>

#include "buffer/probe.h"
#include "content/extent_read.h"
#include "file/file.h"

namespace tidelane {

Status File::Read(uint64_t address, uint64_t size, void* buffer, bool raw,
                  const CallContext& call) {
  if (size == 0) return {};
  if (context_.traits.others_write) {  // nothing of it is kept
    ReadTimes times;
    return content_.Read(Reader::kProgram, address, size, buffer, times);
  }
  if (raw && DeferRead(address, size, buffer, call)) return {};
  // It leaves something there, so not before a read that comes later.
  if (raw && size >= kLeastProbed && !MayWriteTo(buffer, size))
    return context_.Failure(EFAULT, "read", address, size);
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
      read = std::make_shared<ExtentRead>(SharedReads(), context_.env.lanes,
                                          context_.env.config.lanes_for_all());
      scope->AddPieces(read);
    }
    if (!read->Add(address, size, to)) return false;
  } catch (const std::bad_alloc&) {
    return false;
  }
  reads_.NoteRead(address, size);
  return true;
}

}  // namespace tidelane
