/// \file
/// CLI11 parses; what it is given is made from the table. Options end where a program's own command
/// line begins, also without the "--" between them.
///
/// Thread safety: as command_line.h.
#include "tools/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "base/nearest.h"
#include "tools/terminal.h"

namespace tidelane::tools {
namespace {

constexpr size_t kIndent = 2;
constexpr size_t kColumn = 26;  // where meanings begin

const Option* FindOption(const Command& command, const std::string& name) {
  for (const Option& option : command.options) {
    if (option.Long() == name || option.Short() == name) return &option;
  }
  return nullptr;
}

// The index of the first word that is neither an option nor an option's value.
size_t ProgramBegin(const Command& command, const std::vector<std::string>& words) {
  size_t i = 0;
  while (i < words.size() && words[i].size() > 1 && words[i][0] == '-' && words[i] != "--") {
    const Option* const option = FindOption(command, words[i]);
    i += option != nullptr && !option->value.empty() ? 2 : 1;
  }
  return std::min(i, words.size());
}

std::string Unexpected(const Command& command, const std::string& word) {
  const std::string name = word.substr(0, word.find('='));
  if (!name.starts_with("-")) {
    return "'" + name + "' is one word too many: tidelane " + command.name + " " +
           command.operands_text;
  }
  std::vector<std::string> names;
  for (const Option& option : command.options) names.push_back(option.Long());
  names.emplace_back("--help");
  const std::vector<std::string_view> known(names.begin(), names.end());
  std::string text = "there is no option " + name;
  if (const std::string_view meant = Meant(name, known); !meant.empty()) {
    return text + "; the nearest is " + std::string(meant);
  }
  return text + "; tidelane " + command.name + " --help lists them";
}

class Parser {
 public:
  explicit Parser(const Command& command) : command_(command) {
    app_.set_help_flag();
    app_.allow_extras();
    for (const Option& option : command.options) Add(option);
    if (command.operands == Operands::kFiles || command.operands == Operands::kWords) {
      app_.add_option("operands", operands_);
    }
  }

  bool Run(std::vector<std::string> words, Arguments& arguments, std::string& error) {
    std::ranges::reverse(words);  // as CLI11 wants them
    try {
      app_.parse(words);
    } catch (const CLI::ParseError& wrong) {
      error = wrong.what();
      return false;
    }
    for (const std::string& extra : app_.remaining()) {
      // A query may begin with a sign: '-inf < x'.
      const bool sentence = !extra.starts_with("--") && extra.find(' ') != std::string::npos;
      if (sentence && command_.operands == Operands::kFiles) {
        operands_.push_back(extra);
        continue;
      }
      error = Unexpected(command_, extra);
      return false;
    }
    Collect(arguments);
    return OnceEach(arguments, error);
  }

 private:
  void Add(const Option& option) {
    const std::string key = option.Long().substr(2);
    if (option.value.empty()) {
      app_.add_flag(option.names, switches_[key]);
      return;
    }
    CLI::Option* const added = app_.add_option(option.names, values_[key]);
    added->type_name(option.value)->type_size(1)->expected(1)->allow_extra_args(false);
    added->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  }

  void Collect(Arguments& arguments) {
    for (const auto& [key, given] : switches_) {
      if (given) arguments.values[key];
    }
    for (const auto& [key, values] : values_) {
      if (!values.empty()) arguments.values[key] = values;
    }
    arguments.operands = operands_;
  }

  bool OnceEach(const Arguments& arguments, std::string& error) const {
    for (const Option& option : command_.options) {
      const size_t times = arguments.All(option.Long().substr(2)).size();
      if (option.repeated || times < 2) continue;
      error = option.Long() + " was given " + std::to_string(times) + " times: once is right";
      return false;
    }
    return true;
  }

  const Command& command_;
  CLI::App app_;
  std::map<std::string, bool> switches_;
  std::map<std::string, std::vector<std::string>> values_;
  std::vector<std::string> operands_;
};

void OptionLines(std::string& text, const Command& command, bool settings) {
  for (const Option& option : command.options) {
    if (option.setting != settings) continue;
    std::string line(kIndent, ' ');
    line += option.Short().empty() ? "    " : option.Short() + ", ";
    line += option.Long() + (option.value.empty() ? "" : " " + option.value);
    if (line.size() + 2 > kColumn) {
      line += '\n' + std::string(kColumn, ' ');
    } else {
      line.resize(kColumn, ' ');
    }
    text += line + Wrapped(option.meaning, TextWidth(), kColumn) + '\n';
  }
}

bool HasSettings(const Command& command) {
  return std::ranges::any_of(command.options, &Option::setting);
}

}  // namespace

bool Parse(const Command& command, const std::vector<std::string>& words, Arguments& arguments,
           std::string& error) {
  size_t end = words.size();
  if (command.operands == Operands::kProgram) end = ProgramBegin(command, words);
  const auto middle = words.begin() + static_cast<std::ptrdiff_t>(end);
  if (!Parser(command).Run({words.begin(), middle}, arguments, error)) return false;
  if (command.operands == Operands::kProgram) {
    arguments.operands.assign(middle, words.end());
    if (!arguments.operands.empty() && arguments.operands[0] == "--") {
      arguments.operands.erase(arguments.operands.begin());
    }
  }
  return true;
}

std::string HelpOf(const Command& command) {
  const size_t width = TextWidth();
  std::string text = "usage: tidelane " + command.name + " [options]";
  if (!command.operands_text.empty()) text += " " + command.operands_text;
  text += "\n\n";
  for (const std::string& paragraph : command.description) {
    text += Wrapped(paragraph, width, 0) + "\n\n";
  }
  text += "Options:\n";
  OptionLines(text, command, false);
  text += "  -h, --help              " + std::string("print this\n");
  if (HasSettings(command)) {
    text += "\nSettings (docs/settings.md says more about each):\n";
    OptionLines(text, command, true);
  }
  if (!command.examples.empty()) text += "\nExamples:\n";
  for (const Example& example : command.examples) {
    text += "  " + example.line + "\n      " + Wrapped(example.meaning, width, 6) + "\n";
  }
  return text;
}

std::string Help() {
  std::string text =
      "usage: tidelane COMMAND [options]\n\n"
      "Asynchronous I/O for HDF5: run a program with it, see what it did, find what to set.\n\n"
      "Commands:\n";
  for (const Command& command : Commands()) {
    if (command.hidden) continue;
    std::string line = "  " + command.name;
    line.resize(14, ' ');
    text += line + Wrapped(command.summary, TextWidth(), 14) + "\n";
  }
  text +=
      "\n  -h, --help      print this; tidelane COMMAND --help says more\n"
      "  -V, --version   print the version\n\nExit status:\n";
  for (const ExitStatus& status : ExitStatuses()) {
    std::string line = "  " + status.status;
    line.resize(14, ' ');
    text += line + Wrapped(status.meaning, TextWidth(), 14) + "\n";
  }
  return text;
}

}  // namespace tidelane::tools
