// The order of the one structure that others look at: a file's superblock, and the mark in it that somebody writes the file.
//
// Invariant: storage has the mark of a file that has one when its open returns, and a new file's signature when its first
// deferred flush or close returns; later superblocks it has only when everything before them is stored.
#include "base/incidents.h"
#include "base/trace.h"
#include "buffer/loan.h"
#include "file/write_path.h"
#include "store/superblock.h"

namespace tidelane {

// It stays until the drain: apart, so that it pins no slab.
bool WritePath::CaptureSuperblock(uint64_t address, uint64_t size, const std::byte* bytes,
                                  const CallContext& call) {
  if (!superblock_.Is(address, size)) return false;
  Slab* const kept = KeepCopy(bytes, size);
  if (kept == nullptr) return false;
  MutexLock lock(drainer_.mutex());
  InsertLocked({kept->data, size, kept}, address, call);
  ++drainer_.backlog().captured.writes;
  return true;
}

Status WritePath::WriteAtSuperblock(uint64_t address, uint64_t size, const std::byte* at,
                                    bool through, const CallContext& call) {
  // HDF5's metadata accumulator merges the superblock with its neighbours: capture it apart, it has its own order.
  const uint64_t cuts[] = {superblock_.begin(), superblock_.end(), address + size};
  for (const uint64_t cut : cuts) {
    if (cut <= address || cut > address + size) continue;
    const uint64_t piece = cut - address;
    const bool superblock = address == superblock_.begin() && superblock_.known();
    if (superblock) {
      MutexLock lock(drainer_.mutex());
      drainer_.AwaitFirstSuperblockLocked();
    }
    // The superblock is captured even so: what other calls left pending must be stored before it.
    Status status;
    if (through && !superblock) {
      Count(Fallback::kImplicitOff);
      status = WriteOrKeep(address, piece, at, Fallback::kImplicitOff, call);
    } else {
      status = Capture(address, piece, at, call);
    }
    if (!status.ok()) return status;
    address += piece, at += piece, size -= piece;
    if (size == 0) break;
  }
  return {};
}

void WritePath::FindSuperblock(uint64_t address, uint64_t size, const void* bytes) {
  const std::byte* const found =
      static_cast<const std::byte*>(bytes) + (superblock_.base() - address);
  const uint64_t length = SuperblockSize(found, size - (superblock_.base() - address));
  if (length == 0) return;
  superblock_.Found(length);
  file_.store->SetSuperblock(superblock_.begin(), superblock_.end());
  MutexLock lock(drainer_.mutex());
  Backlog& backlog = drainer_.backlog();
  if (backlog.pending.superblock_begin() != superblock_.begin() ||
      backlog.pending.superblock_end() != superblock_.end()) {
    backlog.pending.SetSuperblock(superblock_.begin(), superblock_.end());
  }
  // A file that had a superblock must be marked on storage before its contents change: a killed writer would leave a file
  // that looks clean, and where files are not locked another writer would be let in. So must a new one where nothing but
  // the mark keeps others out. Other new files have none until their first drain: nobody takes them for whole before.
  const bool existing = file_.store->size() > superblock_.base();
  const bool nothing_else = HasOpenMark(found) && !file_.lock.held();
  const bool whole = size - (superblock_.base() - address) >= length;
  backlog.order.Written(existing || nothing_else, whole ? EndInSuperblock(found) : UINT64_MAX);
}

void WritePath::StoreSignature() {
  if (!superblock_.LacksSignature()) return;
  // Without its version netCDF-C takes it for no file yet. Neither changes: it does not matter which superblock this is of.
  std::byte front[sizeof kSignature + 1];
  if (!reads_.Read(superblock_.begin(), sizeof front, front, false).ok()) return;
  const Waiting waiting(Wait::kOther);
  Run run = DirectRun(superblock_.begin(), sizeof front);
  if (const int error = file_.store->WriteBytes(run, front); error != 0) {
    NoteError(file_.Failure(error, "write", run.begin, run.size()));
  }
}

}  // namespace tidelane
