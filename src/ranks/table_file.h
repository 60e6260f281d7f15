/// \file
/// Memory that processes of one user on this machine find under a name, for as long as one of them uses it.
///
/// It is a file in /dev/shm that all have mapped: a head, and parts of one size, each of which one process claims. A part is
/// claimed by a lock on a byte of the file, which the system takes from a process that is killed: then the part is free again, and
/// what is in it means nothing.
///
/// Whoever uses the file has a shared lock on its first byte. Who gets that byte for itself alone knows that nobody else
/// uses the file: it makes the head anew, or takes the name away.
///
/// Invariants:
///  1. A file is used only if it is a regular one of this user, which nobody else may open, and its head says what it is;
///     whatever else is found under a name is left alone. No link is followed.
///  2. There is memory behind the head, what all have in common, and every part that was ever claimed, so that no access to them is a
///     signal.
///  3. Two processes that use a file of one name at the same time use the same one, until one of them takes its name away: else that is
///     done only while nobody uses the file. Who has opened a file that lost its name meanwhile opens it again.
///  4. A process that was forked off uses nothing of it: the locks are those of its parent.
/// Thread safety: all functions may be called from any thread.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace tidelane {

class TableFile {
 public:
  /// At the beginning of the memory. All zero but for the first two where nobody has used it yet.
  struct alignas(64) Head {
    uint64_t magic;
    uint64_t id;  // another one each time that nobody used it before; below 2^63
    std::atomic<uint32_t>
        used;  // parts behind this one were never claimed; up to it all have memory
    std::atomic<uint32_t> joined;  // how often a part was claimed to be filled
  };
  /// How much memory there is at most, and who can tell it from other layouts.
  struct Shape {
    uint64_t magic;
    size_t part_bytes;
    uint64_t parts;
    size_t common_bytes = 0;  // of all, between the head and the parts
    bool apart =
        false;  // who looks at a part knows that it was claimed: those before it need no memory
  };
  enum class Missing { kMake, kLeave };

  /// nullptr: there is none, or it could not be had.
  static std::unique_ptr<TableFile> Open(const std::string& path, const Shape& shape,
                                         Missing missing);
  ~TableFile();
  TableFile(const TableFile&) = delete;
  TableFile& operator=(const TableFile&) = delete;

  /// Removes the files of this kind in one folder whose paths begin so and which nobody uses: programs that were killed leave them.
  static void RemoveUnused(const std::string& prefix, uint64_t magic);

  /// Who comes later finds another file, or none: all that are to use this one do.
  void TakeNameAway();

  Head& head() const { return *static_cast<Head*>(memory_); }
  std::byte* common() const { return static_cast<std::byte*>(memory_) + sizeof(Head); }
  std::byte* part(uint64_t number) const;
  enum class Claiming { kDone, kTaken, kNoMemory };
  Claiming TryClaim(uint64_t number);
  /// False: it is somebody's already, or there is no memory for it.
  bool Claim(uint64_t number) { return TryClaim(number) == Claiming::kDone; }
  /// It is nobody's again, as when the file is given up.
  void Release(uint64_t number);
  /// Whether some process has claimed it through another TableFile. Not known: true.
  bool Claimed(uint64_t number) const;
  /// Whether this process opened it.
  bool ours() const;

 private:
  TableFile(int descriptor, void* memory, std::string path, const Shape& shape);
  static void* Map(int descriptor, const Shape& shape, bool alone);

  const int descriptor_;
  void* const memory_;
  const std::string path_;
  const Shape shape_;
  const pid_t process_;
};

}  // namespace tidelane
