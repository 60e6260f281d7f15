/// \file
/// The table itself: complete, without doubles, and every value that it shows can be read again.
#include "base/settings.h"

#include <set>

#include <gtest/gtest.h>

namespace tidelane {
namespace {

TEST(SettingsTest, EverySettingSaysWhatAPersonNeeds) {
  std::set<std::string_view> names;
  for (const Setting& setting : Settings()) {
    EXPECT_TRUE(names.insert(setting.name).second) << setting.name << " exists twice";
    EXPECT_FALSE(setting.meaning.empty()) << setting.name;
    EXPECT_FALSE(AcceptedBy(setting).empty()) << setting.name;
    EXPECT_FALSE(DefaultOf(setting).empty()) << setting.name;
    EXPECT_EQ(FindSetting(setting.name), &setting);
  }
  EXPECT_EQ(FindSetting("nonsense"), nullptr);
}

TEST(SettingsTest, ValuesThatAreShownCanBeGiven) {
  Config config;
  config.mode = Mode::kSync;
  config.journal = Journal::kProcess;
  config.journal_commits = {.flushes = 0, .us = 90'000'000};
  config.gap_bytes = 12345;
  config.copy_limit = 3u << 20;
  config.arena_bytes = uint64_t{3} << 30;
  config.linger_us = 1'500;
  config.lanes = 7;
  config.read_ahead = Toggle::kOff;
  config.summary = "out.json";
  config.config_file = "run.conf";
  for (const Setting& setting : Settings()) {
    if (setting.name == "break") continue;  // has no value that could be given
    Config again;
    const std::string shown = setting.value.show(config);
    EXPECT_TRUE(setting.value.parse(again, shown)) << setting.name << "=" << shown;
    EXPECT_EQ(setting.value.show(again), shown) << setting.name;
  }
  EXPECT_EQ(FindSetting("linger")->value.show(config), "1500us");
  EXPECT_EQ(FindSetting("gap")->value.show(config), "12345");
  EXPECT_EQ(FindSetting("journal_commits")->value.show(config), "90s");
}

TEST(SettingsTest, WordsAreAccepted) {
  for (const Setting& setting : Settings()) {
    for (const std::string_view word : setting.value.words()) {
      Config config;
      EXPECT_TRUE(setting.value.parse(config, word)) << setting.name << "=" << word;
      EXPECT_EQ(setting.value.show(config), word) << setting.name;
    }
  }
  EXPECT_EQ(AcceptedBy(*FindSetting("readahead")), "auto, on or off");
}

TEST(SettingsTest, CommitsAreDueByNumberOrByTime) {
  const ValueType& type = FindSetting("journal_commits")->value;
  Config config;
  ASSERT_TRUE(type.parse(config, "2000"));  // no microseconds: those need their unit here
  EXPECT_EQ(config.journal_commits, (JournalCommits{.flushes = 2000, .us = 0}));
  ASSERT_TRUE(type.parse(config, "250ms"));
  EXPECT_EQ(config.journal_commits, (JournalCommits{.flushes = 0, .us = 250'000}));
  for (const char* text : {"", "0", "0us", "-1", "10 flushes", "1.5s"}) {
    EXPECT_FALSE(type.parse(config, text)) << text;
  }
  EXPECT_EQ(config.journal_commits.us, 250'000u);
}

TEST(SettingsTest, AliasesSetWhatExists) {
  std::set<std::string_view> variables;
  for (const Alias& alias : Aliases()) {
    EXPECT_TRUE(variables.insert(alias.variable).second) << alias.variable << " exists twice";
    EXPECT_TRUE(alias.setting.empty() || FindSetting(alias.setting) != nullptr) << alias.variable;
    EXPECT_FALSE(alias.meaning.empty()) << alias.variable;
  }
}

TEST(SettingsTest, SizesAndTimes) {
  uint64_t value = 0;
  for (const char* text : {"", "k", "1T", "-1", "1 M", "18446744073709551616", "17179869184G"}) {
    EXPECT_FALSE(ParseSize(text, value)) << text;
  }
  EXPECT_TRUE(ParseSize("17179869183G", value));
  EXPECT_EQ(ShowSize(value), "17179869183G");
  EXPECT_EQ(ShowSize(0), "0");
  EXPECT_EQ(ShowSize(1025), "1025");
  EXPECT_TRUE(ParseMicroseconds("10s", value));
  EXPECT_EQ(value, 10'000'000u);
  EXPECT_FALSE(ParseMicroseconds("1m", value));
  EXPECT_FALSE(ParseNumber("1k", value));
  EXPECT_EQ(VariableOf("copy_limit"), "TIDELANE_COPY_LIMIT");
}

}  // namespace
}  // namespace tidelane
