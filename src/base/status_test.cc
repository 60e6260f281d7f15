/// \file
/// Status: what a person reads.
#include "base/status.h"

#include <cerrno>

#include <gtest/gtest.h>

namespace tidelane {
namespace {

TEST(StatusTest, DefaultIsSuccess) {
  const Status status;
  EXPECT_TRUE(status.ok());
  EXPECT_EQ(status.code(), 0);
  EXPECT_EQ(status.Message(), "success");
}

TEST(StatusTest, NamesOperationBytesFileAndReason) {
  const Status status = Status::Failed(ENOSPC, "write").At("run.h5", 4096, 1048576);
  EXPECT_FALSE(status.ok());
  EXPECT_EQ(status.path(), "run.h5");
  EXPECT_EQ(status.Message(),
            "cannot write 1048576 bytes at address 4096 of 'run.h5': No space left on device "
            "(errno 28)");
}

TEST(StatusTest, LeavesOutWhatItDoesNotKnow) {
  EXPECT_EQ(Status::Failed(ENOENT, "open").At("a.h5", 0, 0).Message(),
            "cannot open 'a.h5': No such file or directory (errno 2)");
  EXPECT_EQ(Status::Failed(EINVAL, "start lanes").Message(),
            "cannot start lanes: Invalid argument (errno 22)");
  EXPECT_EQ(Status::Failed(EIO, "read").At("", 8, 16).Message(),
            "cannot read 16 bytes at address 8: Input/output error (errno 5)");
}

TEST(StatusTest, CopiesSayTheSameAndAreTheirOwn) {
  Status status = Status::Failed(EIO, "read").At("a.h5", 8, 16);
  const Status copy = status;
  EXPECT_EQ(copy.Message(), status.Message());
  Status assigned;
  assigned = copy;
  status = Status();
  EXPECT_TRUE(status.ok());
  EXPECT_EQ(assigned.path(), "a.h5");
  EXPECT_EQ(assigned.Message(), copy.Message());
  assigned = status;
  EXPECT_TRUE(assigned.ok());
  EXPECT_EQ(assigned.path(), "");
}

}  // namespace
}  // namespace tidelane
