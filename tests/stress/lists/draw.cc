#include <cstdlib>
#include <cstring>

#include "stress/lists/lists.h"

namespace tidelane::stress::lists {

bool asked_for(char kind) {
  static const char* const kinds = std::getenv("STRESS_LISTS");
  return kinds != nullptr && std::strchr(kinds, kind) != nullptr;
}

Rng stream(uint64_t seed, uint64_t which) {
  return Rng(seed * 0x2545f4914f6cdd1dULL + which * 0x9e3779b97f4a7c15ULL);
}

std::optional<size_t> elements_of(hid_t dset, Outcome& out) {
  const Hid space(H5Dget_space(dset));
  const hssize_t elements = H5Sget_simple_extent_npoints(space);
  if (!out.call("elements of the dataset", elements)) return std::nullopt;
  out.number("elements", elements);
  return static_cast<size_t>(elements);
}

}  // namespace tidelane::stress::lists
