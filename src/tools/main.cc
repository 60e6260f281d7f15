/// \file
/// tidelane: Tidelane's program for people. Which commands there are says tools/commands.h.
///
/// Thread safety: one thread.
#include <signal.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "base/nearest.h"
#include "base/version.h"
#include "tools/command_line.h"
#include "tools/commands.h"
#include "tools/terminal.h"

namespace tidelane::tools {
namespace {

int Unknown(const std::string& word) {
  std::vector<std::string_view> names;
  for (const Command& command : Commands()) {
    if (!command.hidden) names.push_back(command.name);
  }
  std::string text = "there is no command '" + word + "'";
  if (const std::string_view meant = Meant(word, names); !meant.empty()) {
    text += "; the nearest is " + std::string(meant);
  } else {
    text += "; tidelane --help lists them";
  }
  return Fail(kUsage, text);
}

bool AsksForHelp(const Command& command, const std::vector<std::string>& words) {
  if (words.empty()) return false;
  const auto end = command.operands == Operands::kProgram && !words.empty()
                       ? words.begin() + 1  // further on, it may be the program's
                       : words.end();
  return std::any_of(words.begin(), end,
                     [](const std::string& word) { return word == "-h" || word == "--help"; });
}

int Print(const std::string& text) {
  std::fputs(text.c_str(), stdout);
  return std::fflush(stdout) == 0 ? kDone : kFailed;
}

int RunCommandOf(const std::vector<std::string>& words) {
  const Command* const command = FindCommand(words[0]);
  if (command == nullptr) return Unknown(words[0]);
  NameCommand(command->name);
  const std::vector<std::string> rest(words.begin() + 1, words.end());
  if (!command->hidden && AsksForHelp(*command, rest)) return Print(HelpOf(*command));
  Arguments arguments;
  std::string error;
  if (!Parse(*command, rest, arguments, error)) {
    return Fail(command->name == "run" ? kCannotRun : kUsage, error);
  }
  return command->main(arguments);
}

int Main(const std::vector<std::string>& words) {
  if (words.empty()) {
    Print(Help());
    return kUsage;
  }
  if (words[0] == "-V" || words[0] == "--version") return Print("tidelane " TIDELANE_VERSION "\n");
  if (words[0] != "-h" && words[0] != "--help" && words[0] != "help") return RunCommandOf(words);
  const Command* const command = words.size() > 1 ? FindCommand(words[1]) : nullptr;
  return Print(command == nullptr ? Help() : HelpOf(*command));
}

}  // namespace
}  // namespace tidelane::tools

int main(int argc, char** argv) {
  signal(SIGCHLD, SIG_DFL);  // a parent that ignores it must not make us lose our children
  try {
    return tidelane::tools::Main({argv + 1, argv + argc});
  } catch (const std::exception& error) {
    return tidelane::tools::Fail(tidelane::tools::kUsage, error.what());
  }
}
