// The groups of cases, each run in a process of its own.
//
// Invariant: a group's name is a file name, too.
// Thread safety: none.
#pragma once

#include <string>
#include <vector>

#include "gpu/real/session.h"

namespace tidelane::gpu_real {

struct Settings {
  size_t large_mib = 1024;
};

struct Group {
  std::string name;
  bool on_device = true;  // the plugin must have copied what the group counts
  void (*run)(Session&, const Settings&) = nullptr;
};
// The longest first.
const std::vector<Group>& groups();

// One kind of memory with every layout, selection and type, and attributes.
void kinds(Session& session, Kind kind);
// Larger transfers of device memory.
void sizes(Session& session, const Settings& settings);
void large(Session& session, const Settings& settings);
// What the program put into a stream before a call.
void streams(Session& session, const Settings& settings);
void event_sets(Session& session, const Settings& settings);
void many_datasets(Session& session, const Settings& settings);
void forks(Session& session, const Settings& settings);
void threads(Session& session, const Settings& settings);
void pointers_to_the_host(Session& session, const Settings& settings);

}  // namespace tidelane::gpu_real
