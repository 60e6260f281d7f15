/// \file
/// Settings from every source: which wins, every name, every kind of mistake.
#include "base/config.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace tidelane {
namespace {

// Starts without any variable that is a source of settings and leaves none behind.
class ConfigTest : public testing::Test {
 protected:
  void SetUp() override { Clear(); }
  void TearDown() override { Clear(); }

  static void Set(const char* name, const char* value) { setenv(name, value, 1); }

  static std::string ErrorOf(const char* name, const char* value) {
    Clear();
    Set(name, value);
    Config config;
    const Status status = LoadConfig(config);
    Clear();
    EXPECT_TRUE(status.ok() || status.code() == EINVAL) << status.Message();
    return status.ok() ? "" : status.Message();
  }

 private:
  static void Clear() {
    std::vector<std::string> names;
    for (char** entry = environ; *entry != nullptr; ++entry) {
      const std::string text = *entry;
      if (text.starts_with("TIDELANE_") || text.starts_with("HDF5_")) {
        names.push_back(text.substr(0, text.find('=')));
      }
    }
    for (const std::string& name : names) unsetenv(name.c_str());
  }
};

TEST_F(ConfigTest, DefaultsAreTheSafeOnes) {
  Config config;
  ASSERT_TRUE(LoadConfig(config).ok());
  EXPECT_EQ(config.mode, Mode::kAuto);
  EXPECT_FALSE(config.close_deferred);
  EXPECT_FALSE(config.flush_deferred);
  EXPECT_EQ(config.lanes, 0u);  // auto
  EXPECT_EQ(config.arena_bytes, DefaultArenaBytes());
  EXPECT_EQ(config.linger_us, 2000u);
  EXPECT_EQ(config.gap_bytes, UINT64_MAX);
  EXPECT_EQ(config.journal, Journal::kOff);
  EXPECT_FALSE(config.journal_required);
  EXPECT_EQ(config.journal_commits, (JournalCommits{.flushes = 1, .us = 0}));
  EXPECT_FALSE(config.reserve);
  EXPECT_EQ(config.copy_limit, UINT64_MAX);
  EXPECT_EQ(config.read_ahead, Toggle::kAuto);
  EXPECT_EQ(config.summary, "");
  EXPECT_EQ(config.trace, "");
}

TEST_F(ConfigTest, ReadsEverySetting) {
  Set("TIDELANE_MODE", "sync");
  Set("TIDELANE_CLOSE", "deferred");
  Set("TIDELANE_FLUSH", "deferred");
  Set("TIDELANE_LANES", "64");
  Set("TIDELANE_ARENA", "256M");
  Set("TIDELANE_LINGER", "5ms");
  Set("TIDELANE_GAP", "0");
  Set("TIDELANE_RESERVE", "on");
  Set("TIDELANE_JOURNAL", "power");
  Set("TIDELANE_JOURNAL_REQUIRED", "on");
  Set("TIDELANE_JOURNAL_COMMITS", "5s");
  Set("TIDELANE_COPY_LIMIT", "1M");
  Set("TIDELANE_READAHEAD", "off");
  Set("TIDELANE_SUMMARY", "out-%p.json");
  Set("TIDELANE_TRACE", "trace.json");
  Config config;
  const Status status = LoadConfig(config);
  ASSERT_TRUE(status.ok()) << status.Message();
  EXPECT_EQ(config.mode, Mode::kSync);
  EXPECT_TRUE(config.close_deferred);
  EXPECT_TRUE(config.flush_deferred);
  EXPECT_EQ(config.lanes, 64u);
  EXPECT_EQ(config.arena_bytes, 256u << 20);
  EXPECT_EQ(config.linger_us, 5000u);
  EXPECT_EQ(config.gap_bytes, 0u);
  EXPECT_TRUE(config.reserve);
  EXPECT_EQ(config.journal, Journal::kPower);
  EXPECT_TRUE(config.journal_required);
  EXPECT_EQ(config.journal_commits, (JournalCommits{.flushes = 0, .us = 5'000'000}));
  EXPECT_EQ(config.copy_limit, 1u << 20);
  EXPECT_EQ(config.read_ahead, Toggle::kOff);
  EXPECT_EQ(config.summary, "out-%p.json");
  EXPECT_EQ(config.trace, "trace.json");
}

TEST_F(ConfigTest, SizesTakeBinarySuffixes) {
  const struct {
    const char* text;
    uint64_t bytes;
  } cases[] = {{"65536", 65536},          {"64k", 65536},      {"1M", 1u << 20}, {"2m", 2u << 20},
               {"3G", uint64_t{3} << 30}, {"1000000", 1000000}};
  for (const auto& [text, bytes] : cases) {
    Set("TIDELANE_ARENA", text);
    Config config;
    ASSERT_TRUE(LoadConfig(config).ok()) << text;
    EXPECT_EQ(config.arena_bytes, bytes) << text;
  }
}

TEST_F(ConfigTest, BadValuesAreNamedWithWhatIsAccepted) {
  EXPECT_EQ(
      ErrorOf("TIDELANE_LANES", "many"),
      "cannot use TIDELANE_LANES='many': accepted are a number from 1 to 64, or auto: Invalid "
      "argument (errno 22)");
  const struct {
    const char* name;
    const char* value;
  } bad[] = {
      {"TIDELANE_MODE", "asynch"},
      {"TIDELANE_CLOSE", "later"},
      {"TIDELANE_FLUSH", "WAIT"},
      {"TIDELANE_LANES", "0"},
      {"TIDELANE_LANES", "65"},
      {"TIDELANE_LANES", "2x"},
      {"TIDELANE_LANES", "-1"},
      {"TIDELANE_ARENA", "1k"},
      {"TIDELANE_ARENA", "256MB"},
      {"TIDELANE_ARENA", "99999999999999999999"},
      {"TIDELANE_ARENA", "99999999999G"},
      {"TIDELANE_ARENA", " 1G"},
      {"TIDELANE_LINGER", "2h"},
      {"TIDELANE_LINGER", "11s"},
      {"TIDELANE_GAP", "2M"},
      {"TIDELANE_READAHEAD", "yes"},
      {"TIDELANE_RESERVE", "1"},
      {"TIDELANE_COPY_LIMIT", "none"},
      {"TIDELANE_JOURNAL", "on"},
      {"TIDELANE_JOURNAL_REQUIRED", "yes"},
      {"TIDELANE_JOURNAL_COMMITS", "0"},
      {"TIDELANE_JOURNAL_COMMITS", "0s"},
      {"TIDELANE_JOURNAL_COMMITS", "flush"},
      {"TIDELANE_JOURNAL_COMMITS", "5m"},
      {"TIDELANE_TRACE", "1"},
  };
  for (const auto& [name, value] : bad) {
    const std::string message = ErrorOf(name, value);
    EXPECT_NE(message.find(std::string(name) + "='" + value + "'"), std::string::npos) << message;
    EXPECT_NE(message.find("accepted are "), std::string::npos) << message;
  }
}

TEST_F(ConfigTest, UnknownNamesAreRefusedWithTheNearest) {
  const struct {
    const char* name;
    const char* nearest;
  } cases[] = {{"TIDELANE_LANE", "TIDELANE_LANES"},
               {"TIDELANE_AREAN", "TIDELANE_ARENA"},
               {"TIDELANE_READ_AHEAD", "TIDELANE_READAHEAD"},
               {"TIDELANE_close", "TIDELANE_CLOSE"},
               {"TIDELANE_SUMARY", "TIDELANE_SUMMARY"}};
  for (const auto& [name, nearest] : cases) {
    const std::string message = ErrorOf(name, "1");
    EXPECT_NE(message.find(std::string(name) + ":"), std::string::npos) << message;
    EXPECT_NE(message.find(std::string("the nearest is ") + nearest), std::string::npos) << message;
  }
}

TEST_F(ConfigTest, AFailureChangesNothing) {
  Set("TIDELANE_GAP", "17");
  Set("TIDELANE_LANES", "0");
  Config config;
  config.gap_bytes = 99;
  EXPECT_FALSE(LoadConfig(config).ok());
  EXPECT_EQ(config.gap_bytes, 99u);
}

TEST_F(ConfigTest, ScriptsMayKeepTheirOwnNames) {
  EXPECT_EQ(ErrorOf("TIDELANE_HDF5_ROOT", "/opt/hdf5"), "");
  EXPECT_EQ(ErrorOf("TIDELANE_TEST_SEED", "7"), "");
  EXPECT_EQ(ErrorOf("TIDELANE_BENCH_RUNS", "3"), "");
  EXPECT_NE(ErrorOf("TIDELANE_TESTS", "3"), "");
}

// Nobody who writes "off" means a file or a folder of that name.
TEST_F(ConfigTest, ReportsAreSwitchedByWordsToo) {
  Set("TIDELANE_HISTORY", "off");
  Set("TIDELANE_SUMMARY", "on");
  Set("TIDELANE_TRACE", "off");
  Config config;
  ASSERT_TRUE(LoadConfig(config).ok());
  EXPECT_EQ(config.history, "");
  EXPECT_EQ(config.summary, "1");
  EXPECT_EQ(config.trace, "");
  Set("TIDELANE_SUMMARY", "0");
  EXPECT_NE(ErrorOf("TIDELANE_TRACE", "on"), "");
}

TEST_F(ConfigTest, EmptyMeansUnsetAndZeroTurnsReportsOff) {
  Set("TIDELANE_MODE", "");
  Set("TIDELANE_SUMMARY", "0");
  Set("TIDELANE_TRACE", "0");
  Config config;
  ASSERT_TRUE(LoadConfig(config).ok());
  EXPECT_EQ(config.mode, Mode::kAuto);
  EXPECT_EQ(config.summary, "");
  EXPECT_EQ(config.trace, "");
}

TEST_F(ConfigTest, BreakExistsOnlyInBrokenBuilds) {
#ifdef TIDELANE_BREAK
  Set("TIDELANE_BREAK", "overlay");
  Config config;
  ASSERT_TRUE(LoadConfig(config).ok());
  EXPECT_EQ(config.test_break, "overlay");
  EXPECT_NE(ErrorOf("TIDELANE_BREAK", "everything"), "");
#else
  EXPECT_NE(ErrorOf("TIDELANE_BREAK", "overlay").find("no such setting"), std::string::npos);
#endif
}

TEST_F(ConfigTest, TheMoverHasARateStreamsAndANiceness) {
  Set("TIDELANE_TIER_RATE", "3M");
  Set("TIDELANE_TIER_STREAMS", "4");
  Set("TIDELANE_TIER_NICE", "0");
  Config config;
  ASSERT_TRUE(LoadConfig(config).ok());
  EXPECT_EQ(config.tier_rate, uint64_t{3} << 20);
  EXPECT_EQ(config.tier_streams, 4u);
  EXPECT_EQ(config.tier_nice, 0u);
  EXPECT_NE(ErrorOf("TIDELANE_TIER_RATE", "fast"), "");
  EXPECT_NE(ErrorOf("TIDELANE_TIER_STREAMS", "0"), "");
  EXPECT_NE(ErrorOf("TIDELANE_TIER_NICE", "20"), "");
}

TEST_F(ConfigTest, AMistypedWordIsToldWithWhatWasMeant) {
  EXPECT_EQ(ErrorOf("TIDELANE_CLOSE", "defered"),
            "cannot use TIDELANE_CLOSE='defered': accepted are wait, deferred, tier or "
            "tier_deferred; the nearest "
            "is deferred: Invalid argument (errno 22)");
  EXPECT_EQ(ErrorOf("TIDELANE_CLOSE", "later"),
            "cannot use TIDELANE_CLOSE='later': accepted are wait, deferred, tier or "
            "tier_deferred: Invalid argument "
            "(errno 22)");
  EXPECT_NE(ErrorOf("TIDELANE_READAHEAD", "ON").find("the nearest is on"), std::string::npos);
  EXPECT_NE(ErrorOf("TIDELANE_COPY_LIMIT", "unlimted").find("the nearest is unlimited"),
            std::string::npos);
}

TEST_F(ConfigTest, LaterSourcesOverrideEarlierOnes) {
  const std::string path = "config_test." + std::to_string(getpid()) + ".conf";
  std::ofstream(path) << "close = deferred\nflush = deferred\ngap = 1k\narena = 1M\nlanes = 3\n";
  Set("TIDELANE_CONFIG", path.c_str());
  Set("HDF5_ASYNC_MAX_MEM_MB", "2");
  Set("TIDELANE_GAP", "2k");
  Set("TIDELANE_FLUSH", "wait");
  Set("HDF5_VOL_CONNECTOR", "tidelane under_vol=0;under_info={};gap=3k;linger=1ms");
  Config config;
  const Status status = LoadConfig(config);
  std::remove(path.c_str());
  ASSERT_TRUE(status.ok()) << status.Message();
  const struct {
    const char* name;
    const char* value;
    std::string origin;
  } expected[] = {
      {"close", "deferred", path + ":1"},
      {"flush", "wait", "TIDELANE_FLUSH"},
      {"publish", "inplace", "default"},
      {"journal", "off", "default"},
      {"journal_required", "off", "default"},
      {"journal_commits", "1", "default"},
      {"mode", "auto", "default"},
      {"reserve", "off", "default"},
      {"copy_limit", "unlimited", "default"},
      {"gap", "3k", "HDF5_VOL_CONNECTOR"},
      {"consistency", "auto", "default"},
      {"collective_piece", "auto", "default"},
      {"arena", "2M", "HDF5_ASYNC_MAX_MEM_MB"},
      {"forked", "wait", "default"},
      {"lanes", "3", path + ":5"},
      {"linger", "1ms", "HDF5_VOL_CONNECTOR"},
      {"readahead", "auto", "default"},
      {"readahead_limit", "unlimited", "default"},
      {"deflate", "libdeflate", "default"},
      {"parallel_reads", "on", "default"},
      {"parallel_writes", "on", "default"},
      {"tier", "off", "default"},
      {"tier_size", "auto", "default"},
      {"tier_rate", "0", "default"},
      {"tier_streams", "2", "default"},
      {"tier_nice", "10", "default"},
      {"tier_drained", "off", "default"},
      {"history", "auto", "default"},
      {"summary", "0", "default"},
      {"trace", "0", "default"},
      {"config", path.c_str(), "TIDELANE_CONFIG"},
  };
  const std::vector<SettingValue> values = EffectiveSettings(config);
  ASSERT_EQ(values.size(), std::size(expected));
  for (size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(values[i].name, expected[i].name);
    EXPECT_EQ(values[i].value, expected[i].value) << values[i].name;
    EXPECT_EQ(values[i].origin, expected[i].origin) << values[i].name;
    EXPECT_EQ(values[i].note, "") << values[i].name;
  }
}

TEST_F(ConfigTest, AnUnreadableFileIsNamed) {
  Set("TIDELANE_CONFIG", "/nowhere/run.conf");
  Config config;
  EXPECT_EQ(LoadConfig(config).Message(),
            "cannot read the settings that TIDELANE_CONFIG='/nowhere/run.conf' names: No such file "
            "or directory (errno 2)");
}

TEST_F(ConfigTest, TheConnectorVariableIsReadOnlyWhereItNamesUs) {
  EXPECT_EQ(ErrorOf("HDF5_VOL_CONNECTOR", "pass_through under_vol=505;nonsense"), "");
  EXPECT_EQ(ErrorOf("HDF5_VOL_CONNECTOR", "async under_vol=0;under_info={};close=defered"),
            "cannot use close='defered' (HDF5_VOL_CONNECTOR): accepted are wait, deferred, tier or "
            "tier_deferred; the "
            "nearest is deferred: Invalid argument (errno 22)");
}

TEST_F(ConfigTest, OtherPeoplesVariables) {
  Set("HDF5_ASYNC_EXE_FCLOSE", "1");
  Set("HDF5_ASYNC_NOT_INVENTED_YET", "yes");
  Set("HDF5_ASYNC_DISABLE_DSET_GET", "");
  Set("HDF5_ASYNC_MAX_MEM_MB", "0");  // there: no limit of one's own
  Config config;
  ASSERT_TRUE(LoadConfig(config).ok());
  EXPECT_EQ(config.arena_bytes, DefaultArenaBytes());
  EXPECT_TRUE(config.origins.empty());
  ASSERT_EQ(config.without_effect.size(), 2u);
  const std::vector<SettingValue> values = EffectiveSettings(config);
  for (const SettingValue& value : std::span(values).last(2)) {
    const bool known = value.name == "HDF5_ASYNC_EXE_FCLOSE";
    EXPECT_EQ(value.value, known ? "1" : "yes");
    EXPECT_EQ(value.origin, value.name);
    EXPECT_TRUE(value.note.starts_with(known ? "nothing to do here" : "not known here"))
        << value.note;
  }
  EXPECT_EQ(ErrorOf("HDF5_ASYNC_MAX_MEM_MB", "lots"),
            "cannot use HDF5_ASYNC_MAX_MEM_MB='lots': accepted are a number of MiB: Invalid "
            "argument (errno 22)");
}

TEST_F(ConfigTest, DefaultArenaIsSharedBetweenRanks) {
  const uint64_t alone = DefaultArenaBytes();
  EXPECT_GE(alone, 16u << 20);
  EXPECT_LE(alone, uint64_t{4} << 30);
  setenv("OMPI_COMM_WORLD_LOCAL_SIZE", "999999", 1);
  EXPECT_EQ(DefaultArenaBytes(), 16u << 20);
  unsetenv("OMPI_COMM_WORLD_LOCAL_SIZE");
}

}  // namespace
}  // namespace tidelane
