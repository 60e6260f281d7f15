/// \file
/// What a person sees: messages of one line, progress where something takes long, colours where
/// there is a terminal that wants them.
///
/// Invariant: without a terminal nothing but plain text is written, and no progress at all.
///
/// Thread safety: one thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace tidelane::tools {

/// "tidelane run: MESSAGE" on stderr, as one line; gives `status` back.
int Fail(int status, const std::string& message);
/// The same, without an end.
void Tell(const std::string& message);
/// A status in words: what a person mistyped needs no errno.
std::string InWords(const Status& status);
/// What messages begin with: "tidelane run".
void NameCommand(const std::string& command);

/// Columns of the terminal, between 60 and 100.
size_t TextWidth();

/// `text` broken into lines of at most `width` columns, each but the first behind `indent` blanks.
std::string Wrapped(std::string_view text, size_t width, size_t indent);

enum class Colour { kGood, kBad, kNote, kBold, kFaint };
/// Coloured if stdout is a terminal that shows colours and NO_COLOR is not set.
std::string Coloured(Colour colour, const std::string& text);

/// A bar on stderr, from the moment when something has taken half a second.
class Progress {
 public:
  explicit Progress(std::string what);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// `done` of 1; `more` stands behind the bar.
  void At(double done, const std::string& more = "");
  /// Until the next At.
  void Hide();

 private:
  std::string what_;
  uint64_t begin_ns_;
  uint64_t drawn_ns_ = 0;
  bool terminal_;
};

}  // namespace tidelane::tools
