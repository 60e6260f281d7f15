/// \file
/// What lies where in a segment of the log (docs/formats/log.md, which this realises).
///
/// Invariant: what Parse gives was written as it is: its checks were right.
/// Thread safety: values; pure functions.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "log/mark.h"

namespace tidelane::log {

inline constexpr uint32_t kVersion = 1;
inline constexpr uint64_t kSector = 512;      ///< of header and slots
inline constexpr uint64_t kDataBegin = 4096;  ///< before it lies the header
inline constexpr uint64_t kAlignment = 8;     ///< of COMMIT records

using Sector = std::array<std::byte, kSector>;

struct SegmentHeader {
  uint32_t version = kVersion;
  uint64_t id = 0;
  uint64_t number = 0;    ///< from 1
  uint64_t before = 0;    ///< the id of the segment that it continues, 0: none
  uint64_t end = 0;       ///< of the file, at the commit before its first one
  Superblock superblock;  ///< of that commit; empty: there was none, the file is new
  std::string path;       ///< the file's, for people

  Sector Encode() const;
  /// Nothing: it is no header, or a damaged one. `version`: what it says, right or not; one that is newer has nothing else to be trusted.
  static std::optional<SegmentHeader> Parse(const Sector& bytes);
};

/// Where the newest commit of its parity is.
struct CommitSlot {
  uint64_t generation = 0;
  uint64_t offset = 0;
  uint64_t length = 0;
  uint32_t crc = 0;  ///< of the record

  static uint64_t Place(uint64_t generation) { return generation % 2 == 1 ? kSector : 2 * kSector; }
  Sector Encode(uint64_t id) const;
  static std::optional<CommitSlot> Parse(const Sector& bytes, uint64_t id);
};

/// What a segment says of its end.
struct SegmentNote {
  uint64_t next = 0;  ///< the id of the segment that goes on; 0: none yet
  uint64_t whole =
      0;  ///< the generation of its last commit, of which bytes may be in the file; 0: of none yet

  static constexpr uint64_t kPlace = 3 * kSector;
  Sector Encode(uint64_t id) const;
  static std::optional<SegmentNote> Parse(const Sector& bytes, uint64_t id);
};

/// Whether nothing was ever written there.
bool IsBlank(const Sector& bytes);

/// Bytes that were stored since the commit before.
struct CommitEntry {
  uint64_t address = 0;
  uint64_t size = 0;
  uint64_t offset = 0;  ///< in the segment; 0: they are zeros
  uint32_t crc = 0;
};

struct CommitRecord {
  uint64_t id = 0;
  uint64_t generation = 0;
  uint64_t end = 0;  ///< of the file
  uint64_t high_water = 0;
  uint64_t stored = 0;    ///< so long is the file itself, at least
  uint64_t previous = 0;  ///< offset of the commit before in this segment, 0: none
  uint64_t previous_length = 0;
  uint32_t previous_crc = 0;
  std::vector<CommitEntry> entries;

  std::vector<std::byte> Encode() const;
  /// Whether it is whole says the crc by which it was found.
  static std::optional<CommitRecord> Parse(std::span<const std::byte> bytes);
  static constexpr uint64_t kFixed = 72;
  static constexpr uint64_t kEntry = 32;
};

/// Random, and none whose low bytes, in files with addresses of two bytes, mean nothing or something else.
uint64_t NewId();

/// The name of a file's segment of that number: one of two.
std::string SegmentName(const std::string& file, uint64_t number);
/// Whether it is the name of a segment; then `file` is whose.
bool IsSegmentName(const std::string& name, std::string& file);
/// The name of one that is set aside.
std::string AsideName(const std::string& segment, uint64_t id);
/// The longest name of a file that segments can be made for.
inline constexpr size_t kLongestName = 255 - 24;

}  // namespace tidelane::log
