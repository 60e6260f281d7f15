// What the program of the fault tests has written after so many steps, and whether a file holds it.
//
// Invariant: pure functions of the step, so that the process that writes and the one that looks agree.
// Thread safety: plain values.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include <hdf5.h>

namespace tidelane::testing {

struct FileContents {
  std::map<std::string, std::vector<int>> datasets;
  std::map<std::pair<std::string, std::string>, std::vector<int>> attributes;  // (object, name)
};

inline constexpr int kSteps = 4;  // of the program; the file is closed and reopened before the last
inline constexpr hsize_t kTiles = 3;  // "g/tiles" is so many tiles wide and high,
inline constexpr hsize_t kTile = 16;  // each of so many rows and columns

FileContents contents_after(int steps);

// Every element of every dataset and attribute, and nothing that was deleted.
void expect_contents_after(int steps, hid_t file);

}  // namespace tidelane::testing
