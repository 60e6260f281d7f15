/// \file
/// How the value of a setting is read from text and written as text: words, sizes, times, numbers,
/// paths. The rows of the table (base/settings.cc) pick one of these for a member of Config.
///
/// Invariant: what `show` gives, `parse` takes, with the same result.
///
/// Thread safety: pure functions.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "base/config.h"

namespace tidelane {

struct ValueType {
  /// False when the text is not acceptable; the config may then be half changed.
  bool (*parse)(Config& config, std::string_view text);
  std::string (*show)(const Config& config);
  /// The words that it takes, or nothing where it takes something else.
  std::vector<std::string_view> (*words)();
};

/// Bytes: "4096", "64k", "2G". False for anything else.
bool ParseSize(std::string_view text, uint64_t& bytes);
/// Exact, with the largest unit that leaves a whole number.
std::string ShowSize(uint64_t bytes);
/// Microseconds: "2000", "2ms", "10s".
bool ParseMicroseconds(std::string_view text, uint64_t& us);
std::string ShowMicroseconds(uint64_t us);
/// A decimal number and nothing else.
bool ParseNumber(std::string_view text, uint64_t& number);

template <typename T>
struct Choice {
  std::string_view word;
  T value;
};

inline constexpr std::array<Choice<Mode>, 3> kModes{
    {{"auto", Mode::kAuto}, {"async", Mode::kAsync}, {"sync", Mode::kSync}}};
inline constexpr std::array<Choice<bool>, 2> kWaitOrDeferred{{{"wait", false}, {"deferred", true}}};
inline constexpr std::array<Choice<Consistency>, 3> kConsistencies{
    {{"auto", Consistency::kAuto}, {"mpi", Consistency::kMpi}, {"strict", Consistency::kStrict}}};
inline constexpr std::array<Choice<ParallelWrites>, 3> kParallelWrites{
    {{"off", ParallelWrites::kOff},
     {"on", ParallelWrites::kOn},
     {"serial", ParallelWrites::kSerial}}};
inline constexpr std::array<Choice<bool>, 2> kInPlaceOrAtomic{
    {{"inplace", false}, {"atomic", true}}};
inline constexpr std::array<Choice<Journal>, 3> kJournals{
    {{"off", Journal::kOff}, {"process", Journal::kProcess}, {"power", Journal::kPower}}};
inline constexpr std::array<Choice<bool>, 2> kOffOrOn{{{"off", false}, {"on", true}}};
inline constexpr std::array<Choice<Toggle>, 3> kAutoOnOff{
    {{"auto", Toggle::kAuto}, {"on", Toggle::kOn}, {"off", Toggle::kOff}}};

inline constexpr std::array<Choice<DeflateWith>, 4> kDeflates{
    {{"libdeflate", DeflateWith::kLibdeflate},
     {"isal", DeflateWith::kIsal},
     {"zlib", DeflateWith::kZlib},
     {"native", DeflateWith::kNative}}};

inline std::vector<std::string_view> NoWords() { return {}; }

/// One of `kChoices`.
template <auto kMember, const auto& kChoices>
struct WordOf {
  static bool Parse(Config& config, std::string_view text) {
    for (const auto& choice : kChoices) {
      if (choice.word != text) continue;
      config.*kMember = choice.value;
      return true;
    }
    return false;
  }
  static std::string Show(const Config& config) {
    for (const auto& choice : kChoices) {
      if (choice.value == config.*kMember) return std::string(choice.word);
    }
    return {};
  }
  static std::vector<std::string_view> Words() {
    std::vector<std::string_view> words;
    for (const auto& choice : kChoices) words.push_back(choice.word);
    return words;
  }
  static constexpr ValueType kType{Parse, Show, Words};
};

/// What H5Fclose waits for: the file, nothing, or a fast tier.
struct CloseOf {
  static bool Parse(Config& config, std::string_view text) {
    const auto words = Words();
    if (std::ranges::find(words, text) == words.end()) return false;
    config.close_deferred = text.ends_with("deferred");
    config.close_in_tier = text.starts_with("tier");
    return true;
  }
  static std::string Show(const Config& config) {
    if (config.close_in_tier) return config.close_deferred ? "tier_deferred" : "tier";
    return config.close_deferred ? "deferred" : "wait";
  }
  static std::vector<std::string_view> Words() {
    return {"wait", "deferred", "tier", "tier_deferred"};
  }
  static constexpr ValueType kType{Parse, Show, Words};
};

/// Where the fast tier is.
struct TierOf {
  static bool Parse(Config& config, std::string_view text) {
    if (text != "off" && text != "memory" && !text.starts_with('/')) return false;
    config.tier = text == "off" ? "" : text;
    return true;
  }
  static std::string Show(const Config& config) {
    return config.tier.empty() ? "off" : config.tier;
  }
  static std::vector<std::string_view> Words() { return {"off", "memory"}; }
  static constexpr ValueType kType{Parse, Show, Words};
};

/// A size, or auto (0).
template <auto kMember>
struct SizeOrAutoOf {
  static bool Parse(Config& config, std::string_view text) {
    uint64_t bytes = 0;
    if (text != "auto" && (!ParseSize(text, bytes) || bytes == 0)) return false;
    config.*kMember = bytes;
    return true;
  }
  static std::string Show(const Config& config) {
    return config.*kMember == 0 ? "auto" : ShowSize(config.*kMember);
  }
  static std::vector<std::string_view> Words() { return {"auto"}; }
  static constexpr ValueType kType{Parse, Show, Words};
};

/// A size between two bounds.
template <auto kMember, uint64_t kLeast, uint64_t kMost>
struct SizeOf {
  static bool Parse(Config& config, std::string_view text) {
    uint64_t bytes = 0;
    if (!ParseSize(text, bytes) || bytes < kLeast || bytes > kMost) return false;
    config.*kMember = bytes;
    return true;
  }
  static std::string Show(const Config& config) { return ShowSize(config.*kMember); }
  static constexpr ValueType kType{Parse, Show, NoWords};
};

inline constexpr std::string_view kUnlimited = "unlimited";
inline constexpr std::string_view kAutomatic = "auto";

/// A size of at most `kMost`, or the word for the largest number there is.
template <auto kMember, const std::string_view& kWord = kUnlimited,
          uint64_t kMost = std::numeric_limits<uint64_t>::max()>
struct LimitOf {
  static bool Parse(Config& config, std::string_view text) {
    uint64_t bytes = std::numeric_limits<uint64_t>::max();
    if (text != kWord && (!ParseSize(text, bytes) || bytes > kMost)) return false;
    config.*kMember = bytes;
    return true;
  }
  static std::string Show(const Config& config) {
    const uint64_t bytes = config.*kMember;
    return bytes == std::numeric_limits<uint64_t>::max() ? std::string(kWord) : ShowSize(bytes);
  }
  static std::vector<std::string_view> Words() { return {kWord}; }
  static constexpr ValueType kType{Parse, Show, Words};
};

/// A time of at most `kMost` microseconds.
template <auto kMember, uint64_t kMost>
struct TimeOf {
  static bool Parse(Config& config, std::string_view text) {
    uint64_t us = 0;
    if (!ParseMicroseconds(text, us) || us > kMost) return false;
    config.*kMember = us;
    return true;
  }
  static std::string Show(const Config& config) { return ShowMicroseconds(config.*kMember); }
  static constexpr ValueType kType{Parse, Show, NoWords};
};

/// A number between two bounds.
template <auto kMember, unsigned kLeast, unsigned kMost>
struct NumberOf {
  static bool Parse(Config& config, std::string_view text) {
    uint64_t number = 0;
    if (!ParseNumber(text, number) || number < kLeast || number > kMost) return false;
    config.*kMember = static_cast<unsigned>(number);
    return true;
  }
  static std::string Show(const Config& config) { return std::to_string(config.*kMember); }
  static constexpr ValueType kType{Parse, Show, NoWords};
};

/// The same, or `auto`, which is 0.
template <auto kMember, unsigned kMost>
struct NumberOrAutoOf {
  static bool Parse(Config& config, std::string_view text) {
    if (text != kAutomatic) return NumberOf<kMember, 1, kMost>::Parse(config, text);
    config.*kMember = 0;
    return true;
  }
  static std::string Show(const Config& config) {
    return config.*kMember == 0 ? std::string(kAutomatic) : std::to_string(config.*kMember);
  }
  static constexpr ValueType kType{Parse, Show, NoWords};
};

/// A number of flushes, at least 1, or a time, longer than none and with its unit.
template <auto kMember>
struct FlushesOrTimeOf {
  static bool Parse(Config& config, std::string_view text) {
    JournalCommits due{.flushes = 0, .us = 0};
    if (!ParseNumber(text, due.flushes) && !ParseMicroseconds(text, due.us)) return false;
    if (due.flushes == 0 && due.us == 0) return false;
    config.*kMember = due;
    return true;
  }
  static std::string Show(const Config& config) {
    const JournalCommits& due = config.*kMember;
    return due.flushes != 0 ? std::to_string(due.flushes) : ShowMicroseconds(due.us);
  }
  static constexpr ValueType kType{Parse, Show, NoWords};
};

/// Where a report goes: a path, or "0" or "off" for nowhere. `kSwitch`: "1" or "on" is a place too; otherwise it
/// is refused, because who writes it means a switch and would get a file of that name.
template <auto kMember, bool kSwitch>
struct ReportOf {
  static bool Parse(Config& config, std::string_view text) {
    const bool on = text == "1" || text == "on";
    if (!kSwitch && on) return false;
    config.*kMember = on ? "1" : text == "0" || text == "off" ? "" : text;
    return true;
  }
  static std::string Show(const Config& config) {
    const std::string& where = config.*kMember;
    return where.empty() ? "0" : where;
  }
  static constexpr ValueType kType{Parse, Show, NoWords};
};

}  // namespace tidelane
