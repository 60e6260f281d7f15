/// \file
/// The history: what comes back, what is not believed, several processes at once, folders that cannot be written.
#include "model/history.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "model/history_key.h"
#include "model/model_data.h"

namespace tidelane::model {
namespace {

constexpr double kMib = 1 << 20;

Learned SomeRun(double seconds_per_mib = 0.005) {
  Learned learned;
  for (double mib = 1; mib < 9; ++mib) {
    learned.sync.Add(mib * kMib, 1, mib * seconds_per_mib);
    learned.lanes.Add(mib * kMib, 1, mib * seconds_per_mib / 2);
    learned.copy.Add(kMib, mib * kMib, mib * 1e-4);
    learned.bytes.Add(mib * kMib), learned.write_bytes.Add(kMib);
    learned.compute.Add(0.1), learned.slack.Add(0.1);
    learned.sync_cost.Add(mib * seconds_per_mib), learned.async_cost.Add(mib * 1e-4);
    ++learned.epochs;
    LearnedReads& reads = learned.reads;
    reads.sync.Add(mib * kMib, 1, mib * seconds_per_mib * 3);
    reads.lanes.Add(mib * kMib, 1, mib * seconds_per_mib * 2);
    reads.copy.Add(kMib, mib * kMib, mib * 1e-4);
    reads.bytes.Add(mib * kMib), reads.read_bytes.Add(kMib), reads.compute.Add(0.2);
    ++reads.epochs;
  }
  return learned;
}

class HistoryTest : public ::testing::Test {
 protected:
  HistoryTest() {
    std::string path = std::filesystem::temp_directory_path() / "tidelane-history-XXXXXX";
    EXPECT_NE(mkdtemp(path.data()), nullptr);
    root_ = path;
    folder_ = path + "/state/tidelane/history";
  }
  ~HistoryTest() override {
    std::error_code error;
    std::filesystem::permissions(root_, std::filesystem::perms::owner_all, error);
    std::filesystem::remove_all(root_, error);
  }
  std::string File() const { return folder_ + "/" + HistoryFileName(kKey); }
  std::string Text() const {
    std::ifstream in(File());
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  }
  void Put(const std::string& text) const {
    std::filesystem::create_directories(folder_);
    std::ofstream(File()) << text;
  }

  const HistoryKey kKey{"ext4 /dev/vda1", "python3 train.py"};
  std::string root_;
  std::string folder_;
};

TEST_F(HistoryTest, NoFolderIsNoHistory) {
  HistoryEntry entry;
  ASSERT_TRUE(LoadHistory(folder_, kKey, entry).ok());
  EXPECT_EQ(entry.runs, 0u);
  EXPECT_TRUE(ListHistory(folder_).empty());
}

TEST_F(HistoryTest, WhatARunLearnedComesBack) {
  ASSERT_TRUE(SaveHistory(folder_, kKey, SomeRun()).ok());
  HistoryEntry entry;
  ASSERT_TRUE(LoadHistory(folder_, kKey, entry).ok());
  EXPECT_EQ(entry.runs, 1u);
  EXPECT_EQ(entry.key, kKey);
  EXPECT_NEAR(entry.learned.sync.Predict(4 * kMib, 1)->seconds, 0.02, 1e-6);
  EXPECT_NEAR(entry.learned.lanes.Predict(4 * kMib, 1)->seconds, 0.01, 1e-6);
  EXPECT_DOUBLE_EQ(entry.learned.compute.mean(), 0.1);
  EXPECT_EQ(entry.learned.epochs, 8u);
  const LearnedReads& reads = entry.learned.reads;
  EXPECT_NEAR(reads.sync.Predict(4 * kMib, 1)->seconds, 0.06, 1e-6);
  EXPECT_NEAR(reads.lanes.Predict(4 * kMib, 1)->seconds, 0.04, 1e-6);
  EXPECT_GT(reads.copy.Seconds(kMib, kMib), 0);
  EXPECT_DOUBLE_EQ(reads.compute.mean(), 0.2);
  EXPECT_EQ(reads.epochs, 8u);
  EXPECT_LT(Text().size(), 8000u) << "small";
}

TEST_F(HistoryTest, ALaterRunCountsMost) {
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(SaveHistory(folder_, kKey, SomeRun(0.005)).ok());
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(SaveHistory(folder_, kKey, SomeRun(0.050)).ok());
  HistoryEntry entry;
  ASSERT_TRUE(LoadHistory(folder_, kKey, entry).ok());
  EXPECT_EQ(entry.runs, 10u);
  const double seconds = entry.learned.sync.Predict(4 * kMib, 1)->seconds;
  EXPECT_GT(seconds, 0.08);
  EXPECT_LT(seconds, 0.2);
}

TEST_F(HistoryTest, FileSystemsAndProgramsAreToldApart) {
  const HistoryKey other{"lustre mgs@tcp:/work", kKey.program};
  ASSERT_TRUE(SaveHistory(folder_, kKey, SomeRun(0.005)).ok());
  ASSERT_TRUE(SaveHistory(folder_, other, SomeRun(0.5)).ok());
  HistoryEntry entry;
  ASSERT_TRUE(LoadHistory(folder_, kKey, entry).ok());
  EXPECT_LT(entry.learned.sync.Predict(kMib, 1)->seconds, 0.01);
  EXPECT_EQ(ListHistory(folder_).size(), 2u);
}

TEST_F(HistoryTest, DamageIsNoticedAndReplaced) {
  ASSERT_TRUE(SaveHistory(folder_, kKey, SomeRun()).ok());
  const std::string whole = Text();
  HistoryEntry entry;
  for (size_t cut = 0; cut + 2 < whole.size(); cut += 97) {
    Put(whole.substr(0, cut));
    EXPECT_EQ(LoadHistory(folder_, kKey, entry).code(), EBADMSG) << "cut at " << cut;
  }
  Put(std::string(1000, '\0'));
  const Status status = LoadHistory(folder_, kKey, entry);
  EXPECT_EQ(status.code(), EBADMSG);
  EXPECT_NE(status.Message().find(File()), std::string::npos) << status.Message();
  ASSERT_TRUE(SaveHistory(folder_, kKey, SomeRun()).ok());
  ASSERT_TRUE(LoadHistory(folder_, kKey, entry).ok());
  EXPECT_EQ(entry.runs, 1u);
}

// Every byte changed in turn: either it is noticed, or what comes back is something that could have been measured.
TEST_F(HistoryTest, NoChangedByteMakesAnImpossiblePrediction) {
  HistoryEntry entry;
  entry.key = kKey, entry.runs = 1, entry.learned = SomeRun();
  const std::string whole = HistoryText(entry);
  Numbers numbers(11);
  for (size_t i = 0; i < whole.size(); ++i) {
    std::string text = whole;
    text[i] = "0123456789-+eE.,:{}[]\"n"[static_cast<size_t>(numbers.Between(0, 23))];
    HistoryEntry read;
    if (!ParseHistory(text, read).ok()) continue;
    for (const double bytes : {1., kMib, 1e12}) {
      for (const IoRate* rate : {&read.learned.sync, &read.learned.lanes, &read.learned.reads.sync,
                                 &read.learned.reads.lanes}) {
        const auto predicted = rate->Predict(bytes, 1);
        if (!predicted) continue;
        EXPECT_TRUE(std::isfinite(predicted->seconds) && predicted->seconds > 0) << text;
      }
      EXPECT_GE(read.learned.copy.Seconds(kMib, bytes), 0);
      EXPECT_GE(read.learned.reads.copy.Seconds(kMib, bytes), 0);
    }
  }
}

// Version 1 knew of no reads: what it knew of writes stays, and the next run makes it a file of this version.
TEST_F(HistoryTest, TheVersionBeforeReadsIsReadAndReplaced) {
  HistoryEntry entry;
  entry.key = kKey, entry.runs = 3, entry.learned = SomeRun();
  nlohmann::ordered_json json = nlohmann::ordered_json::parse(HistoryText(entry));
  json["version"] = 1;
  json["learned"].erase("reads");
  Put(json.dump());
  ASSERT_TRUE(LoadHistory(folder_, kKey, entry).ok());
  EXPECT_EQ(entry.runs, 3u);
  EXPECT_EQ(entry.learned.epochs, 8u);
  EXPECT_EQ(entry.learned.reads.epochs, 0u);
  ASSERT_TRUE(SaveHistory(folder_, kKey, SomeRun()).ok());
  ASSERT_TRUE(LoadHistory(folder_, kKey, entry).ok());
  EXPECT_EQ(entry.runs, 4u);
  EXPECT_EQ(entry.learned.epochs, 16u);
  EXPECT_EQ(entry.learned.reads.epochs, 8u);
  EXPECT_EQ(nlohmann::ordered_json::parse(Text())["version"], kHistoryVersion);
  json["version"] = kHistoryVersion;
  Put(json.dump());
  EXPECT_EQ(LoadHistory(folder_, kKey, entry).code(), EBADMSG) << "this version has them";
}

TEST_F(HistoryTest, ANewerVersionIsNeitherReadNorReplaced) {
  HistoryEntry entry;
  entry.key = kKey, entry.runs = 1, entry.learned = SomeRun();
  nlohmann::ordered_json json = nlohmann::ordered_json::parse(HistoryText(entry));
  json["version"] = kHistoryVersion + 1;
  Put(json.dump());
  EXPECT_EQ(LoadHistory(folder_, kKey, entry).code(), EPROTONOSUPPORT);
  EXPECT_EQ(SaveHistory(folder_, kKey, SomeRun()).code(), EPROTONOSUPPORT);
  EXPECT_EQ(Text(), json.dump());
}

TEST_F(HistoryTest, AFolderThatCannotBeMadeIsAFailureWithItsReason) {
  std::ofstream(root_ + "/file") << "not a folder";
  const Status status = SaveHistory(root_ + "/file/history", kKey, SomeRun());
  EXPECT_EQ(status.code(), ENOTDIR);
  HistoryEntry entry;
  EXPECT_TRUE(LoadHistory(root_ + "/file/history", kKey, entry).ok()) << "there is nothing";
}

TEST_F(HistoryTest, AReadOnlyFolderIsAFailureWithItsReason) {
  std::filesystem::permissions(
      root_, std::filesystem::perms::owner_read | std::filesystem::perms::owner_exec);
  if (geteuid() != 0) {
    EXPECT_EQ(SaveHistory(folder_, kKey, SomeRun()).code(), EACCES);
    return;
  }
  // Root writes everywhere: somebody else tries, in a process of their own.
  const pid_t child = fork();
  if (child == 0) {
    constexpr uid_t kSomebody = 65534;
    if (setuid(kSomebody) != 0) _exit(2);
    _exit(SaveHistory(folder_, kKey, SomeRun()).code() == EACCES ? 0 : 1);
  }
  int how = 0;
  ASSERT_EQ(waitpid(child, &how, 0), child);
  EXPECT_EQ(how, 0);
}

// A held lock costs a run's learning, and not its end.
TEST_F(HistoryTest, ALockThatNobodyLetsGoOfIsGivenUp) {
  ASSERT_TRUE(SaveHistory(folder_, kKey, SomeRun()).ok());
  const int fd = ::open((folder_ + "/.lock").c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_GE(fd, 0);
  ASSERT_EQ(::flock(fd, LOCK_EX), 0);
  EXPECT_EQ(SaveHistory(folder_, kKey, SomeRun()).code(), EWOULDBLOCK);
  ::close(fd);
  EXPECT_TRUE(SaveHistory(folder_, kKey, SomeRun()).ok());
}

TEST_F(HistoryTest, ProcessesThatEndTogetherLoseNothingAndDamageNothing) {
  constexpr int kProcesses = 8, kRuns = 5;
  for (int i = 0; i < kProcesses; ++i) {
    if (fork() != 0) continue;
    int saved = 0;
    for (int tries = 0; saved < kRuns && tries < 200; ++tries)
      saved += SaveHistory(folder_, kKey, SomeRun()).ok() ? 1 : 0;
    _exit(saved == kRuns ? 0 : 1);
  }
  for (int i = 0; i < kProcesses; ++i) {
    int how = 0;
    ASSERT_GT(wait(&how), 0);
    EXPECT_EQ(how, 0);
  }
  HistoryEntry entry;
  ASSERT_TRUE(LoadHistory(folder_, kKey, entry).ok());
  EXPECT_EQ(entry.runs, static_cast<uint64_t>(kProcesses * kRuns));
  size_t files = 0;
  for (const auto& file : std::filesystem::directory_iterator(folder_))
    files += file.exists() ? 1 : 0;
  EXPECT_EQ(files, 2u) << "the file and the lock: nothing temporary remains";
}

TEST_F(HistoryTest, TheFolderStaysSmall) {
  const Learned learned = SomeRun();
  for (unsigned i = 0; i < kMostHistories + 5; ++i)
    ASSERT_TRUE(SaveHistory(folder_, {"tmpfs tmpfs", "p" + std::to_string(i)}, learned).ok());
  EXPECT_EQ(ListHistory(folder_).size(), kMostHistories);
}

// The setting names any folder, one with a user's own files perhaps. They are older than ours here.
TEST_F(HistoryTest, WhatIsNotOursStays) {
  const HistoryKey key{"tmpfs tmpfs", "somebody"};
  const Learned learned = SomeRun();
  ASSERT_TRUE(SaveHistory(folder_, key, learned).ok());
  const std::string history = folder_ + "/" + HistoryFileName(key);
  std::vector<std::string> foreign;
  for (unsigned i = 0; i < kMostHistories; ++i)
    foreign.push_back(folder_ + "/results" + std::to_string(i) + ".json");
  // Named as ours are, and something else: by what they say, or because they are another's copy, or a link.
  for (unsigned i = 0; i < kMostHistories; ++i) {
    const std::string number = std::to_string(100 + i);
    foreign.push_back(folder_ + "/results-0123456789abc" + number + ".json");
  }
  for (const std::string& path : foreign) std::ofstream(path) << R"({"format": "mine", "runs": 1})";
  foreign.push_back(folder_ + "/copy-0123456789abcdef.json");
  std::filesystem::copy_file(history, foreign.back());
  foreign.push_back(folder_ + "/link-0123456789abcdef.json");
  std::filesystem::create_symlink(history, foreign.back());
  using namespace std::chrono_literals;
  const auto long_ago = std::filesystem::file_time_type::clock::now() - 1000h;
  for (const std::string& path : foreign) std::filesystem::last_write_time(path, long_ago);
  std::filesystem::last_write_time(history, long_ago + 1h);  // the link is to it, too
  ASSERT_TRUE(SaveHistory(folder_, {"tmpfs tmpfs", "another"}, learned).ok());
  for (const std::string& path : foreign)
    EXPECT_TRUE(std::filesystem::is_symlink(path) || std::filesystem::exists(path)) << path;
  EXPECT_FALSE(std::filesystem::exists(history)) << "the oldest that is ours makes room";
}

// In a folder that others may write to, what is created is new: a link would be followed to a file of this user's.
TEST_F(HistoryTest, LinksAreNotFollowed) {
  ASSERT_TRUE(SaveHistory(folder_, kKey, SomeRun()).ok());
  const std::string precious = root_ + "/precious";
  std::ofstream(precious) << "keep me";
  std::filesystem::create_symlink(precious, File() + ".new");
  EXPECT_TRUE(SaveHistory(folder_, kKey, SomeRun()).ok());
  std::filesystem::remove(folder_ + "/.lock");
  std::filesystem::create_symlink(root_ + "/made", folder_ + "/.lock");
  EXPECT_EQ(SaveHistory(folder_, kKey, SomeRun()).code(), ELOOP);
  EXPECT_FALSE(std::filesystem::exists(root_ + "/made"));
  std::string text;
  std::getline(std::ifstream(precious), text);
  EXPECT_EQ(text, "keep me");
}

TEST_F(HistoryTest, WhatAKilledProcessLeftIsRemoved) {
  ASSERT_TRUE(SaveHistory(folder_, kKey, SomeRun()).ok());
  const std::string left = File() + ".0123456789abcdef";
  std::ofstream(left) << "{";
  ASSERT_TRUE(SaveHistory(folder_, {"tmpfs tmpfs", "another"}, SomeRun()).ok());
  EXPECT_FALSE(std::filesystem::exists(left));
}

TEST(HistoryKeyTest, NamesOfFilesAreTameWhateverTheProgramIsCalled) {
  const std::string name = HistoryFileName({"nfs server:/home", "../../etc/pass wd\n"});
  EXPECT_EQ(name.find('/'), std::string::npos);
  EXPECT_EQ(name.find(' '), std::string::npos);
  EXPECT_FALSE(name.starts_with("."));
  EXPECT_NE(HistoryFileName({"a", "b c"}), HistoryFileName({"a b", "c"}));
}

class HistoryProcTest : public HistoryTest {
 protected:
  void PutProc(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories(root_ + "/proc/self");
    std::ofstream(root_ + "/proc/self/" + name, std::ios::binary) << text;
  }
};

TEST_F(HistoryProcTest, AFileSystemIsItsKindAndSource) {
  PutProc("mountinfo",
          "22 27 0:21 / /proc rw,nosuid shared:14 - proc proc rw\n"
          "27 1 8:1 / / rw,relatime shared:1 master:2 - ext4 /dev/sda1 rw\n"
          "30 27 0:45 / /work rw - lustre mgs@tcp:/w\\040k rw\n");
  EXPECT_EQ(FileSystemName(makedev(8, 1), root_), "ext4 /dev/sda1");
  EXPECT_EQ(FileSystemName(makedev(0, 45), root_), "lustre mgs@tcp:/w k");
  EXPECT_EQ(FileSystemName(makedev(9, 9), root_), "device 9:9");
}

TEST_F(HistoryProcTest, AScriptIsNamedWithItsInterpreter) {
  const auto named = [this](std::string line) {
    PutProc("cmdline", line);
    return ProgramName(root_);
  };
  using namespace std::string_literals;
  EXPECT_EQ(named("/usr/bin/sim\0--steps\0"s), "sim");
  EXPECT_EQ(named("python3.11\0-u\0/home/me/train.py\0--epochs\0"s), "python3.11 train.py");
  EXPECT_EQ(named("python3\0-m\0pkg.main\0"s), "python3 pkg.main");
  EXPECT_EQ(named("python3\0-c\0print(1)\0"s), "python3");
  EXPECT_EQ(named("pythonic\0x\0"s), "pythonic");
  EXPECT_EQ(named(""s), "");
}

}  // namespace
}  // namespace tidelane::model
