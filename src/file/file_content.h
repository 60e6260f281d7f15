/// \file
/// What readers see of one open file, and what of that is not stored yet (content/byte_source.h).
///
/// Invariant, thread safety: as byte_source.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "content/byte_source.h"
#include "content/content_view.h"
#include "file/drainer.h"
#include "file/file_context.h"

namespace tidelane {

class FileContent final : public ByteSource, public PendingBytes {
 public:
  FileContent(FileContext& file, Drainer& drainer) : file_(file), drainer_(drainer) {}

  Status Read(Reader reader, uint64_t address, uint64_t size, void* buffer,
              ReadTimes& times) override {
    return ReadContent(*this, *file_.store, file_.env.lanes, file_.path, reader, address, size,
                       buffer, times);
  }
  uint64_t size() const override { return file_.eof.load(std::memory_order_relaxed); }
  const std::string& path() const override { return file_.path; }
  Keep keep() const override;
  std::optional<FileVersion> watched() const override;
  void Overlay(uint64_t address, uint64_t size, std::byte* out, Pieces& pieces, bool& lent,
               uint64_t& stored) override;

 private:
  FileContext& file_;
  Drainer& drainer_;
};

}  // namespace tidelane
