/// \file
/// Incidents: first and last words, bounded lists.
#include "base/incidents.h"

#include <cerrno>

#include <gtest/gtest.h>

#include "base/counters.h"

namespace tidelane {
namespace {

class IncidentsTest : public testing::Test {
 protected:
  void SetUp() override { ResetIncidentsAfterFork(); }
};

TEST_F(IncidentsTest, TheFirstAndTheLastErrorAreKept) {
  EXPECT_EQ(ReadIncidents().first_error, "");
  const uint64_t errors = Read(Counter::kErrors);
  for (const uint64_t address : {1, 2, 3}) {
    NoteError(Status::Failed(ENOSPC, "write").At("run.h5", address, 10));
  }
  EXPECT_EQ(Read(Counter::kErrors) - errors, 3u);
  const Incidents incidents = ReadIncidents();
  EXPECT_NE(incidents.first_error.find("address 1 of"), std::string::npos) << incidents.first_error;
  EXPECT_NE(incidents.last_error.find("address 3 of"), std::string::npos) << incidents.last_error;
}

TEST_F(IncidentsTest, AFileCountsOnce) {
  NoteLeftOpen("a.h5");
  NoteLeftOpen("b.h5");
  NoteLeftOpen("a.h5");
  EXPECT_EQ(ReadIncidents().left_open.count(), 2u);
  EXPECT_EQ(ReadIncidents().not_stored.count(), 0u);
}

TEST_F(IncidentsTest, WhatWasStoredInTheEndIsNotNamed) {
  NoteNotStored("a.h5");
  NoteNotStored("b.h5");
  ForgetNotStored("a.h5");
  ForgetNotStored("never noted");
  EXPECT_EQ(ReadIncidents().not_stored.listed(), std::vector<std::string>{"b.h5"});
  EXPECT_EQ(ReadIncidents().not_stored.count(), 1u);
}

TEST_F(IncidentsTest, OfManyFilesAFewAreNamed) {
  for (int i = 0; i < 1000; ++i) NoteNotStored("file" + std::to_string(i));
  const Incidents incidents = ReadIncidents();
  EXPECT_EQ(incidents.not_stored.count(), 1000u);
  ASSERT_EQ(incidents.not_stored.listed().size(), FileNames::kListed);
  EXPECT_EQ(incidents.not_stored.listed().front(), "file0");
}

}  // namespace
}  // namespace tidelane
