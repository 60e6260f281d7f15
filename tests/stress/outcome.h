// What one operation gave on one side: everything the application could have observed.
//
// Invariant: equal outcomes mean that the application cannot tell the sides apart. Nothing that
// may legally differ (identifiers, addresses, times, paths of directories) is recorded.
// Thread safety: a value of one thread.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace tidelane::stress {

class Outcome {
 public:
  // Print HDF5's error stack whenever a call fails (--errors): for one run that is looked at closely.
  static inline bool print_errors = false;

  // The call whose success decides whether the catalog is changed.
  bool ok = false;
  bool failed_any = false;

  // Every call is recorded as success or failure; returns the same.
  bool call(const char* what, int64_t rc) {
    items_.emplace_back(what, rc < 0 ? "failed" : "ok");
    ok = rc >= 0;
    failed_any |= !ok;
    explain(what, rc);
    return ok;
  }
  void number(const char* what, int64_t value) { items_.emplace_back(what, std::to_string(value)); }
  // HDF5 names what a copy of a reference leads to by its address, and what is allocated where depends on when caches were flushed.
  static std::string name_of(const std::string& link) {
    const size_t at = link.find("~obj_pointed_by_");
    return at == std::string::npos ? link : link.substr(0, at) + "~obj_pointed_by";
  }
  void bytes(const char* what, std::string value) { items_.emplace_back(what, std::move(value)); }

  // Says why a call failed, if that is asked for. By itself where other calls come before call(): they clear the stack.
  static int64_t explain(const char* what, int64_t rc) {
    if (rc < 0 && print_errors) print_error_stack(what);
    return rc;
  }

  // Empty when equal; otherwise one line that says what differs and where.
  static std::string difference(const Outcome& plugin, const Outcome& native);

  // The program's own check: damages one recorded read; false when there is none.
  bool corrupt();

 private:
  static void print_error_stack(const char* what);

  std::vector<std::pair<const char*, std::string>> items_;
};

}  // namespace tidelane::stress
