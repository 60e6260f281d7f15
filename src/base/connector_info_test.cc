/// \file
/// Connector info strings: native in every spelling in use, settings after it, anything else refused.
#include "base/connector_info.h"

#include <gtest/gtest.h>

namespace tidelane {
namespace {

Status Load(std::string_view text) {
  Config config;
  return LoadConnectorInfo(text, "HDF5_VOL_CONNECTOR", config);
}

Config InForce() {
  Config config;
  config.arena_bytes = 256u << 20;
  config.gap_bytes = 1234;
  return config;
}

std::string ErrorOf(std::string_view text) {
  FileChoice choice;
  return ReadFileChoice(text, InForce(), choice).Message();
}

TEST(ConnectorInfoTest, NativeInEverySpellingInUse) {
  for (const char* text :
       {"", "  ", "\n", ";", "under_vol=0", "under_vol=0;", "under_vol=0;under_info={}",
        " under_vol=0;under_info={};", "under_vol=0;under_info={}\n"}) {
    FileChoice choice;
    EXPECT_TRUE(ReadFileChoice(text, InForce(), choice).ok()) << '"' << text << '"';
    EXPECT_EQ(choice.text, "") << '"' << text << '"';
    EXPECT_EQ(choice.settings, InForce()) << '"' << text << '"';
  }
}

TEST(ConnectorInfoTest, AnythingElseIsNot) {
  for (const char* text :
       {"under_vol=1", "under_vol=01", "under_vol=00", "under_vol=512;under_info={under_vol=0}",
        "under_vol=0;under_info={x}", "under_vol=0;under_info={", "under_vol=0 under_info={}",
        "under_vol=", "under_info={}", "under_vol=0;under_info={close=wait}"}) {
    EXPECT_NE(Load(text).Message().find("stacks on the native connector only"), std::string::npos)
        << '"' << text << '"';
  }
  EXPECT_FALSE(Load("x").ok());
  EXPECT_FALSE(Load("UNDER_VOL=0").ok());
  EXPECT_EQ(Load("under_vol=512;under_info={}").Message(),
            "cannot use 'under_vol=512' (HDF5_VOL_CONNECTOR): Tidelane stacks on the native "
            "connector only, so its info says \"under_vol=0;under_info={}\" or neither: Invalid "
            "argument (errno 22)");
}

TEST(ConnectorInfoTest, SettingsStandAloneOrAfterTheNativeOne) {
  for (const char* text : {"close=deferred;arena=256M", "under_vol=0;under_info={};close=deferred",
                           " close = deferred ; under_vol=0 ; under_info={} ;"}) {
    FileChoice choice;
    const Status status = ReadFileChoice(text, InForce(), choice);
    ASSERT_TRUE(status.ok()) << status.Message();
    EXPECT_TRUE(choice.settings.close_deferred) << text;
    EXPECT_EQ(choice.settings.gap_bytes, 1234u) << "what is not given is the process's";
    EXPECT_EQ(choice.text, "close=deferred") << text;
  }
}

TEST(ConnectorInfoTest, TheTextReadsTheSameAgain) {
  FileChoice choice;
  ASSERT_TRUE(ReadFileChoice("gap=64k;copy_limit=0;close=wait;mode=sync;reserve=on;flush=deferred",
                             InForce(), choice)
                  .ok());
  EXPECT_EQ(choice.text, "close=wait;flush=deferred;mode=sync;reserve=on;copy_limit=0;gap=64k");
  FileChoice again;
  ASSERT_TRUE(ReadFileChoice(choice.text, InForce(), again).ok());
  EXPECT_EQ(again.text, choice.text);
  EXPECT_EQ(again.settings, choice.settings);
}

TEST(ConnectorInfoTest, WhatIsTheProcesssCanOnlyBeRepeated) {
  EXPECT_EQ(ErrorOf("arena=256M;lanes=auto"), "success");
  EXPECT_EQ(ErrorOf("arena=64M"),
            "cannot use arena=64M (connector info): it is one for the whole process, and "
            "arena=256M has been in force since Tidelane was loaded; TIDELANE_ARENA or "
            "HDF5_VOL_CONNECTOR can give it before that: Invalid argument (errno 22)");
}

TEST(ConnectorInfoTest, MistakesSayWhereTheyStand) {
  EXPECT_EQ(ErrorOf("closing=deferred"),
            "cannot use the setting 'closing' (connector info): there is no such setting; the "
            "nearest is close: Invalid argument (errno 22)");
  EXPECT_EQ(ErrorOf("under_vol=0;under_info={};flush=never"),
            "cannot use flush='never' (connector info): accepted are wait or deferred: Invalid "
            "argument (errno 22)");
  EXPECT_EQ(ErrorOf("close=wait;close=deferred"),
            "cannot use the setting 'close' (connector info): it was given before (connector "
            "info): Invalid argument (errno 22)");
}

TEST(ConnectorInfoTest, OnlyOurOwnNamesAreOurs) {
  for (const char* ours : {"tidelane", " tidelane\t", "async under_vol=0;under_info={}"})
    EXPECT_TRUE(NamesOurConnector(ours)) << ours;
  EXPECT_FALSE(NamesOurConnector(nullptr));
  for (const char* other : {"", "native", "tidelane2 close=wait", "pass_through under_vol=0"})
    EXPECT_FALSE(NamesOurConnector(other)) << other;
}

TEST(ConnectorInfoTest, OnlyOurOwnInfoIsOurs) {
  EXPECT_EQ(OurConnectorInfo(nullptr), "");
  EXPECT_EQ(OurConnectorInfo(""), "");
  EXPECT_EQ(OurConnectorInfo("tidelane"), "");
  EXPECT_EQ(OurConnectorInfo("tidelane "), "");
  EXPECT_EQ(OurConnectorInfo(" tidelane  close=wait "), "close=wait");
  EXPECT_EQ(OurConnectorInfo("async\tunder_vol=0;under_info={}\nsecond line"),
            "under_vol=0;under_info={}");
  EXPECT_EQ(OurConnectorInfo("tidelane2 close=wait"), "");
  EXPECT_EQ(OurConnectorInfo("pass_through under_vol=0"), "");
}

}  // namespace
}  // namespace tidelane
