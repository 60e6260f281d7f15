// The command line of a measuring program: its options, their checks, and --help.
//
//   CommandLine line("Writes what others read.");
//   line.option("--steps", steps, "of the simulation").positive().shows_default();
//   line.flag("--flush", flush, "after each step");
//   if (const auto status = line.parse(argc, argv)) return *status;
//
// CLI11 parses. Its header takes longer to compile than most programs, so that options.cc alone includes it.
//
// Invariant: variables keep their values until parse(); what was given is in them after it, checked.
// Thread safety: none; a command line belongs to the main thread.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace tidelane::measure {

// What is asked of one option. It is valid as long as its command line.
class Option {
 public:
  explicit Option(CLI::Option& option) : option_(&option) {}

  Option& required();
  Option& shows_default();  // --help shows the value that the variable has now
  Option& positive();
  Option& not_negative();
  Option& between(int least, int most);  // both included
  Option& one_of(const std::vector<std::string>& values);
  Option& existing_directory();

 private:
  CLI::Option* option_;
};

class CommandLine {
 public:
  explicit CommandLine(const std::string& what);
  ~CommandLine();

  // `name` is "--name", or "name" for one that is given by its place. A vector takes the option's values, however often it
  // is given. Defined for the types of which options.cc has instances.
  template <class T>
    requires(!std::is_enum_v<T>)
  Option option(const std::string& name, T& value, const std::string& meaning = "");

  // One of an enumeration's values, by its name or number.
  template <class Enum>
    requires std::is_same_v<std::underlying_type_t<Enum>, int>
  Option option(const std::string& name, Enum& value, const std::map<std::string, Enum>& values,
                const std::string& meaning) {
    std::map<std::string, int> numbers;
    for (const auto& [key, number] : values) numbers[key] = static_cast<int>(number);
    return choice(
        name, [&value](int number) { value = static_cast<Enum>(number); }, numbers, meaning);
  }

  // `names` is "--name", or "--name,!--no-name" where the second one says that it is false.
  void flag(const std::string& names, bool& value, const std::string& meaning = "");

  // Returns the program's exit status where it is to end at once: after --help, or after what is wrong was said.
  [[nodiscard]] std::optional<int> parse(int argc, const char* const* argv);

 private:
  Option choice(const std::string& name, std::function<void(int)> set,
                const std::map<std::string, int>& values, const std::string& meaning);

  const std::unique_ptr<CLI::App> app_;
};

}  // namespace tidelane::measure
