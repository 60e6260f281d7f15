// One side of the comparison: the same two files in a directory of its own, either through
// whatever the environment configures (the plugin) or through native HDF5 set explicitly.
//
// Invariant: both sides see the same calls in the same order; only the connector differs.
// Thread safety: belongs to one thread.
#pragma once

#include <array>
#include <list>
#include <map>
#include <string>
#include <vector>

#include "stress/lists/lists.h"
#include "stress/op.h"

namespace tidelane::stress {

// Whether asynchronous writes lend their buffers (STRESS_LEND, beside TIDELANE_COPY_LIMIT=0): then nobody may touch a
// buffer before its event set was waited for.
bool lends_buffers();

class Side {
 public:
  enum class Through { Environment, Native };

  Side(std::string dir, Through through);
  ~Side();
  Side(const Side&) = delete;
  Side& operator=(const Side&) = delete;

  Hid access_list(const AccessProfile& profile);
  static Hid create_list(const CreateProfile& profile);
  std::string disk_path(const std::string& name) const { return dir_ + "/" + name; }
  const std::string& dir() const { return dir_; }

  hid_t file(int index) const { return files_[index].get(); }
  const AccessProfile& profile(int index) const { return profiles_[index]; }
  void set_file(int index, hid_t id, const AccessProfile& profile) {
    files_[index] = Hid(id);
    profiles_[index] = profile;
  }
  hid_t release_file(int index) { return files_[index].release(); }

  // Datasets stay open between operations, as in a program, so that sieve buffers and chunk caches
  // hold data. Returns a borrowed identifier, negative when the open failed.
  hid_t dataset(int file, const std::string& path, bool async = false);
  void close_datasets(int file);
  void close_dataset(int file, const std::string& path);
  void close_everything_but_files();  // of both files
  // How many closes of datasets the library has refused so far; compared after every operation.
  int refused_closes() const { return refused_closes_; }
  void forget_path(int file, const std::string& path);  // its name changed; the handle is kept open
  void orphan_datasets(int file);                       // kept open past the close of their file
  herr_t close_orphans();
  bool has_orphans() const { return !orphans_.empty(); }
  void flush_files();     // by every handle
  void flush_datasets();  // all that are open, whichever handle of a file they belong to

  // What callbacks of its lists were told.
  lists::Heard& heard() { return heard_; }

  // Event set and the buffers that belong to it until the next full wait.
  hid_t event_set() const { return event_set_.get(); }
  void keep(Buffer buffer, bool compare);
  // Waits, and scribbles over what was lent: from then on it belongs to the program again.
  void wait_all(Outcome& outcome);

 private:
  struct Pending {
    Buffer buffer;
    bool compare;  // a read, whose contents count
  };

  std::string dir_;
  Through through_;
  std::array<Hid, 2> files_;
  std::array<AccessProfile, 2> profiles_;
  std::map<std::pair<int, std::string>, Hid> datasets_;
  std::vector<Hid> orphans_;
  int refused_closes_ = 0;
  std::list<Pending> pending_;
  Hid event_set_;
  lists::Heard heard_;
  uint64_t opened_datasets_ = 0;
};

}  // namespace tidelane::stress
