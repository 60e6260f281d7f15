/// \file
/// Tables of drivers: what there is before any is registered, and that the last one counts.
#include "h5/driver.h"

#include <gtest/gtest.h>

#include "h5/parallel_driver.h"
#include "h5/parallel_file.h"

namespace tidelane::h5 {
namespace {

TEST(DriverTableTest, WithoutADriverNothingIsOpen) {
  EXPECT_FALSE(Driver().has_files(0));
  EXPECT_EQ(Driver().file_with_serial(0, 1), nullptr);
  EXPECT_FALSE(ParallelDriver().has_files(0));
  EXPECT_EQ(ParallelDriver().file_with_serial(0, 1), nullptr);
  ParallelDriver().note_opened_again(0, "a.h5");
}

TEST(DriverTableTest, TheTableThatWasRegisteredLastCounts) {
  const DriverTable& before = Driver();
  static const DriverTable kWithFiles = [&] {
    DriverTable table = before;
    table.has_files = [](int slot) { return slot == 1; };
    return table;
  }();
  RegisterDriver(kWithFiles);
  EXPECT_TRUE(Driver().has_files(1));
  EXPECT_FALSE(Driver().has_files(0));
  RegisterDriver(before);
  EXPECT_EQ(&Driver(), &before);
}

}  // namespace
}  // namespace tidelane::h5
