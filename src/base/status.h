/// \file
/// What a function inside Tidelane returns when it can fail: an errno and, when it failed, where.
///
/// Invariant: `ok()` exactly when `code() == 0`; a failed status names the operation, the file and
/// the bytes concerned, so that whoever finally tells the user (vfd/, vol/) need not know how the
/// failure came about.
///
/// Thread safety: a value; distinct objects may be used from distinct threads.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

namespace tidelane {

class [[nodiscard]] Status {
 public:
  Status() = default;

  /// A failure of `operation` with errno `code` (non-zero).
  static Status Failed(int code, std::string operation) {
    Status status;
    status.code_ = code;
    status.operation_ = std::move(operation);
    return status;
  }

  /// The same failure, saying that it concerned `size` bytes at `address` of `path`.
  Status At(std::string path, uint64_t address, uint64_t size) && {
    path_ = std::move(path);
    address_ = address;
    size_ = size;
    return std::move(*this);
  }

  bool ok() const { return code_ == 0; }
  int code() const { return code_; }
  const std::string& path() const { return path_; }

  /// One line for a person: "cannot write 1048576 bytes at address 4096 of 'run.h5': No space left
  /// on device (errno 28)".
  std::string Message() const;

 private:
  int code_ = 0;
  std::string operation_;
  std::string path_;
  uint64_t address_ = 0;
  uint64_t size_ = 0;
};

}  // namespace tidelane
