/// \file
/// How a Status reads to a person.
///
/// Thread safety: strerror_r writes into a local buffer; nothing is shared.
#include "base/status.h"

#include <cstring>

namespace tidelane {
namespace {

// glibc's strerror_r returns the text, musl's and the POSIX one an int: these two overloads accept
// either.
[[maybe_unused]] const char* ErrorText(const char* returned, const char*) { return returned; }
[[maybe_unused]] const char* ErrorText(int returned, const char* buffer) {
  return returned == 0 ? buffer : "unknown error";
}

}  // namespace

std::string Status::Message() const {
  if (ok()) return "success";
  char buffer[128] = "";
  std::string text = "cannot " + operation_;
  if (size_ != 0) {
    text += " " + std::to_string(size_) + " bytes at address " + std::to_string(address_);
    if (!path_.empty()) text += " of";
  }
  if (!path_.empty()) text += " '" + path_ + "'";
  text += ": ";
  text += ErrorText(strerror_r(code_, buffer, sizeof buffer), buffer);
  return text + " (errno " + std::to_string(code_) + ")";
}

}  // namespace tidelane
