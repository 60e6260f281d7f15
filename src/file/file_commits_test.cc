// What a close commits, and what it does not.
#include "file/file_commits.h"

#include <cerrno>
#include <memory>
#include <utility>

#include <gtest/gtest.h>

#include "device/fault_device.h"
#include "file/file_fixture.h"

namespace tidelane {
namespace {

// The file itself, and how often it was asked to be a commit.
class CommittingStore final : public Store {
 public:
  CommittingStore(const std::shared_ptr<Device>& device, int& finished)
      : direct_(DirectStoreOn(device)), finished_(finished) {}

  int Write(Run& run) override { return direct_->Write(run); }
  int WriteBytes(Run& run, const void* bytes) override { return direct_->WriteBytes(run, bytes); }
  int Read(uint64_t address, void* buffer, size_t n) override {
    return direct_->Read(address, buffer, n);
  }
  uint64_t size() const override { return direct_->size(); }
  int SetSize(uint64_t size) override { return direct_->SetSize(size); }
  int Reserve(uint64_t address, uint64_t size) override { return direct_->Reserve(address, size); }
  void EndReservations(uint64_t& found) override { direct_->EndReservations(found); }
  int Version(FileVersion& version) override { return direct_->Version(version); }
  bool memory_speed() const override { return direct_->memory_speed(); }
  Status Publish(Publishing when) override { return direct_->Publish(when); }
  void Withhold(Withholding why) override { direct_->Withhold(why); }
  int Close() override { return direct_->Close(); }
  bool commits() const override { return true; }
  int Finish() override { return ++finished_, 0; }

 private:
  const std::unique_ptr<Store> direct_;
  int& finished_;
};

class FileCommitsTest : public testing::Test {
 protected:
  std::shared_ptr<File> Open() {
    FileEnvironment environment{.config = config_, .arena = arena_, .lanes = lanes_};
    environment.make_store = [this](const std::shared_ptr<Device>& device) {
      return std::make_unique<CommittingStore>(device, finished_);
    };
    return std::make_shared<File>(std::move(environment),
                                  MakeMemoryDevice(std::make_shared<MemoryFile>()), FileIdentity{},
                                  "commits.h5", true);
  }

  Config config_;
  Arena arena_{1u << 20};
  Lanes lanes_{0};
  int finished_ = 0;
};

TEST_F(FileCommitsTest, ACloseIsACommit) {
  EXPECT_TRUE(Open()->closing().CloseDevice().ok());
  EXPECT_EQ(finished_, 1);
}

TEST_F(FileCommitsTest, WhatHdf5CouldNotWriteIsNone) {
  const auto file = Open();
  file->closing().SetRefused(true);
  EXPECT_EQ(file->closing().CloseDevice().code(), EIO);
  EXPECT_EQ(finished_, 0);
}

TEST_F(FileCommitsTest, WhatItCouldWriteAtTheSecondTryIs) {
  const auto file = Open();
  file->closing().SetRefused(true);
  file->closing().SetRefused(false);
  EXPECT_TRUE(file->closing().CloseDevice().ok());
  EXPECT_EQ(finished_, 1);
}

}  // namespace
}  // namespace tidelane
