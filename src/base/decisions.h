/// \file
/// The record of the program's epochs (an I/O phase and the computation after it): which mode was chosen for each, what
/// the cost model had expected, and what came of it. Filled by model/cost_model.h and model/read_phases.h, told by the summary.
///
/// Invariant: bounded, whatever happens: totals, the last kListed epochs, a few storages.
///
/// Thread safety: all functions may be called from any thread, at any moment until the process ends.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tidelane {

/// Seconds that the model expected of one epoch; before the first one nothing is known.
struct EpochForecast {
  double chosen = 0;  ///< in the mode that was chosen
  double sync = 0;
  double async =
      0;  ///< with what is left from before, what memory holds, and waits for bytes that are asked for
  double async_by_equation = 0;  ///< max(t_comp, t_io) + t_overhead
};

struct Decision {
  uint64_t epoch = 0;     ///< numbered from 1
  std::string file;       ///< the first one of the phase on this storage
  std::string storage;    ///< its file system
  uint64_t begin_ns = 0;  ///< of the I/O phase, on the clock of base/trace.h
  uint64_t bytes = 0;     ///< of large writes
  bool async = false;     ///< handed over, or written by the program
  bool fixed = false;     ///< by mode=async or mode=sync, not by the model
  bool last =
      false;  ///< the program's last one: no computation followed that anybody could have known of
  std::optional<EpochForecast> forecast;
  double seconds = 0;          ///< of it all
  double compute_seconds = 0;  ///< in which the program neither wrote nor waited
};

/// What is known of a storage's speed, one way of writing.
struct ModeledRate {
  double samples = 0;           ///< weighted: old ones count less
  double bytes_per_second = 0;  ///< of a phase of the usual size
  double error = 0;             ///< of predictions on data not seen, relative
  std::string form;             ///< of the regression that erred least
  std::optional<double> r2;
};

/// Of reads: waited for by the program, made by lanes before it waited, and copied from what they had made.
struct ModeledReads {
  ModeledRate sync;
  ModeledRate lanes;
  double copy_bytes_per_second = 0;
};

struct ModeledStorage {
  std::string name;
  uint64_t earlier_runs = 0;  ///< in the history
  ModeledRate sync;           ///< as the program saw it
  ModeledRate lanes;          ///< as storage saw it
  double copy_bytes_per_second = 0;
  ModeledReads reads;
};

/// A phase of large reads and the computation after it.
struct ReadEpoch {
  bool async = false;  ///< lanes had made most of them, or made them after their calls
  double seconds = 0;  ///< of it all
  std::optional<double> expected;
};

struct ReadEpochs {
  uint64_t epochs = 0;
  uint64_t async_epochs = 0;
  uint64_t forecasts = 0;     ///< epochs of which something had been expected
  double forecast_error = 0;  ///< their mean, relative
  double seconds = 0;         ///< all of them
};

struct Decisions {
  static constexpr size_t kListed = 128;

  uint64_t epochs = 0;
  uint64_t async_epochs = 0;
  uint64_t changes = 0;    ///< of the mode, by the model
  uint64_t forecasts = 0;  ///< epochs of which something had been expected, the last one left out
  double forecast_error = 0;   ///< their mean, relative
  double start_seconds = 0;    ///< before the first I/O phase (t_init)
  double epoch_seconds = 0;    ///< all epochs
  double end_seconds = 0;      ///< after the last I/O phase (t_term)
  std::vector<Decision> last;  ///< in their order
  ReadEpochs reads;
  std::vector<ModeledStorage> storages;
};

void NoteDecision(Decision decision);
void NoteReadEpoch(const ReadEpoch& epoch);
/// A storage's, in place of what was said of writes to it before.
void NoteStorage(ModeledStorage storage);
/// The same, of reads from it.
void NoteReads(const std::string& storage, ModeledReads reads);
/// When the first I/O phase began, and how long the end took.
void NoteStart(double seconds);
void NoteEnd(double seconds);

Decisions ReadDecisions();

/// In a forked child: they were the parent's.
void ResetDecisionsAfterFork();

}  // namespace tidelane
