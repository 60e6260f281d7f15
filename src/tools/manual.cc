#include "tools/manual.h"

#include <cstdio>
#include <string>

#include "base/version.h"
#include "tools/commands.h"

namespace tidelane::tools {
namespace {

// Text as troff takes it: `word` is set in bold.
std::string Roff(const std::string& text) {
  std::string out;
  bool bold = false;
  for (const char c : text) {
    switch (c) {
      case '\\': out += "\\e"; break;
      case '-': out += "\\-"; break;
      case '`':
        out += bold ? "\\fR" : "\\fB";
        bold = !bold;
        break;
      case '.':
      case '\'': out += (out.empty() ? "\\&" : "") + std::string(1, c); break;
      default: out += c;
    }
  }
  return out;
}

std::string Bold(const std::string& text) { return "\\fB" + Roff(text) + "\\fR"; }

void OptionEntry(std::string& page, const Option& option) {
  page += ".TP\n";
  if (!option.Short().empty()) page += Bold(option.Short()) + ", ";
  page += Bold(option.Long());
  if (!option.value.empty()) page += " \\fI" + Roff(option.value) + "\\fR";
  page += "\n" + Roff(option.meaning) + "\n";
}

void CommandSection(std::string& page, const Command& command) {
  page += ".SS tidelane " + Roff(command.name) + " [options] " + Roff(command.operands_text) + "\n";
  for (const std::string& paragraph : command.description) page += Roff(paragraph) + "\n.PP\n";
  for (const Option& option : command.options) {
    if (!option.setting) OptionEntry(page, option);
  }
}

void SettingsSection(std::string& page) {
  page += ".SH SETTINGS\nOptions of " + Bold("run") + " and " + Bold("config") +
          "; each is also the variable TIDELANE_ and its name in capitals. docs/settings.md says "
          "more.\n";
  for (const Option& option : FindCommand("run")->options) {
    if (option.setting) OptionEntry(page, option);
  }
}

void ExampleSection(std::string& page) {
  page += ".SH EXAMPLES\n";
  for (const Command& command : Commands()) {
    for (const Example& example : command.examples) {
      page += ".TP\n" + Bold(example.line) + "\n" + Roff(example.meaning) + "\n";
    }
  }
}

std::string Page() {
  std::string page =
      ".TH TIDELANE 1 \"\" \"tidelane " TIDELANE_VERSION
      "\" \"User Commands\"\n.SH NAME\ntidelane \\- asynchronous I/O for HDF5: run, check, report\n"
      ".SH SYNOPSIS\n" +
      Bold("tidelane") + " \\fICOMMAND\\fR [options]\n.SH COMMANDS\n";
  for (const Command& command : Commands()) {
    if (!command.hidden) CommandSection(page, command);
  }
  SettingsSection(page);
  page += ".SH EXIT STATUS\n";
  for (const ExitStatus& status : ExitStatuses()) {
    page += ".TP\n" + Bold(status.status) + "\n" + Roff(status.meaning) + "\n";
  }
  page += ".SH ENVIRONMENT\n.TP\n" + Bold("TMPDIR") +
          "\nwhere \\fBrun\\fR collects what processes tell (default: /tmp)\n.TP\n";
  page += Bold("NO_COLOR") + "\nno colours, whatever its value\n";
  ExampleSection(page);
  return page +
         ".SH SEE ALSO\nThe documentation installed beside the program: README.md, "
         "docs/tool.md, docs/settings.md, docs/summary.md\n";
}

}  // namespace

int Manual(const Arguments&) {
  std::fputs(Page().c_str(), stdout);
  return std::fflush(stdout) == 0 ? kDone : kFailed;
}

}  // namespace tidelane::tools
