#include "stress/outcome.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include <hdf5.h>

namespace tidelane::stress {
namespace {

bool printable(const std::string& text) {
  return std::all_of(text.begin(), text.end(),
                     [](unsigned char c) { return c == '\n' || (c >= 32 && c < 127); });
}

std::string excerpt(const std::string& text, size_t at) {
  const size_t from = at < 16 ? 0 : at - 16;
  const std::string part = text.substr(std::min(from, text.size()), 48);
  if (printable(part)) return "'" + part + "'";
  std::string out;
  char hex[4];
  for (const unsigned char c : part) {
    std::snprintf(hex, sizeof hex, "%02x ", c);
    out += hex;
  }
  return out;
}

}  // namespace

std::string Outcome::difference(const Outcome& plugin, const Outcome& native) {
  const size_t common = std::min(plugin.items_.size(), native.items_.size());
  for (size_t i = 0; i < common; ++i) {
    const auto& [what, a] = plugin.items_[i];
    const auto& [what_native, b] = native.items_[i];
    if (std::strcmp(what, what_native) != 0) {
      return std::string("plugin went on to ") + what + ", native to " + what_native;
    }
    if (a == b) continue;
    const auto [ia, ib] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
    const auto at = static_cast<size_t>(ia - a.begin());
    size_t differing = 0;
    for (size_t k = 0; k < std::min(a.size(), b.size()); ++k) differing += a[k] != b[k];
    return std::string(what) + ": byte " + std::to_string(at) + " of " + std::to_string(a.size()) +
           "/" + std::to_string(b.size()) + ", " + std::to_string(differing) +
           " differ\n    plugin " + excerpt(a, at) + "\n    native " + excerpt(b, at);
  }
  if (plugin.items_.size() != native.items_.size()) {
    const bool more = plugin.items_.size() > common;
    return std::string(more ? "plugin" : "native") + " alone went on to " +
           (more ? plugin : native).items_[common].first;
  }
  return "";
}

void Outcome::print_error_stack(const char* what) {
  std::fprintf(stderr, "failed: %s\n", what);
  H5Eprint2(H5E_DEFAULT, stderr);
}

bool Outcome::corrupt() {
  for (auto& [what, value] : items_) {
    if (std::strncmp(what, "read", 4) != 0 || value.empty()) continue;
    value[value.size() / 2] ^= 1;
    return true;
  }
  return false;
}

}  // namespace tidelane::stress
