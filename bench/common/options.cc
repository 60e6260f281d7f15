// The only source of the measuring programs that includes CLI11.
//
// Invariant: nothing is added to what CLI11 does, so that its help and its messages are the programs'.
// Thread safety: as options.h.
#include "common/options.h"

#include <CLI/CLI.hpp>
#include <cstdint>
#include <utility>

namespace tidelane::measure {
namespace {

// Stands for any enumeration: CLI11 converts to it, and describes it, as it would the program's own.
enum class Choice : int {};

}  // namespace

Option& Option::required() {
  option_->required();
  return *this;
}

Option& Option::shows_default() {
  option_->capture_default_str();
  return *this;
}

Option& Option::positive() {
  option_->check(CLI::PositiveNumber);
  return *this;
}

Option& Option::not_negative() {
  option_->check(CLI::NonNegativeNumber);
  return *this;
}

Option& Option::between(int least, int most) {
  option_->check(CLI::Range(least, most));
  return *this;
}

Option& Option::one_of(const std::vector<std::string>& values) {
  option_->check(CLI::IsMember(values));
  return *this;
}

Option& Option::existing_directory() {
  option_->check(CLI::ExistingDirectory);
  return *this;
}

CommandLine::CommandLine(const std::string& what) : app_(std::make_unique<CLI::App>(what)) {}

CommandLine::~CommandLine() = default;

template <class T>
  requires(!std::is_enum_v<T>)
Option CommandLine::option(const std::string& name, T& value, const std::string& meaning) {
  return Option(*app_->add_option(name, value, meaning));
}

template Option CommandLine::option(const std::string&, std::string&, const std::string&);
template Option CommandLine::option(const std::string&, double&, const std::string&);
template Option CommandLine::option(const std::string&, int&, const std::string&);
template Option CommandLine::option(const std::string&, unsigned&, const std::string&);
template Option CommandLine::option(const std::string&, int64_t&, const std::string&);
template Option CommandLine::option(const std::string&, uint64_t&, const std::string&);
template Option CommandLine::option(const std::string&, std::vector<double>&, const std::string&);
template Option CommandLine::option(const std::string&, std::vector<int>&, const std::string&);
template Option CommandLine::option(const std::string&, std::vector<uint64_t>&, const std::string&);

Option CommandLine::choice(const std::string& name, std::function<void(int)> set,
                           const std::map<std::string, int>& values, const std::string& meaning) {
  std::map<std::string, Choice> choices;
  for (const auto& [key, number] : values) choices[key] = static_cast<Choice>(number);
  CLI::Option* const option = app_->add_option_function<Choice>(
      name, [set = std::move(set)](const Choice& chosen) { set(static_cast<int>(chosen)); },
      meaning);
  return Option(*option->transform(CLI::CheckedTransformer(choices)));
}

void CommandLine::flag(const std::string& names, bool& value, const std::string& meaning) {
  app_->add_flag(names, value, meaning);
}

std::optional<int> CommandLine::parse(int argc, const char* const* argv) {
  try {
    app_->parse(argc, argv);
  } catch (const CLI::ParseError& wrong) {
    return app_->exit(wrong);
  }
  return std::nullopt;
}

}  // namespace tidelane::measure
