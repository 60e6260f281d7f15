/// \file
/// Where the ranks of an MPI program on one machine let each other see which bytes of a shared file they hold and have not
/// stored yet: memory that all of them have mapped.
///
/// Natively a write that has returned is there for every rank that hears of it, by a barrier or a message. With the board it
/// is so here, too: who reads or writes alone first looks, and waits for the ranks that hold bytes of the same range. Their
/// lanes store them in any case, soon, whatever their programs do meanwhile; so such a wait ends without anybody's help. A rank
/// that was killed stores nothing any more: who waits looks now and then whether the process is still there.
///
/// Ranks often write rows that take turns in the file; joined to a few ranges, each rank's would cover the others', and all
/// would wait for bytes that nobody writes to. So rows of a block are told as what they are.
///
/// Invariants:
///  1. A rank's rows and ranges cover what it holds from before its write returns until the bytes are stored, or have failed.
///  2. Each rank changes its own part only.
///  3. Memory is a board only if its head says so: whatever else is found under a name is left alone. Space for all of it was
///     there when it was made, and its name is soon gone, so that no access to it is a signal.
/// Thread safety: Extend and Clear under the file's lock; everything else from any thread, in any process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace tidelane {

class PendingBoard {
 public:
  static constexpr int kRows = 16;    ///< of a rank: pieces of one length, at equal distances
  static constexpr int kRanges = 16;  ///< of what comes after; more are joined

  /// What one board is told from all others by: nothing that another job could come to as well, and nothing to guess.
  struct Name {
    static Name New();
    bool empty() const { return first == 0; }  ///< there is none
    std::string Path() const;

    uint64_t first = 0;
    uint64_t second = 0;
  };

  /// Makes it (one rank), and finds it (the others, after that). nullptr: not possible, or not the same machine, or what has its
  /// name is not this board, whole, of this user, and for as many ranks.
  static std::unique_ptr<PendingBoard> Create(const Name& name, int ranks, int rank);
  static std::unique_ptr<PendingBoard> Find(const Name& name, int ranks, int rank);
  /// When all have found it, its name is not needed any more.
  static void Forget(const Name& name);
  ~PendingBoard();
  PendingBoard(const PendingBoard&) = delete;
  PendingBoard& operator=(const PendingBoard&) = delete;

  /// This rank holds [begin, end).
  void Extend(uint64_t begin, uint64_t end);
  /// It holds nothing any more.
  void Clear();

  /// Whether another rank holds bytes of [begin, end).
  bool OthersHold(uint64_t begin, uint64_t end) const;
  /// Until none does that still runs.
  void AwaitOthers(uint64_t begin, uint64_t end);
  /// Whether another rank has ever waited for this one: then what it writes is better stored at once.
  bool awaited() const;

 private:
  struct Head;
  struct Process;
  struct Part;
  PendingBoard(void* memory, size_t size, int ranks, int rank);
  static size_t SizeFor(int ranks);
  static std::unique_ptr<PendingBoard> Map(int descriptor, int ranks, int rank);
  Head& head() const;
  bool AddToRows(uint64_t begin, uint64_t size);
  void Join(uint64_t begin, uint64_t end);
  bool Holds(const Part& part, uint64_t begin, uint64_t end) const;
  Part& part(int rank) const;

  void* const memory_;
  const size_t size_;
  const int ranks_;
  const int rank_;
  int used_rows_ = 0;  // of this rank
  int used_ = 0;       // ranges
};

}  // namespace tidelane
