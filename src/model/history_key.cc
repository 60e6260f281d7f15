#include "model/history_key.h"

#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <span>
#include <string_view>

namespace tidelane::model {
namespace {

std::string_view LastPart(std::string_view path) { return path.substr(path.rfind('/') + 1); }

bool IsInterpreter(std::string_view name) {
  constexpr std::string_view kInterpreters[] = {"python", "julia", "Rscript", "perl",
                                                "ruby",   "sh",    "bash"};
  return std::ranges::any_of(kInterpreters, [name](std::string_view interpreter) {
    if (!name.starts_with(interpreter)) return false;
    // python3.11, but not shrink.
    return name.find_first_not_of("0123456789.", interpreter.size()) == std::string_view::npos;
  });
}

// The kernel writes space, tab, newline and backslash as \ooo.
std::string Unescaped(std::string_view text) {
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\' || i + 3 >= text.size()) {
      plain += text[i];
      continue;
    }
    plain +=
        static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 + text[i + 3] - '0');
    i += 3;
  }
  return plain;
}

// What a file of /proc says; nothing where it cannot be read. Without streams: see history.cc.
std::string Contents(const std::string& path) {
  std::string contents;
  const std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen(path.c_str(), "rbe"), std::fclose);
  if (file == nullptr) return contents;
  char part[4096];
  for (size_t got; (got = std::fread(part, 1, sizeof part, file.get())) > 0;)
    contents.append(part, got);
  return contents;
}

// Cuts what comes before the next `end` off `rest`.
std::string_view Cut(std::string_view& rest, char end) {
  const size_t length = std::min(rest.find(end), rest.size());
  const std::string_view word = rest.substr(0, length);
  rest.remove_prefix(std::min(length + 1, rest.size()));
  return word;
}

long FirstNumber(std::span<const char* const> variables) {
  for (const char* variable : variables) {
    const char* text = std::getenv(variable);
    if (text == nullptr || *text == '\0') continue;
    char* end = nullptr;
    const long number = std::strtol(text, &end, 10);
    if (end != text && number >= 0 && number < 100'000'000) return number;
  }
  return -1;
}

}  // namespace

std::string FileSystemName(dev_t device, const std::string& root) {
  const std::string number = std::to_string(major(device)) + ":" + std::to_string(minor(device));
  const std::string mounts = Contents(root + "/proc/self/mountinfo");
  // id parent major:minor root mountpoint options [tags] - kind source superoptions
  for (std::string_view lines = mounts; !lines.empty();) {
    std::string_view line = Cut(lines, '\n');
    Cut(line, ' '), Cut(line, ' ');
    if (Cut(line, ' ') != number) continue;
    while (!line.empty() && Cut(line, ' ') != "-") {
    }
    const std::string_view kind = Cut(line, ' ');
    const std::string_view source = Cut(line, ' ');
    if (!source.empty()) return std::string(kind) + " " + Unescaped(source);
  }
  return "device " + number;
}

std::string ProgramName(const std::string& root) {
  const std::string line = Contents(root + "/proc/self/cmdline");
  std::string_view rest = line;
  const auto next = [&rest] { return Cut(rest, '\0'); };
  std::string name(LastPart(next()));
  if (!IsInterpreter(name)) return name;
  while (!rest.empty()) {
    const std::string_view word = next();
    if (word == "-m" && !rest.empty()) return name + " " + std::string(next());
    if (word == "-c") break;  // a program of its own each time
    if (!word.empty() && word.front() != '-') return name + " " + std::string(LastPart(word));
  }
  return name;
}

std::string DefaultHistoryFolder() {
  const char* state = secure_getenv("XDG_STATE_HOME");
  const char* home = secure_getenv("HOME");
  std::string base;
  if (state != nullptr && *state == '/') {
    base = state;
  } else if (home != nullptr && *home == '/') {
    struct stat found;
    if (stat(home, &found) != 0 || found.st_uid != geteuid()) return "";
    base = std::string(home) + "/.local/state";
  }
  return base.empty() ? "" : base + "/tidelane/history";
}

unsigned RanksOfJob() {
  constexpr const char* kVariables[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE",
                                        "MV2_COMM_WORLD_SIZE",  "PALS_SIZE",
                                        "JSM_NAMESPACE_SIZE",   "SLURM_NTASKS"};
  return static_cast<unsigned>(std::max(FirstNumber(kVariables), 1L));
}

unsigned RankInJob() {
  constexpr const char* kVariables[] = {"OMPI_COMM_WORLD_RANK", "PMI_RANK",
                                        "MV2_COMM_WORLD_RANK",  "PALS_RANKID",
                                        "JSM_NAMESPACE_RANK",   "SLURM_PROCID"};
  return static_cast<unsigned>(std::max(FirstNumber(kVariables), 0L));
}

}  // namespace tidelane::model
