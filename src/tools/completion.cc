/// \file
/// After a program's name, its own arguments are completed as the shell would.
///
/// Thread safety: as completion.h.
#include "tools/completion.h"

#include <cstdio>
#include <string>

#include "tools/commands.h"
#include "tools/terminal.h"

namespace tidelane::tools {
namespace {

std::vector<const Command*> Shown() {
  std::vector<const Command*> shown;
  for (const Command& command : Commands()) {
    if (!command.hidden) shown.push_back(&command);
  }
  return shown;
}

std::string Joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

// Between single quotes.
std::string Quoted(const std::string& text) {
  std::string out;
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return "'" + out + "'";
}

std::string CommandNames() {
  std::vector<std::string> names;
  for (const Command* command : Shown()) names.push_back(command->name);
  return Joined(names);
}

std::string BashValues(const Option& option) {
  if (!option.words.empty()) return "compgen -W " + Quoted(Joined(option.words));
  if (option.completes == Completes::kFolder) return "compgen -d";
  return option.completes == Completes::kFile ? "compgen -f" : ":";
}

std::string BashOperands(const Command& command) {
  if (!command.words.empty()) return "compgen -W " + Quoted(Joined(command.words));
  if (command.operands == Operands::kFiles) return "compgen -f";
  return command.operands == Operands::kProgram ? "compgen -c" : ":";
}

// One function; the words of each command, and the values of each option, are cases.
std::string BashCommand(const Command& command) {
  std::vector<std::string> names{"--help"};
  std::string values;
  for (const Option& option : command.options) {
    names.push_back(option.Long());
    if (!option.Short().empty()) names.push_back(option.Short());
    if (option.value.empty()) continue;
    const std::string both = (option.Short().empty() ? "" : option.Short() + "|") + option.Long();
    values += "        " + both + ") from=" + Quoted(BashValues(option)) + " ;;\n";
  }
  return "    " + command.name + ")\n      case $previous in\n" + values +
         "        *) case $word in -*) from=" + Quoted("compgen -W " + Quoted(Joined(names))) +
         " ;; *) from=" + Quoted(BashOperands(command)) + " ;; esac ;;\n      esac ;;\n";
}

std::string Bash() {
  std::string text =
      "# bash completion for tidelane\n"
      "_tidelane() {\n"
      "  local word=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} from=: i\n"
      "  COMPREPLY=()\n"
      "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
      "    COMPREPLY=($(compgen -W '" +
      CommandNames() +
      " --help --version' -- \"$word\"))\n    return\n  fi\n"
      "  for ((i = 2; i < COMP_CWORD; i++)); do\n"
      "    if [ \"${COMP_WORDS[i]}\" = -- ]; then  # the program's own\n"
      "      if [ $((i + 1)) -eq \"$COMP_CWORD\" ]; then from='compgen -c'; else "
      "from='compgen -f'; fi\n"
      "      COMPREPLY=($(eval \"$from\" -- '\"$word\"'))\n      return\n    fi\n  done\n"
      "  case ${COMP_WORDS[1]} in\n";
  for (const Command* command : Shown()) text += BashCommand(*command);
  return text +
         "  esac\n  COMPREPLY=($(eval \"$from\" -- '\"$word\"'))\n}\n"
         "complete -o filenames -F _tidelane tidelane\n";
}

// Brackets and colons mean something to zsh's _arguments.
std::string ZshText(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '[' || c == ']' || c == ':') out += '\\';
    out += c;
  }
  return out;
}

std::string ZshOption(const Option& option) {
  std::string action;
  if (!option.value.empty()) {
    action = ":" + ZshText(option.value) + ":";
    if (!option.words.empty()) {
      action += "(" + Joined(option.words) + ")";
    } else if (option.completes == Completes::kFolder) {
      action += "_files -/";
    } else if (option.completes == Completes::kFile) {
      action += "_files";
    }
  }
  std::string text;
  for (const std::string& name : {option.Short(), option.Long()}) {
    if (name.empty()) continue;
    text += " \\\n        " + Quoted((option.repeated ? "*" : "") + name + "[" +
                                     ZshText(option.meaning) + "]" + action);
  }
  return text;
}

std::string ZshOperands(const Command& command) {
  switch (command.operands) {
    case Operands::kFiles: return "'*:file:_files'";
    case Operands::kProgram: return "'*::program: _normal'";
    case Operands::kWords: return Quoted("1:word:(" + Joined(command.words) + ")");
    case Operands::kNone: break;
  }
  return "'(-h --help)'{-h,--help}'[print help]'";
}

std::string Zsh() {
  std::string text = "#compdef tidelane\n_tidelane() {\n  local -a commands\n  commands=(\n";
  for (const Command* command : Shown()) {
    text += "    " + Quoted(command->name + ":" + ZshText(command->summary)) + "\n";
  }
  text +=
      "  )\n  if (( CURRENT == 2 )); then\n    _describe command commands\n    return\n  fi\n"
      "  local command=$words[2]\n  shift words\n  (( CURRENT-- ))\n  case $command in\n";
  for (const Command* command : Shown()) {
    text += "    " + command->name + ")\n      _arguments";
    for (const Option& option : command->options) text += ZshOption(option);
    text += " \\\n        " + ZshOperands(*command) + " ;;\n";
  }
  return text + "  esac\n}\n_tidelane \"$@\"\n";
}

std::string FishOption(const Command& command, const Option& option) {
  std::string text = "complete -c tidelane -n '__fish_seen_subcommand_from " + command.name +
                     "' -l " + option.Long().substr(2);
  if (!option.Short().empty()) text += " -s " + option.Short().substr(1);
  if (!option.value.empty()) {
    text += option.completes == Completes::kFile     ? " -r -F"
            : option.completes == Completes::kFolder ? " -x -a '(__fish_complete_directories)'"
            : option.words.empty()                   ? " -x"
                                                     : " -x -a " + Quoted(Joined(option.words));
  }
  std::string meaning;
  for (const char c : option.meaning) {
    if (c == '\'' || c == '\\') meaning += '\\';
    meaning += c;
  }
  return text + " -d '" + meaning + "'\n";
}

std::string Fish() {
  std::string text = "# fish completion for tidelane\n";
  for (const Command* command : Shown()) {
    text += "complete -c tidelane -f -n __fish_use_subcommand -a " + command->name + " -d " +
            Quoted(command->summary) + "\n";
  }
  for (const Command* command : Shown()) {
    const std::string seen = "-n '__fish_seen_subcommand_from " + command->name + "'";
    for (const Option& option : command->options) text += FishOption(*command, option);
    if (!command->words.empty()) {
      text += "complete -c tidelane -f " + seen + " -a " + Quoted(Joined(command->words)) + "\n";
    } else if (command->operands == Operands::kProgram) {
      text += "complete -c tidelane " + seen + " -a '(__fish_complete_subcommand)'\n";
    }
  }
  return text;
}

}  // namespace

int Completion(const Arguments& arguments) {
  if (arguments.operands.size() != 1) return Fail(kUsage, "which shell? bash, zsh or fish");
  const std::string& shell = arguments.operands[0];
  std::string text;
  if (shell == "bash") text = Bash();
  if (shell == "zsh") text = Zsh();
  if (shell == "fish") text = Fish();
  if (text.empty()) return Fail(kUsage, "no shell '" + shell + "': bash, zsh or fish");
  std::fputs(text.c_str(), stdout);
  return std::fflush(stdout) == 0 ? kDone : kFailed;
}

}  // namespace tidelane::tools
