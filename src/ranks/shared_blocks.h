/// \file
/// Blocks of a file's content that the processes of one job on one machine share: what one of them has read the others find in memory.
///
/// The memory is found under a name that only they know (ranks/table_file.h), which goes when all of them have it. A block lies in one
/// of the few slots that its number leads to. Who reads one from storage claims its slot meanwhile by a lock, which the system takes
/// from who is killed; the others wait for it for a short while only, and then read for themselves: it may have been stopped.
///
/// Nobody has a lock on the file. So with each block stands which version of the file it was read of, and it answers who sees that
/// version now.
///
/// Invariants:
///  1. Who finds a block has bytes that the file had while its version was the one asked for.
///  2. A slot is written only by who has claimed it; its sequence is odd meanwhile, and who copies looks at it before and after.
///  3. Nobody waits for another process longer than twice what blocks take on this storage, or kLeastPatience, or at all longer than
///     kMostPatience; and half as long each time that it was in vain.
///  4. This process claims memory for no more blocks than it may keep of its own (cache/block_memory.h).
/// Thread safety: all functions may be called from any thread; one block at a time is taken.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "cache/block_memory.h"
#include "device/device.h"
#include "device/identity.h"
#include "ranks/table_file.h"

namespace tidelane {

class SharedBlocks {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr uint64_t kBlock = BlockMemory::kBlock;
  static constexpr uint64_t kSlots = 1024;
  static constexpr std::chrono::milliseconds kLeastPatience{50};
  static constexpr std::chrono::milliseconds kMostPatience{500};

  /// Those who share.
  struct Job {
    uint64_t id = 0;         ///< nobody else can guess it
    uint32_t processes = 0;  ///< on all machines
  };
  static std::string PathOf(const FileIdentity& file, const Job& job);
  /// nullptr: there is no such memory.
  static std::unique_ptr<SharedBlocks> Join(const FileIdentity& file, const Job& job);
  ~SharedBlocks();
  SharedBlocks(const SharedBlocks&) = delete;
  SharedBlocks& operator=(const SharedBlocks&) = delete;

  /// Copies bytes of a block, from `from` in it. False: it is not here.
  bool Read(uint64_t block, const FileVersion& version, uint64_t from, uint64_t size,
            void* to) const;

  enum class Turn {
    kHere,  ///< somebody has read it
    kMine,  ///< the caller reads it, and calls Put or GiveUp
    kAlone  ///< the caller reads it for itself
  };
  /// Of a block that is not here. Waits for another process that reads it.
  Turn Take(uint64_t block, const FileVersion& version);
  /// The block that was taken, as far as the file has it.
  void Put(const std::byte* bytes, uint64_t size);
  void GiveUp();
  /// Whether memory for a block was refused, or would be too much.
  bool full() const { return full_.load(std::memory_order_relaxed); }

 private:
  struct Entry;
  struct Common;
  struct Found;
  explicit SharedBlocks(std::unique_ptr<TableFile> file);
  Common& common() const;
  Entry& entry(uint64_t slot) const;
  std::byte* bytes(uint64_t slot) const { return file_->part(slot); }
  Found Find(uint64_t block, const FileVersion& version) const;
  enum class Claimed { kYes, kByOther, kNever };
  Claimed Claim(const Found& found, uint64_t block, const FileVersion& version);
  Clock::duration Patience() const;
  bool Await(const Found& found, Clock::time_point deadline) const;
  Turn TakeFrom(uint64_t block, const FileVersion& version);
  void End(uint64_t tag);

  const std::unique_ptr<TableFile> file_;
  std::atomic<bool> busy_{false};  // a block is being taken, or is taken
  uint64_t taken_ = 0;             // its slot
  uint64_t own_ = 0;               // blocks that this process got memory for
  std::atomic<bool> full_{false};
  unsigned doubts_ = 0;  // waits in vain, in turn
  Clock::time_point begun_;
};

}  // namespace tidelane
