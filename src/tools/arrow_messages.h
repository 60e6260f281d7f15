/// \file
/// The parts of Apache Arrow's format for streams and files that describe tables: schema, record batch, footer (Schema.fbs, Message.fbs
/// and File.fbs of the format, version 5). What they describe, columns without nulls, is written by who asks for them.
///
/// Flatbuffers' headers (Debian: libflatbuffers-dev) make them. Where they were missing when this was built, ArrowIsBuilt is false, and
/// nothing else is to be called.
///
/// Thread safety: plain functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tidelane::tools {

struct ArrowField {
  enum class Kind : uint8_t { kInteger, kFloat, kText, kTruth };
  std::string name;
  Kind kind = Kind::kInteger;
  unsigned bytes = 8;  ///< of a number
  bool is_signed = false;
};

/// Where a message is in a file.
struct ArrowBlock {
  int64_t offset = 0;
  int32_t metadata = 0;  ///< bytes of it, what it begins with included
  int64_t body = 0;
};

inline constexpr size_t kArrowAlignment = 8;  // of messages, and of buffers in their bodies

bool ArrowIsBuilt();

/// Whole messages, without their bodies.
std::string ArrowSchema(const std::vector<ArrowField>& fields);
/// `buffers`: how many bytes each has, in order: no nulls (0), the offsets of texts, values. The body has them one behind another,
/// each filled up to kArrowAlignment.
std::string ArrowBatch(const std::vector<ArrowField>& fields, uint64_t rows,
                       const std::vector<uint64_t>& buffers);
/// What ends a stream.
std::string ArrowEnd();
/// What a file has in front of its stream, and behind it.
std::string ArrowFileBegin();
std::string ArrowFileEnd(const std::vector<ArrowField>& fields,
                         const std::vector<ArrowBlock>& batches);

/// How many bytes to fill with zeros behind so many.
inline size_t ArrowFill(uint64_t bytes) { return static_cast<size_t>(-bytes % kArrowAlignment); }

}  // namespace tidelane::tools
