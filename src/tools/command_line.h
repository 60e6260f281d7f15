/// \file
/// From what was typed to a command and its arguments, by the table of commands.
///
/// Thread safety: one thread.
#pragma once

#include <string>
#include <vector>

#include "tools/commands.h"

namespace tidelane::tools {

/// Parses what follows the command's name. On failure `error` says in a line what is wrong and what
/// would be right.
bool Parse(const Command& command, const std::vector<std::string>& words, Arguments& arguments,
           std::string& error);

std::string HelpOf(const Command& command);
std::string Help();

}  // namespace tidelane::tools
