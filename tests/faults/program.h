// A real HDF5 program that is careful about failures: it looks at every status, tries again when there is
// space, and takes success at its word.
//
// It writes a file on storage that fails and, in step with it, one on storage that does not: contiguous,
// tiled, chunked, compressed and growing datasets, attributes, groups, a deletion; it flushes, closes,
// reopens. With event sets, every call that can be asynchronous is.
//
// Where success is a promise (a flush or close that waits, a wait for an event set), it keeps a copy of the
// file as storage has it at that moment, beside the healthy file. Whatever happens later, the copy must hold
// what was promised.
//
// Invariant: every failure that it is told of is checked (what it says, that the file is still usable);
// every second attempt after space has returned must succeed.
// Thread safety: none; one thread, as most programs.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "conformance/fixture.h"
#include "faults/contents.h"

namespace tidelane::testing {

struct Manner {
  bool event_sets = false;
  bool flush_waits = true;
  bool close_waits = true;
  bool latest_format = false;
  bool tries_again = true;   // false: the first failure ends the program
  bool closes_files = true;  // false: it just exits
  bool filters =
      false;  // what is contiguous otherwise is compressed, for lanes: whole, in part, longer
};

class Program {
 public:
  // `space_returns`: the program has made room; false: there is no room to make.
  Program(std::string failing, std::string healthy, const Manner& manner,
          std::function<bool()> space_returns);

  void run();
  // How often it was told of a failure.
  int told() const { return told_; }
  // Writes down the copies of the failing file, and after how many steps each was promised, for who looks later.
  void save_promises(const std::string& list) const;

 private:
  struct File {
    std::string path;
    bool may_fail = false;
    bool open = false;
    int steps = 0;  // done
    hid_t id = H5I_INVALID_HID;
    hid_t events = H5ES_NONE;
  };
  using Call = std::function<int64_t()>;  // negative: it failed

  void step(File& file);
  void create_file(File& file);
  void reopen_file(File& file);
  void first(File& file);
  void second(File& file);
  void third(File& file);
  void fourth(File& file);
  void put(File& file, const std::string& name, hid_t creation = H5P_DEFAULT);
  void put_tiles(File& file);
  void overwrite_part(File& file, const std::string& name, hsize_t from, hsize_t count);
  void grow(File& file, const std::string& name);
  void annotate(File& file, const std::string& object, const std::string& name);
  void make_group(File& file, const std::string& name);
  void flush(File& file);
  void close(File& file);

  hid_t open_dataset(File& file, const std::string& name);
  void close_dataset(File& file, hid_t dataset);
  // The result of the call, which is repeated if it fails.
  int64_t attempt(File& file, const char* what, const Call& call);
  // A failure was told: whether to try again.
  bool after_failure(File& file, const std::string& what, const std::string& error);
  // Waits for the file's event set: whether everything in it succeeded.
  bool settle(File& file, const char* what);
  void promise(const File& file, const char* when);

  const Manner manner_;
  const std::function<bool()> space_returns_;
  std::vector<FileContents> contents_;  // after each number of steps; event sets read from here
  File failing_;
  File healthy_;
  bool gave_up_ = false;
  int told_ = 0;
  std::map<std::string, int> promises_;
};

// In another process, natively.
void expect_promises_kept(const std::string& list);

}  // namespace tidelane::testing
