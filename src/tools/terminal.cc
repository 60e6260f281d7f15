#include "tools/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "base/trace.h"
#include "base/words.h"

namespace tidelane::tools {
namespace {

std::string& Name() {
  static std::string& name = *new std::string("tidelane");
  return name;
}

std::string OneLine(std::string text) {
  std::ranges::replace(text, '\n', ' ');
  while (!text.empty() && text.back() == ' ') text.pop_back();
  return text;
}

bool WantsColours() {
  const char* const terminal = std::getenv("TERM");
  const char* const none = std::getenv("NO_COLOR");
  return isatty(STDOUT_FILENO) && terminal != nullptr && std::string_view(terminal) != "dumb" &&
         (none == nullptr || *none == '\0');
}

}  // namespace

void NameCommand(const std::string& command) { Name() = "tidelane " + command; }

void Tell(const std::string& message) {
  std::fprintf(stderr, "%s: %s\n", Name().c_str(), OneLine(message).c_str());
}

int Fail(int status, const std::string& message) {
  Tell(message);
  return status;
}

std::string InWords(const Status& status) {
  const std::string text = status.Message();
  return status.code() == EINVAL ? text.substr(0, text.rfind(": ")) : text;
}

size_t TextWidth() {
  struct winsize size = {};
  size_t width = 80;
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) width = size.ws_col;
  return std::clamp<size_t>(width, 60, 100);
}

std::string Wrapped(std::string_view text, size_t width, size_t indent) {
  std::string out;
  size_t column = indent;
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (column > indent && column + 1 + word.size() > width) {
      out += '\n' + std::string(indent, ' ');
      column = indent;
    } else if (column > indent) {
      out += ' ';
      ++column;
    }
    out += word;
    column += word.size();
  }
  return out;
}

std::string Coloured(Colour colour, const std::string& text) {
  static const bool wanted = WantsColours();
  if (!wanted) return text;
  static constexpr const char* kCodes[] = {"32", "31", "33", "1", "2"};
  return "\033[" + std::string(kCodes[static_cast<size_t>(colour)]) + "m" + text + "\033[0m";
}

Progress::Progress(std::string what)
    : what_(std::move(what)), begin_ns_(NowNs()), terminal_(isatty(STDERR_FILENO) != 0) {}

void Progress::At(double done, const std::string& more) {
  constexpr uint64_t kQuietNs = 500'000'000;
  constexpr uint64_t kEveryNs = 100'000'000;
  constexpr int kWidth = 24;
  const uint64_t now = NowNs();
  if (!terminal_ || now < begin_ns_ + kQuietNs || now < drawn_ns_ + kEveryNs) return;
  drawn_ns_ = now;
  const double part = std::clamp(done, 0.0, 1.0);
  const int filled = static_cast<int>(part * kWidth);
  std::string line;
  Print(line, "\r\033[K%s [%s%s] %3.0f %%%s%s", what_.c_str(),
        std::string(static_cast<size_t>(filled), '#').c_str(),
        std::string(static_cast<size_t>(kWidth - filled), '.').c_str(), part * 100,
        more.empty() ? "" : ", ", more.c_str());
  std::fputs(line.c_str(), stderr);
}

void Progress::Hide() {
  if (drawn_ns_ != 0) std::fputs("\r\033[K", stderr);
  drawn_ns_ = 0;
}

Progress::~Progress() { Hide(); }

}  // namespace tidelane::tools
