// Reads the JSON summary that the plugin writes when the HDF5 library terminates: the tests' proof
// that bytes really were deferred. A test that passed because the plugin was absent would be worth
// nothing, so "no summary" is an error that callers must handle, never a zero.
//
// Thread safety: plain values; call load() after H5close().
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace tidelane::testing {

struct Summary {
  std::map<std::string, int64_t> counters;
  std::map<std::string, int64_t> fallbacks;

  int64_t counter(const std::string& name) const;
  int64_t fallback(const std::string& reason) const;

  // `%p` in `path` is replaced with this process's number, as the plugin does.
  static std::optional<Summary> load(std::string path);
};

}  // namespace tidelane::testing
