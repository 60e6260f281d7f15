#include "log/format.h"

#include <sys/random.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <type_traits>

#include "log/crc32c.h"

namespace tidelane::log {
namespace {

constexpr unsigned char kMagic[8] = {0x89, 'T', 'D', 'L', '\r', '\n', 0x1a, '\n'};
constexpr unsigned char kCommit[8] = {'C', 'O', 'M', 'M', 'I', 'T', 0, 1};
constexpr size_t kHeaderCrcAt = 12;
constexpr size_t kSuperblockAt = 64;
constexpr size_t kPathAt = 192;
constexpr std::string_view kEnding = "-wal.";

template <typename Number>
void Put(std::byte* at, Number value) {
  static_assert(std::is_unsigned_v<Number>);
  for (size_t i = 0; i < sizeof value; ++i) at[i] = static_cast<std::byte>(value >> 8 * i & 0xff);
}

template <typename Number>
Number Get(const std::byte* at) {
  Number value = 0;
  for (size_t i = 0; i < sizeof value; ++i)
    value |= static_cast<Number>(std::to_integer<unsigned char>(at[i])) << 8 * i;
  return value;
}

uint32_t HeaderCrc(Sector bytes) {
  Put<uint32_t>(bytes.data() + kHeaderCrcAt, 0);
  return Crc32c(bytes.data(), bytes.size());
}

}  // namespace

Sector SegmentHeader::Encode() const {
  Sector bytes{};
  std::byte* const at = bytes.data();
  std::memcpy(at, kMagic, sizeof kMagic);
  Put<uint32_t>(at + 8, version);
  Put<uint64_t>(at + 16, id);
  Put<uint64_t>(at + 24, number);
  Put<uint64_t>(at + 32, before);
  Put<uint64_t>(at + 40, superblock.base());
  Put<uint64_t>(at + 48, end);
  Put<uint32_t>(at + 60, static_cast<uint32_t>(superblock.size()));
  std::ranges::copy(superblock.bytes(), at + kSuperblockAt);
  const size_t most = kSector - kPathAt - 1;
  const size_t kept = std::min(path.size(), most);
  std::memcpy(at + kPathAt, path.data() + (path.size() - kept), kept);
  Put<uint32_t>(at + kHeaderCrcAt, HeaderCrc(bytes));
  return bytes;
}

std::optional<SegmentHeader> SegmentHeader::Parse(const Sector& bytes) {
  const std::byte* const at = bytes.data();
  if (std::memcmp(at, kMagic, sizeof kMagic) != 0 ||
      Get<uint32_t>(at + kHeaderCrcAt) != HeaderCrc(bytes))
    return std::nullopt;
  SegmentHeader header;
  header.version = Get<uint32_t>(at + 8);
  if (header.version > kVersion) return header;
  header.id = Get<uint64_t>(at + 16);
  header.number = Get<uint64_t>(at + 24);
  header.before = Get<uint64_t>(at + 32);
  header.end = Get<uint64_t>(at + 48);
  const auto length = Get<uint32_t>(at + 60);
  if (length > Superblock::kMost) return std::nullopt;
  header.superblock = Superblock(Get<uint64_t>(at + 40), {at + kSuperblockAt, length});
  if (header.superblock.empty() && length != 0) return std::nullopt;
  const auto* const path = reinterpret_cast<const char*>(at + kPathAt);
  header.path.assign(path, strnlen(path, kSector - kPathAt));
  return header;
}

Sector CommitSlot::Encode(uint64_t id) const {
  Sector bytes{};
  std::byte* const at = bytes.data();
  Put<uint64_t>(at, generation);
  Put<uint64_t>(at + 8, offset);
  Put<uint64_t>(at + 16, length);
  Put<uint32_t>(at + 24, crc);
  std::array<std::byte, 8> seed;
  Put<uint64_t>(seed.data(), id);
  Put<uint32_t>(at + 28, Crc32c(at, 28, Crc32c(seed.data(), seed.size())));
  return bytes;
}

std::optional<CommitSlot> CommitSlot::Parse(const Sector& bytes, uint64_t id) {
  const std::byte* const at = bytes.data();
  const CommitSlot slot{.generation = Get<uint64_t>(at),
                        .offset = Get<uint64_t>(at + 8),
                        .length = Get<uint64_t>(at + 16),
                        .crc = Get<uint32_t>(at + 24)};
  if (slot.generation == 0 || slot.Encode(id) != bytes) return std::nullopt;
  return slot;
}

Sector SegmentNote::Encode(uint64_t id) const {
  Sector bytes{};
  std::byte* const at = bytes.data();
  Put<uint64_t>(at, id);
  Put<uint64_t>(at + 8, next);
  Put<uint64_t>(at + 16, whole);
  Put<uint32_t>(at + 24, Crc32c(at, 24));
  return bytes;
}

std::optional<SegmentNote> SegmentNote::Parse(const Sector& bytes, uint64_t id) {
  const std::byte* const at = bytes.data();
  const SegmentNote note{.next = Get<uint64_t>(at + 8), .whole = Get<uint64_t>(at + 16)};
  if (note.Encode(id) != bytes) return std::nullopt;
  return note;
}

bool IsBlank(const Sector& bytes) {
  return std::ranges::all_of(bytes, [](std::byte byte) { return byte == std::byte{}; });
}

std::vector<std::byte> CommitRecord::Encode() const {
  std::vector<std::byte> bytes(kFixed + kEntry * entries.size());
  std::byte* at = bytes.data();
  std::memcpy(at, kCommit, sizeof kCommit);
  Put<uint64_t>(at + 8, id);
  Put<uint64_t>(at + 16, generation);
  Put<uint64_t>(at + 24, end);
  Put<uint64_t>(at + 32, high_water);
  Put<uint64_t>(at + 40, stored);
  Put<uint64_t>(at + 48, previous);
  Put<uint64_t>(at + 56, previous_length);
  Put<uint32_t>(at + 64, previous_crc);
  Put<uint32_t>(at + 68, static_cast<uint32_t>(entries.size()));
  at += kFixed;
  for (const CommitEntry& entry : entries) {
    Put<uint64_t>(at, entry.address);
    Put<uint64_t>(at + 8, entry.size);
    Put<uint64_t>(at + 16, entry.offset);
    Put<uint32_t>(at + 24, entry.crc);
    at += kEntry;
  }
  return bytes;
}

std::optional<CommitRecord> CommitRecord::Parse(std::span<const std::byte> bytes) {
  const std::byte* at = bytes.data();
  if (bytes.size() < kFixed || std::memcmp(at, kCommit, sizeof kCommit) != 0) return std::nullopt;
  CommitRecord record{.id = Get<uint64_t>(at + 8),
                      .generation = Get<uint64_t>(at + 16),
                      .end = Get<uint64_t>(at + 24),
                      .high_water = Get<uint64_t>(at + 32),
                      .stored = Get<uint64_t>(at + 40),
                      .previous = Get<uint64_t>(at + 48),
                      .previous_length = Get<uint64_t>(at + 56),
                      .previous_crc = Get<uint32_t>(at + 64),
                      .entries = {}};
  const auto count = Get<uint32_t>(at + 68);
  if (bytes.size() != kFixed + kEntry * uint64_t{count}) return std::nullopt;
  at += kFixed;
  record.entries.reserve(count);
  for (uint32_t i = 0; i < count; ++i, at += kEntry) {
    record.entries.push_back({.address = Get<uint64_t>(at),
                              .size = Get<uint64_t>(at + 8),
                              .offset = Get<uint64_t>(at + 16),
                              .crc = Get<uint32_t>(at + 24)});
    // What else an entry says, this version does not know.
    if (Get<uint32_t>(at + 28) != 0) return std::nullopt;
  }
  return record;
}

uint64_t NewId() {
  uint64_t id = 0;
  while ((id & 0xffff) <= kNeverCommitted) {
    if (getrandom(&id, sizeof id, 0) != sizeof id) continue;
  }
  return id;
}

std::string SegmentName(const std::string& file, uint64_t number) {
  return file + std::string(kEnding) + (number % 2 == 1 ? '0' : '1');
}

bool IsSegmentName(const std::string& name, std::string& file) {
  const size_t ending = kEnding.size() + 1;
  if (name.size() <= ending || (name.back() != '0' && name.back() != '1') ||
      name.compare(name.size() - ending, kEnding.size(), kEnding) != 0)
    return false;
  file = name.substr(0, name.size() - ending);
  return true;
}

std::string AsideName(const std::string& segment, uint64_t id) {
  char number[20];
  std::snprintf(number, sizeof number, ".%016" PRIx64, id);
  return segment + number;
}

}  // namespace tidelane::log
