#include "log/mark.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "store/superblock.h"

namespace tidelane {
namespace {

constexpr std::byte kMark{0x80};       // outside all flags that HDF5 knows
constexpr std::byte kOpenFlags{0x05};  // written by somebody, or by SWMR
constexpr size_t kVersionAt = 8;
constexpr size_t kOldFlagsAt = 20;
constexpr size_t kNewFlagsAt = 11;
constexpr uint64_t kFirstUserBlock = 512;
constexpr size_t kChecksum = 4;

bool IsNew(const std::byte* bytes) { return std::to_integer<unsigned>(bytes[kVersionAt]) >= 2; }
size_t FlagsAt(const std::byte* bytes) { return IsNew(bytes) ? kNewFlagsAt : kOldFlagsAt; }

}  // namespace

uint32_t internal::Lookup3(std::span<const std::byte> bytes) {
  const auto* at = reinterpret_cast<const unsigned char*>(bytes.data());
  size_t left = bytes.size();
  uint32_t a = 0xdeadbeef + static_cast<uint32_t>(left), b = a, c = a;
  // Short of three words, what is missing counts as zeros.
  const auto word = [&](size_t from) {
    uint32_t value = 0;
    for (size_t i = 0; i < 4 && from + i < left; ++i)
      value |= static_cast<uint32_t>(at[from + i]) << 8 * i;
    return value;
  };
  const auto mix = [](uint32_t& x, uint32_t y, int turn) { x ^= std::rotl(y, turn); };
  for (; left > 12; left -= 12, at += 12) {
    a += word(0), b += word(4), c += word(8);
    a -= c, mix(a, c, 4), c += b;
    b -= a, mix(b, a, 6), a += c;
    c -= b, mix(c, b, 8), b += a;
    a -= c, mix(a, c, 16), c += b;
    b -= a, mix(b, a, 19), a += c;
    c -= b, mix(c, b, 4), b += a;
  }
  if (left == 0) return c;
  a += word(0), b += word(4), c += word(8);
  c ^= b, c -= std::rotl(b, 14);
  a ^= c, a -= std::rotl(c, 11);
  b ^= a, b -= std::rotl(a, 25);
  c ^= b, c -= std::rotl(b, 16);
  a ^= c, a -= std::rotl(c, 4);
  b ^= a, b -= std::rotl(a, 14);
  c ^= b, c -= std::rotl(b, 24);
  return c;
}

Superblock::Superblock(uint64_t base, std::span<const std::byte> bytes) : base_(base) {
  const uint64_t size = SuperblockSize(bytes.data(), bytes.size());
  if (size == 0 || size > kMost || size > bytes.size()) return;
  size_ = size;
  std::copy_n(bytes.begin(), size_, bytes_.begin());
}

int Superblock::Find(Device& file, Superblock& found) {
  std::array<std::byte, kMost> front;
  uint64_t size = 0;
  uint64_t base = 0;
  do {
    if (const int error = file.Read(base, front.data(), front.size()); error != 0) return error;
    found = Superblock(base, front);
    if (!found.empty()) return 0;
    if (base == 0) {
      if (const int error = file.Size(size); error != 0) return error;
    }
    base = base == 0 ? kFirstUserBlock : 2 * base;
  } while (base < size);
  return 0;
}

void Superblock::Overwrite(uint64_t offset, std::span<const std::byte> bytes) {
  if (offset >= size_) return;
  std::copy_n(bytes.begin(), std::min<uint64_t>(bytes.size(), size_ - offset),
              bytes_.begin() + static_cast<ptrdiff_t>(offset));
}

size_t Superblock::offset_size() const {
  return std::to_integer<size_t>(bytes_[IsNew(bytes_.data()) ? 9 : 13]);
}

// Behind the base address and that of the extension, or of free space.
size_t Superblock::end_offset() const {
  const unsigned version = std::to_integer<unsigned>(bytes_[kVersionAt]);
  return (version >= 2 ? 12 : version == 1 ? 28 : 24) + 2 * offset_size();
}

bool Superblock::marked() const {
  return !empty() && (bytes_[FlagsAt(bytes_.data())] & kMark) != std::byte{};
}

uint64_t Superblock::mark() const { return EndInSuperblock(bytes_.data()); }

uint64_t Superblock::end_of_file() const { return EndInSuperblock(bytes_.data()); }

bool Superblock::MarkedWith(uint64_t id) const {
  const size_t bits = 8 * offset_size();
  return marked() && mark() == (bits >= 64 ? id : id & ((uint64_t{1} << bits) - 1));
}

void Superblock::SetEnd(uint64_t end) {
  for (size_t i = 0; i < offset_size(); ++i, end >>= 8)
    bytes_[end_offset() + i] = static_cast<std::byte>(end & 0xff);
}

void Superblock::RenewChecksum() {
  if (!IsNew(bytes_.data())) return;
  const uint32_t sum = internal::Lookup3({bytes_.data(), size_ - kChecksum});
  for (size_t i = 0; i < kChecksum; ++i)
    bytes_[size_ - kChecksum + i] = static_cast<std::byte>(sum >> 8 * i & 0xff);
}

Superblock Superblock::Marked(uint64_t id) const {
  Superblock marked = *this;
  marked.bytes_[FlagsAt(bytes_.data())] |= kMark;
  marked.SetEnd(id);
  marked.RenewChecksum();
  return marked;
}

Superblock Superblock::Unmarked(uint64_t end_of_file) const {
  Superblock clean = *this;
  clean.bytes_[FlagsAt(bytes_.data())] &= ~kMark;
  clean.SetEnd(end_of_file);
  clean.RenewChecksum();
  return clean;
}

Superblock Superblock::Closed() const {
  Superblock closed = *this;
  if (!HasOpenMark(bytes_.data())) return closed;
  closed.bytes_[kNewFlagsAt] &= ~kOpenFlags;
  closed.RenewChecksum();
  return closed;
}

bool Superblock::operator==(const Superblock& other) const {
  return base_ == other.base_ && std::ranges::equal(bytes(), other.bytes());
}

}  // namespace tidelane
