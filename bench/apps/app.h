// What the programs of bench/apps share: their common options, ranks, what counts as computing and as waiting for I/O, and
// the report.
//
// A program is written once. Built with TIDELANE_APPS_MPI it runs as ranks of an MPI program, which write one file together,
// or with --own-files one each; without, it is one rank. Calls are H5*_async ones, with an event set where --events asks for it and with H5ES_NONE, which
// makes them the blocking calls, where not. Nothing of Tidelane is in them: which connector runs is the environment's.
//
// Invariant: time is in one class: in I/O calls (waits for event sets, closes and the end of the library included),
// computing, or the program's own making of values.
// Thread safety: none; a Run belongs to the main thread.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <hdf5.h>
#include <nlohmann/json.hpp>

#include "common/measure.h"
#include "common/options.h"

namespace tidelane::apps {

using measure::CommandLine;
using measure::ok;

struct Options {
  double compute_us = 0;     // of a step
  bool busy = false;         // computes; otherwise it sleeps, as the papers' kernels do
  bool between = false;      // not after the last step
  bool events = false;       // an event set
  bool own_files = false;    // of ranks
  bool together = false;     // ranks wait for each other before a step
  bool independent = false;  // transfers of ranks to one file; otherwise collective ones
  bool apart = false;        // ranks read metadata of one file each for itself
  std::string json;
};

class Run {
 public:
  explicit Run(const Options& options);

  hsize_t rank() const { return rank_; }
  hsize_t ranks() const { return ranks_; }
  // This rank's place among those that write the same file.
  bool shared() const { return ranks_ > 1 && !options_.own_files; }
  hsize_t slot() const { return shared() ? rank_ : 0; }
  hsize_t slots() const { return shared() ? ranks_ : 1; }
  // The file's name, with the rank's number in it where each rank has one.
  std::string Path(const std::string& path) const;

  hid_t events() const { return events_; }      // for the H5*_async calls
  hid_t access() const { return access_; }      // a file's access list
  hid_t transfer() const { return transfer_; }  // a dataset's transfer list

  // Waiting for I/O: `f` makes calls, each checked.
  template <class F>
  void Io(F&& f) {
    const double begin = measure::now_us();
    f();
    io_us_ += measure::now_us() - begin;
  }
  // What was given to the event set is done after this. Nothing without one.
  void Wait();
  // Ends a step: computes, `times` as long as asked for. Buffers may change afterwards.
  void Compute(bool last, double times = 1);
  // Bytes of data that this rank gave or got.
  void Moved(double bytes) { bytes_ += bytes; }
  void Moved(size_t count, size_t size) { Moved(static_cast<double>(count * size)); }

  // Waits of each step so far, the last one without its end.
  const std::vector<double>& steps() const { return steps_; }
  // Ends the library. Done by Finish where it was not before.
  void End();
  // Ends the library, and says what the rank that waited longest waited for; on rank 0.
  nlohmann::json Finish();

 private:
  void ShareFiles();
  nlohmann::json Slowest(double total_us, double cpu_us) const;

  const Options options_;
  hsize_t rank_ = 0, ranks_ = 1;
  hid_t events_ = H5ES_NONE, access_ = H5P_DEFAULT, transfer_ = H5P_DEFAULT;
  double io_us_ = 0, compute_us_ = 0, bytes_ = 0, step_begin_us_ = 0;
  std::vector<double> steps_;
  bool ended_ = false;
  double begin_us_ = 0, end_us_ = 0;
  measure::Phase total_;
};

// The main function of a program: `add` gives it its own options, `body` runs it and returns what its report has beyond
// the common phases (an object, or null).
int Main(int argc, char** argv, const char* name, const char* what,
         const std::function<void(CommandLine&)>& add,
         const std::function<nlohmann::json(Run&)>& body);

// Calls that all programs make, through the event set.
void CloseSpace(hid_t space);
void CloseDataset(const Run& run, hid_t dataset);
void CloseGroup(const Run& run, hid_t group);
void CloseFile(const Run& run, hid_t file);
hid_t CreateFile(const Run& run, const std::string& path);
hid_t OpenFile(const Run& run, const std::string& path);
// A group, made or opened.
hid_t GroupOf(const Run& run, hid_t location, const std::string& name, bool create);

// A small attribute with its value; the same on all ranks.
void WriteAttribute(const Run& run, hid_t object, const std::string& name, double value);
double ReadAttribute(const Run& run, hid_t object, const std::string& name);

}  // namespace tidelane::apps
