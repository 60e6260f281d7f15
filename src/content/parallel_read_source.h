/// \file
/// Where a read in parts (parallel_read.h) reads, and who is told of it.
///
/// Thread safety: as the functions say; those that say nothing, from any thread.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "content/byte_source.h"

namespace tidelane {

class DeferredReads;

class ParallelReadSource {
 public:
  virtual ~ParallelReadSource() = default;

  /// Dataset elements, by several threads at once. Meanwhile the program may do anything but change those bytes: see
  /// parallel_read.h.
  virtual Status ReadAlongside(Reader reader, uint64_t address, uint64_t size, void* buffer) = 0;
  virtual uint64_t size() const = 0;
  virtual const std::string& path() const = 0;
  /// Its reads that go on after their calls.
  virtual DeferredReads& deferred_reads() = 0;

  /// The program has read these dataset elements: what comes next may be fetched. The program's side.
  virtual void NoteRead(uint64_t address, uint64_t size) = 0;
  /// To the model: the program waits for a shared read, and has waited for one of so much.
  virtual void BeginShared() = 0;
  virtual void EndShared(uint64_t bytes) = 0;
  /// A read of so much will come after its call.
  virtual void TellDeferred(uint64_t bytes) = 0;
  /// The program waited for one.
  virtual void TellWaited(uint64_t ns) = 0;
};

}  // namespace tidelane
