/// \file
/// Files of settings: what a line may look like, and mistakes told with their line.
#include "base/config_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <fstream>

#include <gtest/gtest.h>

namespace tidelane {
namespace {

std::string ErrorOf(std::string_view text) {
  Config config;
  return LoadConfigText(text, "run.conf", config).Message();
}

TEST(ConfigFileTest, LinesCommentsAndBlanks) {
  Config config;
  const Status status = LoadConfigText(
      "# for the night runs\n"
      "\n"
      "  close=deferred   # nobody reads before morning\n"
      "arena\t=\t256M\r\n"
      "summary = out#%p.json\n"
      "flush =\n"
      "lanes = 4",
      "run.conf", config);
  ASSERT_TRUE(status.ok()) << status.Message();
  EXPECT_TRUE(config.close_deferred);
  EXPECT_FALSE(config.flush_deferred) << "an empty value means: not set";
  EXPECT_EQ(config.arena_bytes, 256u << 20);
  EXPECT_EQ(config.summary, "out#%p.json");
  EXPECT_EQ(config.lanes, 4u);
  EXPECT_EQ(config.origins.at("lanes"), "run.conf:7");
  EXPECT_FALSE(config.origins.contains("flush"));
}

TEST(ConfigFileTest, MistakesAreToldWithTheirLine) {
  EXPECT_EQ(ErrorOf("\nclose = defered\n"),
            "cannot use close='defered' (run.conf:2): accepted are wait, deferred, tier or "
            "tier_deferred; the nearest "
            "is deferred: Invalid argument (errno 22)");
  EXPECT_EQ(ErrorOf("closes = wait"),
            "cannot use the setting 'closes' (run.conf:1): there is no such setting; the nearest "
            "is close: Invalid argument (errno 22)");
  EXPECT_EQ(ErrorOf("# x\n\ndeferred\n"),
            "cannot use 'deferred' (run.conf:3): expected name=value: Invalid argument (errno 22)");
  EXPECT_EQ(ErrorOf("gap=0\nflush=wait\ngap=1k"),
            "cannot use the setting 'gap' (run.conf:3): it was given before (run.conf:1): Invalid "
            "argument (errno 22)");
  EXPECT_EQ(ErrorOf("config = other.conf"),
            "cannot use the setting 'config' (run.conf:1): only the environment variable "
            "TIDELANE_CONFIG can give it: Invalid argument (errno 22)");
  EXPECT_NE(ErrorOf("TIDELANE_CLOSE = wait").find("there is no such setting"), std::string::npos);
}

TEST(ConfigFileTest, WhatIsNoFileOfSettingsIsRefused) {
  Config config;
  EXPECT_EQ(LoadConfigFile("/", config).code(), EISDIR);
  EXPECT_EQ(LoadConfigFile("/dev/zero", config).code(), EFBIG);
  const std::string path = "config_file_test." + std::to_string(getpid());
  std::ofstream(path) << "lanes = 5\n";
  EXPECT_TRUE(LoadConfigFile(path, config).ok());
  EXPECT_EQ(config.lanes, 5u);
  std::remove(path.c_str());
}

}  // namespace
}  // namespace tidelane
