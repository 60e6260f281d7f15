/// \file
/// What a program will read next of a file, told from what it has read: a pure predictor, which knows
/// only addresses and sizes.
///
/// Reads that follow one another closely make up a *run*. Two rules tell what follows:
///   1. *Further on*: a run of at least two reads goes on.
///   2. *Again*: the last runs were as long, and as far from one another, as those `period` runs ago;
///      so the next ones will be. A period of 1 is a stride, a distance of 0 the same bytes again (the
///      next epoch), a longer period the variables of a time step.
/// Distances and lengths need only be alike: metadata that grew between two steps moves what follows
/// by some KiB. Then more than the predicted bytes is asked for, by as much.
///
/// How far: never more than the pattern has held for already, so that at most as much is fetched in
/// vain as was read in order. A rule that was wrong needs twice as long a pattern the next time, and
/// half as long when it was right: who reads at random is soon left alone.
///
/// Invariant: what it predicts lies below the end of the file that it is given.
/// Thread safety: none; guarded by the file's read mutex.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace tidelane {

/// Bytes [begin, end) of a file.
struct ByteRange {
  uint64_t begin = 0;
  uint64_t end = 0;
  uint64_t size() const { return end - begin; }
  bool operator==(const ByteRange&) const = default;
};

class AccessPredictor {
 public:
  static constexpr size_t kLongestPeriod = 64;
  static constexpr size_t kMostRanges = 256;

  /// The program has read these bytes. True when a new run began with them.
  bool Observe(uint64_t address, uint64_t size);
  /// What it will read next, in order: at most `most` bytes, below `eof`. Nothing where no rule holds.
  void Predict(uint64_t most, uint64_t eof, std::vector<ByteRange>& next);

  /// How often either rule has been wrong lately.
  unsigned doubt() const { return further_.doubt + again_.doubt; }

 private:
  static constexpr size_t kHistory = 2 * kLongestPeriod;
  static constexpr unsigned kMostDoubt = 6;

  struct Run {
    uint64_t begin = 0;
    uint64_t end = 0;
    uint64_t last = 0;  // where its last read began
    uint64_t reads = 0;
    uint64_t length() const { return end - begin; }
  };
  struct Rule {
    unsigned doubt = 0;
    uint64_t needed() const { return uint64_t{1} << doubt; }
    void Right() { doubt -= doubt != 0; }
    void Wrong() { doubt += doubt < kMostDoubt; }
  };
  // How well the runs fit those `period` runs before them, back from the current one.
  struct Fit {
    uint64_t runs = 0;
    uint64_t bytes = 0;
    uint64_t drift = 0;  // largest difference
  };

  Run& Back(uint64_t runs) { return runs_[(count_ - 1 - runs) % kHistory]; }
  bool Joins(uint64_t address, uint64_t size);
  void Judge(uint64_t address);
  void Begin(uint64_t address, uint64_t size);
  void UpdateFits();
  bool FitsNow(size_t period);
  size_t BestPeriod() const;
  void PredictAgain(uint64_t most, uint64_t eof, std::vector<ByteRange>& next);

  std::array<Run, kHistory> runs_;
  uint64_t count_ = 0;  // runs so far, the current one included
  std::array<Fit, kLongestPeriod + 1> fits_;
  Rule further_;
  Rule again_;
  size_t period_ = 0;          // of rule 2; 0: it says nothing
  uint64_t claimed_at_ = 0;    // rule 1 has predicted since the run was so long; 0: it has not
  bool claimed_next_ = false;  // rule 2 has predicted beyond the current run
};

}  // namespace tidelane
