/// \file
/// What a function inside Tidelane returns when it can fail: an errno and, when it failed, where.
///
/// Invariant: `ok()` exactly when `code() == 0`; a failed status names the operation, the file and
/// the bytes concerned, so that whoever finally tells the user (vfd/, vol/) need not know how the
/// failure came about. Where there is no memory for that, it is the errno alone: making, copying and
/// moving a status never throws.
///
/// Cost: a success is two words; every write of every program returns several.
///
/// Thread safety: a value; distinct objects may be used from distinct threads.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace tidelane {

class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Status&&) noexcept = default;
  Status& operator=(Status&&) noexcept = default;
  Status(const Status& other) noexcept;
  Status& operator=(const Status& other) noexcept;
  ~Status() = default;

  /// A failure of `operation` with errno `code` (non-zero).
  static Status Failed(int code, std::string_view operation) noexcept;

  /// The same failure, saying that it concerned `size` bytes at `address` of `path`.
  Status At(std::string_view path, uint64_t address, uint64_t size) && noexcept;

  bool ok() const { return code_ == 0; }
  int code() const { return code_; }
  /// What failed; empty where there was no memory for the word.
  std::string_view operation() const;
  /// Of the file concerned; empty when there is none.
  std::string_view path() const;

  /// One line for a person: "cannot write 1048576 bytes at address 4096 of 'run.h5': No space left
  /// on device (errno 28)".
  std::string Message() const;

 private:
  struct Circumstances {
    std::string operation;
    std::string path;
    uint64_t address = 0;
    uint64_t size = 0;
  };

  int code_ = 0;
  std::unique_ptr<Circumstances> circumstances_;
};

}  // namespace tidelane
