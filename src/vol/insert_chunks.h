/// \file
/// What calls have to do with chunks that were written and are not in the file yet (vol/chunk_queue.h): those that
/// could see them, or depend on them, *settle* first.
///
/// Cost: one relaxed load as long as there are no such chunks.
///
/// Thread safety: used inside callbacks, under HDF5's lock.
#pragma once

#include "vol/instance.h"

namespace tidelane::vol {

namespace internal {
bool InsertChunks(Instance& instance, void* object, H5I_type_t type, hid_t dxpl);
bool InsertChunksOf(Instance& instance, size_t count, void* datasets[], hid_t dxpl);
void InsertFinished(Instance& instance, hid_t dxpl);
bool OnlyAppends(Instance& instance, void* dataset, const hsize_t extent[]);
}  // namespace internal

inline bool AnyChunksPending(const Instance& instance) {
  return instance.chunks_pending.load(std::memory_order_relaxed);
}

/// Inserts everything. False, with the failure on the error stack, if something of the file that `object` is in (of HDF5's
/// kind `type`) could not be; never for a null object.
inline bool InsertChunks(Instance& instance, void* object, H5I_type_t type, hid_t dxpl) {
  return !AnyChunksPending(instance) || internal::InsertChunks(instance, object, type, dxpl);
}

/// The same before elements of datasets are read or written: those without chunks of ours need not wait.
inline bool InsertChunksOf(Instance& instance, size_t count, void* datasets[], hid_t dxpl) {
  return !AnyChunksPending(instance) || internal::InsertChunksOf(instance, count, datasets, dxpl);
}

/// For a call that has nothing to do with them: what has been filtered is inserted while we are here.
inline void InsertFinished(Instance& instance, hid_t dxpl) {
  if (AnyChunksPending(instance)) internal::InsertFinished(instance, dxpl);
}

}  // namespace tidelane::vol
