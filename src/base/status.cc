/// \file
/// How a Status reads to a person.
///
/// Thread safety: strerror_r writes into a local buffer; nothing is shared.
#include "base/status.h"

#include <cstring>
#include <new>
#include <utility>

namespace tidelane {
namespace {

// glibc's strerror_r returns the text, musl's and the POSIX one an int: these two overloads accept
// either.
[[maybe_unused]] const char* ErrorText(const char* returned, const char*) { return returned; }
[[maybe_unused]] const char* ErrorText(int returned, const char* buffer) {
  return returned == 0 ? buffer : "unknown error";
}

}  // namespace

Status::Status(const Status& other) noexcept : code_(other.code_) {
  if (other.circumstances_ == nullptr) return;
  try {
    circumstances_ = std::make_unique<Circumstances>(*other.circumstances_);
  } catch (const std::bad_alloc&) {  // the errno alone, then
  }
}

Status& Status::operator=(const Status& other) noexcept {
  if (this != &other) *this = Status(other);
  return *this;
}

Status Status::Failed(int code, std::string_view operation) noexcept {
  Status status;
  status.code_ = code;
  try {
    status.circumstances_ = std::make_unique<Circumstances>();
    status.circumstances_->operation = operation;
  } catch (const std::bad_alloc&) {
    status.circumstances_ = nullptr;
  }
  return status;
}

Status Status::At(std::string_view path, uint64_t address, uint64_t size) && noexcept {
  if (circumstances_ != nullptr) {
    circumstances_->address = address;
    circumstances_->size = size;
    try {
      circumstances_->path = path;
    } catch (const std::bad_alloc&) {
      circumstances_ = nullptr;  // bytes of nobody knows what file say nothing
    }
  }
  return std::move(*this);
}

std::string_view Status::operation() const {
  return circumstances_ == nullptr ? std::string_view() : circumstances_->operation;
}

std::string_view Status::path() const {
  return circumstances_ == nullptr ? std::string_view() : circumstances_->path;
}

std::string Status::Message() const {
  if (ok()) return "success";
  char buffer[128] = "";
  std::string text = "cannot go on";
  if (circumstances_ != nullptr) {
    const auto& [operation, path, address, size] = *circumstances_;
    text = "cannot " + operation;
    if (size != 0) {
      text += " " + std::to_string(size) + " bytes at address " + std::to_string(address);
      if (!path.empty()) text += " of";
    }
    if (!path.empty()) text += " '" + path + "'";
  }
  text += ": ";
  text += ErrorText(strerror_r(code_, buffer, sizeof buffer), buffer);
  return text + " (errno " + std::to_string(code_) + ")";
}

}  // namespace tidelane
