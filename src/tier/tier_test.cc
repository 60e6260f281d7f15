/// \file
/// Entries and markers, and what becomes of files that wait in a tier: brought home, renamed, copied, deleted, in use.
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/counters.h"
#include "device/claim.h"
#include "device/fault_device.h"
#include "device/huge_pages.h"
#include "lane/lanes.h"
#include "log/format.h"
#include "log/logged_store.h"
#include "log/superblocks.h"
#include "tier/drain.h"
#include "tier/entry.h"
#include "tier/find_log.h"
#include "tier/pace.h"
#include "tier/place.h"
#include "tier/spares.h"
#include "tier/survival.h"
#include "tier/tier_folder.h"

namespace tidelane::tier {
namespace {

namespace fs = std::filesystem;
constexpr uint64_t kSpareBytes = uint64_t{64} << 20;

class TierTest : public testing::Test {
 protected:
  TierTest() {
    std::string folder = testing::TempDir() + "tidelane_tier_XXXXXX";
    folder_ = mkdtemp(folder.data());
    signal(SIGIO, SIG_IGN);  // leases are looked at
    EXPECT_TRUE(Place::Open(folder_, true, *place_).ok());
  }
  ~TierTest() override { fs::remove_all(folder_); }

  std::string path(const std::string& name = "a.h5") const { return folder_ + '/' + name; }
  DirectoryEntry At(const std::string& name) const {
    DirectoryEntry entry;
    EXPECT_EQ(DirectoryEntry::Find(path(name).c_str(), true, entry), 0);
    return entry;
  }
  // A program makes the file, of `size` bytes that are all `what`, and closes it into the tier. Its entry's name.
  std::string Closed(const std::string& name, char what, uint64_t size = 10000) {
    std::string entry;
    LoggedStore store(Made(name, lanes_, nullptr, entry));
    EXPECT_TRUE(store.Settle().ok());
    WriteElements(store, what, size);
    EXPECT_EQ(WriteSuperblock(store, size), 0);
    EXPECT_EQ(store.Finish(), 0);
    EXPECT_EQ(store.Close(), 0);
    return entry;
  }
  // What its store is made of; `plan`: of faults of its file.
  LoggedFile Made(const std::string& name, Lanes& lanes, FaultPlan plan, std::string& made) {
    const int fd = open(path(name).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    struct stat found{};
    EXPECT_EQ(fstat(fd, &found), 0);
    const Entry entry = Entry::For(path(name), IdentityIn(found));
    made = entry.name;
    LoggedFile parts;
    std::unique_ptr<Device> file = MakePosixDevice(fd);
    if (plan) file = MakeFaultDevice(std::move(file), std::move(plan));
    parts.file = std::move(file);
    parts.writable = true;
    parts.journal = Journal::kProcess;
    parts.log.place.folder =
        MakeTierFolder(place_, entry, std::make_shared<DirectoryEntry>(At(name)), &lanes);
    parts.log.place.name = entry.name;
    parts.log.path = path(name);
    parts.log.place.all = true;
    parts.log.place.in_memory = place_->in_memory;
    parts.log.lanes = &lanes;
    parts.left = [this](const std::string&, int handed) {
      if (hands_over_) handed_ = Descriptor(dup(handed));
    };
    return parts;
  }
  // The next program opens the file for writing, and goes on with the log of this entry.
  std::unique_ptr<LoggedStore> OpenedAgain(const std::string& name, const std::string& entry) {
    std::string unused;
    LoggedFile parts = Made(name, lanes_, nullptr, unused);
    parts.find_left = [this, name, entry](const Superblock&, LeftLog& left) {
      Entry found;
      EXPECT_EQ(Entry::Read(*place_, entry, found), 0);
      left.folder =
          FindTierFolder(place_, found, std::make_shared<DirectoryEntry>(At(name)), &lanes_);
      left.name = entry;
      left.goes_on = true;
      return Status();
    };
    auto store = std::make_unique<LoggedStore>(std::move(parts));
    const Status status = store->Settle();
    EXPECT_TRUE(status.ok()) << status.Message();
    return store;
  }
  static void Close(LoggedStore& store) {
    EXPECT_EQ(store.Finish(), 0);
    EXPECT_EQ(store.Close(), 0);
  }
  static char At(LoggedStore& store, uint64_t address) {
    char found = 0;
    EXPECT_EQ(store.Read(address, &found, 1), 0);
    return found;
  }
  static std::vector<std::byte> FrontOf(uint64_t size) {
    return BytesOf(Superblock(0, log::SuperblockOfVersion(0)).Unmarked(size));
  }
  static void WriteElements(LoggedStore& store, char what, uint64_t size) {
    const uint64_t front = FrontOf(size).size();
    store.SetSuperblock(0, front);
    const std::string bytes(size - front, what);
    EXPECT_EQ(Write(store, front, bytes.data(), bytes.size()), 0);
  }
  static int WriteSuperblock(LoggedStore& store, uint64_t size) {
    const std::vector<std::byte> front = FrontOf(size);
    return Write(store, 0, front.data(), front.size());
  }
  static std::vector<std::byte> BytesOf(const Superblock& superblock) {
    return {superblock.bytes().begin(), superblock.bytes().end()};
  }
  static int Write(Store& store, uint64_t address, const void* bytes, uint64_t size) {
    tidelane::Run run;
    run.begin = address;
    run.end = address + size;
    return store.WriteBytes(run, bytes);
  }
  std::string Contents(const std::string& name) const {
    std::ifstream file(path(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  bool IsMarked(const std::string& name) const {
    const std::unique_ptr<Device> file =
        MakePosixDevice(open(path(name).c_str(), O_RDONLY | O_CLOEXEC));
    Superblock superblock;
    EXPECT_EQ(Superblock::Find(*file, superblock), 0);
    return superblock.marked();
  }
  void ExpectHome(const std::string& name, char what, uint64_t size = 10000) const {
    EXPECT_FALSE(IsMarked(name));
    const std::string contents = Contents(name);
    EXPECT_EQ(contents.size(), size);
    EXPECT_EQ(contents.find_first_not_of(what, 200), std::string::npos);
  }
  Drained Drain(const std::string& name, uint64_t spares = 0, Pace* pace = nullptr,
                Interrupted* interrupted = nullptr) {
    Entry entry;
    if (const int error = Entry::Read(*place_, name, entry); error != 0) {
      ADD_FAILURE() << "entry " << name << ": " << error;
      return Drained::kFailed;
    }
    Status why;
    const Drained drained = tier::Drain(*place_, entry, handed_, spares, why, pace, interrupted);
    EXPECT_EQ(drained == Drained::kFailed, !why.ok() && why.code() != EWOULDBLOCK) << why.Message();
    return drained;
  }
  // Without them nobody knows that nobody reads a segment, and none is kept.
  bool HasLeases() const {
    const Descriptor file(open(path("leased").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    return fcntl(file.get(), F_SETLEASE, F_WRLCK) == 0;
  }
  // But for spares.
  std::vector<std::string> InTier() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(place_->path)) {
      const std::string name = entry.path().filename();
      if (!name.starts_with("spare.")) names.push_back(name);
    }
    std::ranges::sort(names);
    return names;
  }

  std::string folder_;
  const std::shared_ptr<Place> place_ = std::make_shared<Place>();
  Lanes lanes_{0};  // they move nothing before the file is closed
  bool hands_over_ = false;
  Descriptor handed_;
};

TEST_F(TierTest, APlaceIsTheUsersOwn) {
  Place place;
  EXPECT_EQ(fs::status(place_->path).permissions(), fs::perms::owner_all);
  fs::permissions(place_->path, fs::perms::others_read, fs::perm_options::add);
  EXPECT_EQ(Place::OpenAt(place_->path, place).code(), EPERM);
  fs::create_directory_symlink(place_->path, path("link"));
  EXPECT_NE(Place::OpenAt(path("link"), place).code(), 0);
}

TEST_F(TierTest, EntriesAndMarkersSayWhatWasWritten) {
  const Entry entry = Entry::For(path("odd\nname.h5"), {1, 2});
  ASSERT_EQ(entry.Write(*place_), 0);
  Entry read;
  ASSERT_EQ(Entry::Read(*place_, entry.name, read), 0);
  EXPECT_EQ(read.path, entry.path);
  EXPECT_EQ(read.file, entry.file);
  EXPECT_EQ(Entry::AllIn(*place_), std::vector<std::string>{entry.name});
  const Marker marker{
      .host = "h", .boot = "b", .entry = entry.name, .tier = "/t", .in_memory = true};
  ASSERT_EQ(marker.Write(At("a.h5")), 0);
  Marker found;
  ASSERT_EQ(Marker::Read(At("a.h5"), found), 0);
  EXPECT_EQ(found.tier, "/t");
  EXPECT_TRUE(found.in_memory);
  Marker::Remove(At("a.h5"), "0123456789abcdef");  // not its own
  EXPECT_TRUE(fs::exists(path("a.h5-tier")));
  Marker::Remove(At("a.h5"), entry.name);
  EXPECT_FALSE(fs::exists(path("a.h5-tier")));
  std::ofstream(path("a.h5-tier")) << "";
  Marker::Remove(At("a.h5"), entry.name);
  EXPECT_FALSE(fs::exists(path("a.h5-tier")));
}

TEST_F(TierTest, ALaneWritesTheMarkerWhileTheProgramWritesElements) {
  Lanes lanes(1);
  std::string entry;
  LoggedStore store(Made("a.h5", lanes, nullptr, entry));
  ASSERT_TRUE(store.Settle().ok());
  WriteElements(store, 'a', 10000);
  Marker found;
  for (int i = 0; i < 5000 && Marker::Read(At("a.h5"), found) != 0; ++i) usleep(1000);
  EXPECT_EQ(found.entry, entry);
  EXPECT_FALSE(IsMarked("a.h5"));
  ASSERT_EQ(WriteSuperblock(store, 10000), 0);
  ASSERT_EQ(store.Finish(), 0);
  ASSERT_EQ(store.Close(), 0);
}

TEST_F(TierTest, AFileIsNotMarkedBeforeItsMarkerIsThere) {
  fs::create_directory(path("a.h5-tier"));  // in its place
  std::string entry;
  LoggedStore store(Made("a.h5", lanes_, nullptr, entry));
  ASSERT_TRUE(store.Settle().ok());
  WriteElements(store, 'a', 10000);
  EXPECT_EQ(WriteSuperblock(store, 10000), EISDIR);
  EXPECT_FALSE(IsMarked("a.h5"));
  fs::remove(path("a.h5-tier"));
  EXPECT_EQ(WriteSuperblock(store, 10000), 0);
  EXPECT_TRUE(IsMarked("a.h5"));
  ASSERT_EQ(store.Finish(), 0);
  ASSERT_EQ(store.Close(), 0);
  EXPECT_EQ(Drain(entry), Drained::kYes);
  ExpectHome("a.h5", 'a');
}

// Without it nobody would look for the log.
TEST_F(TierTest, AMarkThatStorageRefusesIsWrittenWhenTheProgramTriesAgainOrCommits) {
  for (const bool tries_again : {true, false}) {
    int refused = 0;
    const FaultPlan plan = [&](FaultPoint point, uint64_t, uint64_t) {
      return Fault{point == FaultPoint::kWrite && refused++ == 0 ? EIO : 0};
    };
    const std::string name = tries_again ? "a.h5" : "b.h5";
    std::string entry;
    LoggedStore store(Made(name, lanes_, plan, entry));
    ASSERT_TRUE(store.Settle().ok());
    WriteElements(store, 'a', 10000);
    EXPECT_EQ(WriteSuperblock(store, 10000), EIO);
    if (tries_again) {
      EXPECT_EQ(WriteSuperblock(store, 10000), 0);
    }
    ASSERT_EQ(store.Finish(), 0);
    EXPECT_TRUE(IsMarked(name));
    ASSERT_EQ(store.Close(), 0);
    EXPECT_EQ(Drain(entry), Drained::kYes);
    ExpectHome(name, 'a');
  }
}

TEST_F(TierTest, WhatIsNoEntryIsNone) {
  const std::string name = "0123456789abcdef";
  Entry entry;
  EXPECT_EQ(Entry::Read(*place_, "../../etc/passwd", entry), EINVAL);
  EXPECT_EQ(Entry::Read(*place_, name, entry), ENOENT);
  const std::string right = "tidelane tier 1\ndevice 1\ninode 2\npath /a\n";
  for (const std::string& text :
       {std::string(), std::string("tidelane tier 2\n"), right.substr(0, right.size() - 1),
        std::string("tidelane tier 1\ndevice x\ninode 2\npath /a\n"),
        std::string("tidelane tier 1\ndevice 1\ninode 2\npath a\n"), std::string(100000, 'x')}) {
    std::ofstream(place_->path + '/' + name + ".file") << text;
    EXPECT_NE(Entry::Read(*place_, name, entry), 0) << text;
  }
  std::ofstream(place_->path + '/' + name + ".file") << right;
  EXPECT_EQ(Entry::Read(*place_, name, entry), 0);
  std::ofstream(place_->path + "/f.file~") << "half";
  Entry::RemoveDrafts(*place_);
  EXPECT_EQ(InTier(), std::vector<std::string>{name + ".file"});
}

TEST_F(TierTest, AClosedFileWaitsMarkedAndComesHome) {
  const std::string name = Closed("a.h5", 'x');
  EXPECT_TRUE(IsMarked("a.h5"));
  EXPECT_LT(fs::file_size(path()), 200);
  EXPECT_TRUE(fs::exists(path("a.h5-tier")));
  EXPECT_EQ(Drain(name), Drained::kYes);
  ExpectHome("a.h5", 'x');
  EXPECT_EQ(InTier(), std::vector<std::string>());
  EXPECT_FALSE(fs::exists(path("a.h5-tier")));
}

TEST_F(TierTest, ItIsFoundByItsMarkWhateverItsName) {
  const std::string name = Closed("a.h5", 'x');
  fs::rename(path(), path("b.h5"));
  const std::unique_ptr<Device> file =
      MakePosixDevice(open(path("b.h5").c_str(), O_RDONLY | O_CLOEXEC));
  Superblock marked;
  ASSERT_EQ(Superblock::Find(*file, marked), 0);
  std::optional<FoundLog> found;
  ASSERT_TRUE(FindLog(At("b.h5"), path("b.h5"), marked, folder_, found).ok());
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->entry, name);
  // A copy has the mark, and must not have the log.
  fs::copy_file(path("b.h5"), path("c.h5"));
  ASSERT_TRUE(FindLog(At("c.h5"), path("c.h5"), marked, folder_, found).ok());
  EXPECT_FALSE(found.has_value());
  EXPECT_EQ(Drain(name), Drained::kYes);
  ExpectHome("b.h5", 'x');
  EXPECT_TRUE(IsMarked("c.h5"));
  EXPECT_FALSE(fs::exists(path("a.h5-tier")));
}

TEST_F(TierTest, TheErrorSaysWhoseMemoryHasIt) {
  const std::string name = Closed("a.h5", 'x');
  Marker marker;
  ASSERT_EQ(Marker::Read(At("a.h5"), marker), 0);
  const std::unique_ptr<Device> file = MakePosixDevice(open(path().c_str(), O_RDONLY | O_CLOEXEC));
  Superblock marked;
  ASSERT_EQ(Superblock::Find(*file, marked), 0);
  fs::remove_all(place_->path);
  std::optional<FoundLog> found;
  marker.host = "elsewhere";
  ASSERT_EQ(marker.Write(At("a.h5")), 0);
  const Status other = FindLog(At("a.h5"), path(), marked, "", found);
  EXPECT_EQ(other.code(), EXDEV);
  EXPECT_NE(other.Message().find("elsewhere"), std::string::npos);
  marker.host = HostName();
  marker.boot = "another";
  marker.in_memory = true;
  ASSERT_EQ(marker.Write(At("a.h5")), 0);
  EXPECT_NE(FindLog(At("a.h5"), path(), marked, "", found).Message().find("started again"),
            std::string::npos);
}

TEST_F(TierTest, AnotherFileByItsNameIsLeftAlone) {
  const std::string name = Closed("a.h5", 'x');
  std::ofstream(path("new")) << "another";
  fs::rename(path("new"), path());
  EXPECT_EQ(Drain(name), Drained::kLost);
  EXPECT_EQ(Contents("a.h5"), "another");
  EXPECT_EQ(InTier().size(), 2);
}

TEST_F(TierTest, AFileThatWasCutToNothingIsNotBroughtBack) {
  const std::string name = Closed("a.h5", 'x');
  fs::resize_file(path(), 0);
  EXPECT_EQ(Drain(name), Drained::kUseless);
  EXPECT_EQ(Contents("a.h5"), "");
  EXPECT_EQ(InTier(), std::vector<std::string>());
}

TEST_F(TierTest, AFileThatCannotBeOpenedIsNotTakenForOneThatIsGone) {
  const std::string name = Closed("a.h5", 'x');
  Entry entry;
  ASSERT_EQ(Entry::Read(*place_, name, entry), 0);
  entry.path = folder_ + '/' + std::string(1000, 'x') + "/a.h5";  // no permission would do for root
  Status why;
  EXPECT_EQ(tier::Drain(*place_, entry, {}, 0, why), Drained::kFailed);
  EXPECT_EQ(why.code(), ENAMETOOLONG);
  EXPECT_EQ(Drain(name), Drained::kYes);
}

TEST_F(TierTest, ALogWithoutARightHeaderIsNotTakenForAnothersOne) {
  const std::string name = Closed("a.h5", 'x');
  const std::string log = place_->path + '/' + log::SegmentName(name, 1);
  std::fstream file(log, std::ios::in | std::ios::out | std::ios::binary);
  char first = 0;
  file.get(first);
  file.seekp(0).put('?').flush();
  EXPECT_EQ(Drain(name), Drained::kFailed);
  file.seekp(0).put(first).flush();
  EXPECT_EQ(Drain(name), Drained::kYes);
  ExpectHome("a.h5", 'x');
}

TEST_F(TierTest, TheLogIsNotWrittenOnceMoreWhereItLiesInMemory) {
  const auto written = [] {  // by this process
    std::ifstream file("/proc/self/io");
    std::string word;
    uint64_t bytes = 0;
    while (file >> word && word != "wchar:") {
    }
    file >> bytes;
    return bytes;
  };
  constexpr uint64_t kSize = 4'000'000;
  for (const bool in_memory : {false, true}) {
    const std::string name = Closed("a.h5", 'x', kSize);
    place_->in_memory = in_memory;
    const uint64_t before = written();
    EXPECT_EQ(Drain(name), Drained::kYes);
    const uint64_t bytes = written() - before;
    if (bytes == 0) GTEST_SKIP() << "nobody counts here what is written";
    EXPECT_EQ(bytes < kSize * 3 / 2, in_memory) << bytes;
    ExpectHome("a.h5", 'x', kSize);
    fs::remove(path());
  }
}

TEST_F(TierTest, WhoWasHandedTheFileKnowsThatItIsGoneOrElsewhere) {
  hands_over_ = true;
  const std::string deleted = Closed("a.h5", 'x');
  fs::remove(path());
  EXPECT_EQ(Drain(deleted), Drained::kUseless);
  const std::string moved = Closed("b.h5", 'y');
  fs::create_directory(path("other"));
  fs::rename(path("b.h5"), path("other/c.h5"));
  EXPECT_EQ(Drain(moved), Drained::kYes);
  ExpectHome("other/c.h5", 'y');
  EXPECT_EQ(InTier(), std::vector<std::string>());
}

TEST_F(TierTest, WhatSomebodyHasIsLeftAlone) {
  const std::string name = Closed("a.h5", 'x');
  {
    const Descriptor writer(open(path().c_str(), O_RDWR | O_CLOEXEC));
    ASSERT_EQ(Claim(writer.get()), 0);
    EXPECT_EQ(Drain(name), Drained::kInUse);
    // His claim is his still.
    const Descriptor other(open(path().c_str(), O_RDWR | O_CLOEXEC));
    EXPECT_TRUE(IsClaimed(other.get()));
  }
  EXPECT_TRUE(IsMarked("a.h5"));
  EXPECT_EQ(Drain(name), Drained::kYes);
  ExpectHome("a.h5", 'x');
}

TEST_F(TierTest, TheNextProgramGoesOnWithTheLog) {
  const std::string entry = Closed("a.h5", 'x');
  const uint64_t continued = tidelane::Read(Counter::kLogsContinued);
  const std::string in_file = Contents("a.h5");
  for (const char what : {'y', 'z'}) {
    const auto store = OpenedAgain("a.h5", entry);
    EXPECT_EQ(store->size(), 10000u);
    EXPECT_EQ(At(*store, 9000), what == 'y' ? 'x' : 'y');
    WriteElements(*store, what, 5000);
    Close(*store);
    EXPECT_EQ(Contents("a.h5"), in_file);  // nothing has come home
    const std::string segment = log::SegmentName(entry, 1);
    EXPECT_EQ(InTier(), (std::vector{segment, entry + ".file"}));
    // Half of it is written again, the other half once.
    const auto after = OpenedAgain("a.h5", entry);
    WriteElements(*after, what, 10000);
    Close(*after);
  }
  EXPECT_EQ(tidelane::Read(Counter::kLogsContinued) - continued, 4u);
  EXPECT_EQ(Drain(entry), Drained::kYes);
  ExpectHome("a.h5", 'z');
  EXPECT_EQ(InTier(), std::vector<std::string>());
  EXPECT_FALSE(fs::exists(path("a.h5-tier")));
}

TEST_F(TierTest, WhoGoesOnWithALogEndsItWithItsEntryAndItsMarker) {
  const std::string entry = Closed("a.h5", 'x');
  const auto store = OpenedAgain("a.h5", entry);
  WriteElements(*store, 'y', 10000);
  EXPECT_EQ(store->EndCommits(), 0);
  ExpectHome("a.h5", 'y');
  EXPECT_EQ(InTier(), std::vector<std::string>());
  EXPECT_FALSE(fs::exists(path("a.h5-tier")));
  EXPECT_EQ(store->Close(), 0);
}

// As long as it is opened again and again nobody brings it home: what it writes in the same place must not fill the tier.
TEST_F(TierTest, AStateThatIsWrittenByManyProgramsTakesAFewTimesItsSpace) {
  constexpr uint64_t kSize = 4 << 20;
  const std::string entry = Closed("a.h5", 'x', kSize);
  for (int i = 0; i < 20; ++i) {
    const auto store = OpenedAgain("a.h5", entry);
    WriteElements(*store, static_cast<char>('a' + i), kSize);
    EXPECT_EQ(WriteSuperblock(*store, kSize), 0);
    Close(*store);
  }
  EXPECT_LT(fs::file_size(place_->path + '/' + log::SegmentName(entry, 1)), 4 * kSize);
  EXPECT_EQ(Drain(entry), Drained::kYes);
  ExpectHome("a.h5", 't', kSize);
}

TEST_F(TierTest, OfTwoSegmentsTheFileComesHomeFirst) {
  const std::string entry = Closed("a.h5", 'x');
  // As a program leaves it that was killed when it had begun another one.
  const std::string second = place_->path + '/' + log::SegmentName(entry, 2);
  fs::copy_file(place_->path + '/' + log::SegmentName(entry, 1), second);
  const Descriptor file(open(second.c_str(), O_RDWR | O_CLOEXEC));
  log::Sector bytes;
  ASSERT_EQ(pread(file.get(), bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
  auto header = log::SegmentHeader::Parse(bytes);
  ASSERT_TRUE(header);
  header->before = header->id;
  header->id += 1;
  bytes = header->Encode();
  ASSERT_EQ(pwrite(file.get(), bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
  const uint64_t continued = tidelane::Read(Counter::kLogsContinued);
  const auto store = OpenedAgain("a.h5", entry);
  EXPECT_EQ(tidelane::Read(Counter::kLogsContinued), continued);
  ExpectHome("a.h5", 'x');
  EXPECT_EQ(InTier(), std::vector<std::string>());
}

// A lease is broken by who opens the file: he is held up until the mover has let go.
TEST_F(TierTest, AMoverThatIsInterruptedGoesOnWhereItWas) {
  if (!HasLeases()) GTEST_SKIP() << "no leases in " << folder_;
  constexpr uint64_t kSize = 8 << 20;
  const std::string entry = Closed("a.h5", 'x', kSize);
  Interrupted interrupted;
  interrupted.progress.between_syncs = 1 << 20;
  const auto interrupted_after = [&](uint64_t bytes) {
    Rate rate(0);
    Pace pace(rate);
    pace.Begin(bytes, [&] {
      EXPECT_EQ(open(path().c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC), -1);
      EXPECT_EQ(errno, EWOULDBLOCK);
    });
    EXPECT_EQ(Drain(entry, 0, &pace, &interrupted), Drained::kInUse);
    return pace.bytes();
  };
  EXPECT_LT(interrupted_after(kSize / 2), kSize - 1000000);
  // A program comes, goes on with the log, and changes a little of it.
  {
    const auto store = OpenedAgain("a.h5", entry);
    EXPECT_EQ(At(*store, 200), 'x');
    EXPECT_EQ(Write(*store, 1000, "yyy", 3), 0);
    Close(*store);
  }
  EXPECT_LT(interrupted_after(1 << 20), uint64_t{3} << 20);
  // Somebody changes the file itself: all of it is copied again.
  const std::unique_ptr<Device> file = MakePosixDevice(open(path().c_str(), O_RDWR | O_CLOEXEC));
  EXPECT_EQ(Write(*std::make_unique<DirectStore>(
                      std::shared_ptr<Device>(MakePosixDevice(dup(*file->descriptor())))),
                  2000, "zzzz", 4),
            0);
  Rate rate(0);
  Pace pace(rate);
  EXPECT_EQ(Drain(entry, 0, &pace, &interrupted), Drained::kYes);
  EXPECT_GT(pace.bytes(), kSize - 1000000);
  const std::string contents = Contents("a.h5");
  EXPECT_EQ(contents.size(), kSize);
  EXPECT_EQ(contents.substr(1000, 3), "yyy");
  EXPECT_EQ(contents.find_first_not_of('x', 1003), std::string::npos);
}

TEST_F(TierTest, WhereThereIsNoLeaseAMoverKnowsThatSomebodyWaits) {
  const std::string entry = Closed("a.h5", 'x', 4 << 20);
  const Descriptor reader(
      open(path().c_str(), O_RDONLY | O_CLOEXEC));  // there is no lease beside it
  const Descriptor writer(open(path().c_str(), O_RDWR | O_CLOEXEC));
  std::thread waits;
  std::atomic<int> claimed{-1};
  Rate rate(0);
  Pace pace(rate);
  pace.Begin(1 << 20, [&] {
    waits = std::thread([&] { claimed = ClaimAfterMove(writer.get()); });
    while (!IsMoveAwaited(reader.get())) std::this_thread::yield();
  });
  EXPECT_EQ(Drain(entry, 0, &pace), Drained::kInUse);
  waits.join();
  EXPECT_EQ(claimed, 0);
  EXPECT_LT(pace.bytes(), uint64_t{3} << 20);
  GiveUpClaim(writer.get());
  EXPECT_EQ(Drain(entry), Drained::kYes);
  ExpectHome("a.h5", 'x', 4 << 20);
}

// The mover has made the pages of the spare segment huge: the next file is copied straight into them.
TEST_F(TierTest, InMemoryTheNextFileGoesIntoHugePages) {
  std::string memory = "/dev/shm/tidelane_tier_test_XXXXXX";
  ASSERT_NE(mkdtemp(memory.data()), nullptr);
  ASSERT_TRUE(Place::Open(memory, true, *place_).ok());
  ASSERT_TRUE(place_->in_memory);
  const Descriptor probe(open((memory + "/probe").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  HugePages::MakeAll(probe.get(), uint64_t{6} << 20);
  HugePages pages;
  const bool has_huge_pages = !pages.Open(probe.get(), 0, uint64_t{6} << 20).empty();
  constexpr uint64_t kSize = uint64_t{9} << 20;  // the spare has more: nothing new is needed
  EXPECT_EQ(Drain(Closed("a.h5", 'x', uint64_t{13} << 20), uint64_t{64} << 20), Drained::kYes);
  const uint64_t before = Read(Counter::kBytesInHugePages);
  const std::string second = Closed("b.h5", 'y', kSize);
  if (has_huge_pages && HasLeases()) {
    EXPECT_GT(Read(Counter::kBytesInHugePages) - before, kSize - 1000000);
  }
  EXPECT_EQ(Drain(second), Drained::kYes);
  ExpectHome("a.h5", 'x', uint64_t{13} << 20);
  ExpectHome("b.h5", 'y', kSize);
  fs::remove_all(memory);
}

TEST_F(TierTest, ASpareIsUsedAgainUnlessSomebodyReadsIt) {
  if (!HasLeases()) GTEST_SKIP() << "no leases in " << folder_;
  const std::string first = Closed("a.h5", 'x', 100000);
  EXPECT_EQ(Drain(first, kSpareBytes), Drained::kYes);
  EXPECT_EQ(InTier(), std::vector<std::string>());
  std::string spare;
  for (const auto& entry : fs::directory_iterator(place_->path)) spare = entry.path().filename();
  ASSERT_TRUE(spare.starts_with("spare."));
  // Shorter than what the spare had: nothing of that may be seen.
  const std::string second = Closed("b.h5", 'y', 5000);
  EXPECT_FALSE(fs::exists(place_->path + '/' + spare));
  const Descriptor reader(
      open((place_->path + '/' + log::SegmentName(second, 1)).c_str(), O_RDONLY | O_CLOEXEC));
  ASSERT_TRUE(reader.valid());
  EXPECT_EQ(Drain(second, kSpareBytes), Drained::kYes);
  ExpectHome("b.h5", 'y', 5000);
  EXPECT_TRUE(fs::is_empty(place_->path));
  log::Sector bytes;
  ASSERT_EQ(pread(reader.get(), bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
  EXPECT_TRUE(log::SegmentHeader::Parse(bytes).has_value());
}

TEST_F(TierTest, NoMoreSparesAreKeptThanAreAskedFor) {
  if (!HasLeases()) GTEST_SKIP() << "no leases in " << folder_;
  const std::string name = Closed("a.h5", 'x', 100000);
  EXPECT_EQ(Drain(name, 50000), Drained::kYes);
  EXPECT_TRUE(fs::is_empty(place_->path));
  const std::string other = Closed("b.h5", 'x', 100000);
  EXPECT_EQ(Drain(other, kSpareBytes), Drained::kYes);
  EXPECT_FALSE(fs::is_empty(place_->path));
  DropSpares(*place_);
  EXPECT_TRUE(fs::is_empty(place_->path));
}

TEST(SurvivalTest, SchedulersEndAMover) {
  for (const char* const job : {"SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "FLUX_JOB_ID"}) {
    ASSERT_EQ(unsetenv(job), 0);
  }
  ASSERT_EQ(unsetenv("XDG_SESSION_ID"), 0);
  EXPECT_EQ(WhatEndsIt(true), "");
  ASSERT_EQ(setenv("SLURM_JOB_ID", "7", 1), 0);
  EXPECT_NE(WhatEndsIt(false).find("Slurm"), std::string::npos);
  ASSERT_EQ(unsetenv("SLURM_JOB_ID"), 0);
}

}  // namespace
}  // namespace tidelane::tier
