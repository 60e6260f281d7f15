/// \file
/// Reads a box of a chunked array as a parallel read (content/parallel_read.h): each part is a chunk, which is
/// fetched, decoded if the array has filters, and put into the program's memory as far as it is wanted.
///
/// A chunk that is wanted whole, and lies in memory as it does in the array, is read or decoded in
/// place; of others the wanted part is copied. Nobody holds more than one chunk and its stored bytes.
///
/// Thread safety: as content/parallel_read.h; ReadChunks is one call of the program's side of the file (file/file.h).
#pragma once

#include <cstddef>
#include <memory>

#include "base/status.h"
#include "chunk/stored_array.h"

namespace tidelane {

struct ChunkReading {
  StoredArray array;
  TouchedChunks touched;
  std::byte* memory = nullptr;
};

/// Up to `helpers` lanes help. After a failure it is open what the memory holds.
Status ReadChunks(ChunkReading reading, Lanes& lanes, unsigned helpers);

/// The same as a read that is to be deferred (CallScope::AddRead).
std::shared_ptr<ParallelRead> ChunksToRead(ChunkReading reading, Lanes& lanes, unsigned helpers);

}  // namespace tidelane
