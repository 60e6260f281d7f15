/// \file
/// A journalled store of one small file on storage for tests (power_disk.h), and what others find of it.
///
/// Invariant: `committed_` is what the last commit saw.
/// Thread safety: one thread, but for what its tests start.
#pragma once

#include <algorithm>
#include <cerrno>
#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "log/format.h"
#include "log/logged_store.h"
#include "log/power_disk.h"
#include "log/superblocks.h"

namespace tidelane {

using log::PowerDisk;
using Bytes = PowerDisk::Bytes;

inline constexpr uint64_t kEnd = 4000;
inline const std::string kName = "a.h5";
inline const std::string kFirst = log::SegmentName(kName, 1);
inline const std::string kSecond = log::SegmentName(kName, 2);

class LoggedStoreTest : public testing::Test {
 protected:
  LoggedStoreTest() {
    Bytes bytes(kEnd, std::byte{'o'});
    Put(bytes, SuperblockFor(kEnd));
    disk_->Add(kName, bytes);
    committed_ = bytes;
  }

  static void Put(Bytes& bytes, const Bytes& front) { std::ranges::copy(front, bytes.begin()); }
  static Bytes SuperblockFor(uint64_t end) {
    const Superblock superblock = Superblock(0, log::SuperblockOfVersion(0)).Unmarked(end);
    return {superblock.bytes().begin(), superblock.bytes().end()};
  }
  // Over a copy of the disk, or this one.
  std::unique_ptr<LoggedStore> StoreOn(const std::shared_ptr<PowerDisk>& disk, bool writable,
                                       Lanes* lanes = nullptr) const {
    return std::make_unique<LoggedStore>(LoggedFile{
        .file = disk->Open(kName),
        .writable = writable,
        .journal = journal_,
        .log = {
            .place = {.folder = disk->MakeFolder(), .name = kName, .segment_bytes = segment_bytes_},
            .path = "/there/" + kName,
            .commits = commits_,
            .lanes = lanes,
            .reuse_bytes = reuse_bytes_}});
  }
  void Open(Lanes* lanes) {
    store_ = StoreOn(disk_, true, lanes);
    ASSERT_TRUE(store_->Settle().ok());
  }
  int Write(uint64_t address, uint64_t size, char what) {
    const std::string bytes(size, what);
    tidelane::Run run;
    run.begin = address;
    run.end = address + size;
    return store_->WriteBytes(run, bytes.data());
  }
  int WriteSuperblock() {
    const Bytes bytes = SuperblockFor(store_->size());
    store_->SetSuperblock(0, bytes.size());
    tidelane::Run run;
    run.begin = 0;
    run.end = bytes.size();
    return store_->WriteBytes(run, bytes.data());
  }
  int Commit() {
    const int error = store_->Commit(Committing::kNow);
    committed_ = Contents(*store_);
    return error;
  }
  static Bytes Contents(Store& store) {
    Bytes bytes(store.size());
    EXPECT_EQ(store.Read(0, bytes.data(), bytes.size()), 0);
    return bytes;
  }
  // What somebody finds who opens it after this program's end.
  static Status Recovered(const std::shared_ptr<PowerDisk>& disk, Bytes& bytes,
                          const LoggedStoreTest& test) {
    const auto store = test.StoreOn(disk, true);
    Status status = store->Settle();
    if (status.ok()) bytes = Contents(*store);
    return status;
  }
  void ExpectRefused(const std::shared_ptr<PowerDisk>& disk, int code) {
    for (const bool writable : {true, false}) {
      const uint64_t changes = disk->changes();
      const auto store = StoreOn(disk, writable);
      const Status status = store->Settle();
      EXPECT_EQ(status.code(), code) << status.Message();
      EXPECT_NE(status.Message().find(kName), std::string::npos);
      EXPECT_EQ(disk->changes(), changes);
    }
  }
  // Another disk, with other bytes in one of its files.
  std::shared_ptr<PowerDisk> Changed(const std::string& name, Bytes bytes) const {
    const auto disk = std::make_shared<PowerDisk>(true);
    for (const std::string& other : disk_->Names())
      disk->Add(other, other == name ? std::move(bytes) : disk_->Contents(other));
    return disk;
  }
  std::shared_ptr<PowerDisk> Without(const std::string& name) const {
    const auto disk = Changed({}, {});
    EXPECT_EQ(disk->MakeFolder()->Remove(name, *disk->Open(name)), 0);
    return disk;
  }

  const std::shared_ptr<PowerDisk> disk_ = std::make_shared<PowerDisk>(true);
  Lanes unthreaded_{0};  // commits move nothing before a segment is full
  JournalCommits commits_;
  Journal journal_ = Journal::kProcess;
  uint64_t segment_bytes_ = uint64_t{1} << 20;
  uint64_t reuse_bytes_ = uint64_t{1} << 20;
  std::unique_ptr<LoggedStore> store_;
  Bytes committed_;
};

}  // namespace tidelane
