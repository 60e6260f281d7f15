// What a program that is to be killed (tests/journal/kill_random.py) says of its commits, one line of JSON each, written at once:
//
//   ["begin", k]              whatever commits from now on may be the state k, of all files
//   ["done", k, [names]]      of these files state k is committed;  ["closed", k, [names]]: and nothing has them open
//   ["creating", name]        the next call makes it anew;  ["created", name]: it has, and nothing is committed yet
//   ["replaced", name]        it goes while something of it may be open: a log of it is nobody's then
//   ["renamed", from, to]     before the name moves;  ["moved", from, to]: it has, while something of it was still open
//
// Where the seed runs natively to show the states (--images), all files are flushed and copied at each begin, into a folder k.
// Invariant: "done" is said only of what docs/survive.md calls a commit. Thread safety: belongs to one thread.
#pragma once

#include <string>
#include <vector>

#include "stress/op.h"

namespace tidelane::stress {

class CommitLog {
 public:
  CommitLog(const std::string& path, std::string images);
  ~CommitLog();
  CommitLog(const CommitLog&) = delete;
  CommitLog& operator=(const CommitLog&) = delete;

  /// Not of one that writes and commits: the state between would have to be shown.
  static bool has_image_of(const Op& op);
  void before(const Op& op, const Catalog& catalog, Side& side);
  void after(const Op& op, const Catalog& catalog, Side& side, bool ok);
  void before_end(Side& side) { begin(side); }
  void after_end(const Catalog& catalog);

 private:
  void say(const std::string& line) const;
  void begin(Side& side);
  void done(uint64_t state, const std::string& name, bool closed) const;
  void opened(const Op& op);

  int fd_ = -1;
  std::string images_;
  uint64_t state_ = 0;
  bool linked_ = false;
  struct Asked {
    uint64_t state;
    std::string name;
    bool closed;
  };
  std::vector<Asked> asked_;  // through the event set: done when it was waited for
};

}  // namespace tidelane::stress
