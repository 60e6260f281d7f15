/// \file
/// The one table of sub-commands: names, options, words. The parser, --help, the man page and the
/// shells' completions all come from it.
///
/// Invariant: what can be typed stands here exactly once; the options for settings come from
/// base/settings.h.
///
/// Thread safety: constant data, made at each call.
#pragma once

#include <string>
#include <vector>

#include "tools/arguments.h"
#include "tools/option.h"

namespace tidelane::tools {

enum class Operands { kNone, kFiles, kProgram, kWords };

struct Example {
  std::string line;
  std::string meaning;
};

struct Command {
  std::string name;
  std::string operands_text;             ///< as in the usage line: "FILE..."
  std::string summary;                   ///< a line
  std::vector<std::string> description;  ///< paragraphs
  Operands operands = Operands::kNone;
  std::vector<std::string> words;  ///< for Operands::kWords
  std::vector<Option> options;
  std::vector<Example> examples;
  int (*main)(const Arguments&) = nullptr;
  bool hidden = false;  ///< for Tidelane itself
};

const std::vector<Command>& Commands();
const Command* FindCommand(const std::string& name);

struct ExitStatus {
  std::string status;
  std::string meaning;
};
std::vector<ExitStatus> ExitStatuses();

}  // namespace tidelane::tools
