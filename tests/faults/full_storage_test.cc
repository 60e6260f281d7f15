// The real thing: the program of program.h on a small file system, with more and more room left beside a file that fills
// it. When the program is told, it takes the other file away and tries again.
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "conformance/fixture.h"
#include "faults/program.h"

namespace tidelane::testing {
namespace {

struct Setting {
  Way way;
  bool event_sets;
  Manner manner() const {
    return {.event_sets = event_sets,
            .flush_waits = !way.flush_deferred(),
            .close_waits = !way.close_deferred()};
  }
};

void PrintTo(const Setting& setting, std::ostream* out) {
  *out << setting.way.name << (setting.event_sets ? "_event_sets" : "");
}

class FullStorage : public Scenarios, public ::testing::WithParamInterface<Setting> {
 public:
  // Runs the program in a process that `prepare`s its storage; `make_room` is called when it was told.
  void run_program(const std::string& path, const std::function<void()>& prepare,
                   const std::function<void()>& make_room) {
    const Summary summary = run(
        [&] {
          prepare();
          Program program(path, in_folder("healthy.h5"), GetParam().manner(), [&] {
            make_room();
            return true;
          });
          program.run();
          program.save_promises(in_folder("promises"));
          make_room();  // for who was not told yet: the exit tries again
        },
        environment(GetParam().way));
    EXPECT_GT(summary.counter("bytes_deferred"), 0);
    failed_ += summary.counter("errors") > 0 ? 1 : 0;
    run_natively([&] {
      expect_promises_kept(in_folder("promises"));
      expect_contents_after(kSteps, open(path, H5F_ACC_RDONLY));
      expect_contents_after(kSteps - 1, open(in_folder("healthy.h5"), H5F_ACC_RDONLY));
    });
  }

 protected:
  int failed_ = 0;  // runs in which storage refused something
};

constexpr size_t kMiB = 1 << 20;
constexpr size_t kStorage = 8 * kMiB;
constexpr size_t kNeeded = 2 * kMiB;  // for the program's file, and a little more

// An empty file system of kStorage bytes. The mount is this process's own: it goes when the process goes.
bool mount_small(const std::string& folder) {
  std::filesystem::create_directory(folder);
  return geteuid() == 0 && unshare(CLONE_NEWNS) == 0 &&
         mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         mount("none", folder.c_str(), "tmpfs", 0, "size=8m") == 0;
}

TEST_P(FullStorage, ASmallFileSystemIsTriedAgainWhenThereIsRoom) {
  const std::string tiny = in_folder("tiny");
  if (!mount_small(tiny)) GTEST_SKIP() << "only root can mount a small file system";
  const std::string filler = tiny + "/filler";
  for (size_t room = 0; room <= kNeeded && !HasFailure(); room += kNeeded / 16) {
    SCOPED_TRACE(room);
    run_program(
        tiny + "/failing.h5", [&] { std::ofstream(filler) << std::string(kStorage - room, 'x'); },
        [&] { std::filesystem::remove(filler); });
    for (const auto& entry : std::filesystem::directory_iterator(tiny))
      std::filesystem::remove(entry);
  }
  EXPECT_GT(failed_, 8) << "the file system was not full";
  umount2(tiny.c_str(), MNT_DETACH);
}

INSTANTIATE_TEST_SUITE_P(ways, FullStorage,
                         ::testing::Values(Setting{kImplicit, false},
                                           Setting{kDeferredClose, false},
                                           Setting{kDeferredAll, false}, Setting{kAsyncName, true},
                                           Setting{kDeferredAll, true}),
                         ::testing::PrintToStringParamName());

// With TIDELANE_RESERVE the call that would not fit says so, and keeps nothing; without it the flush does, or the call
// half-way.
class ReservedStorage : public Scenarios {
 public:
  // What was told, nothing if it went well.
  static std::string write_large(hid_t file, size_t count) {
    const hsize_t extent = count;
    const Hid space(H5Screate_simple(1, &extent, nullptr));
    const Hid large(
        H5Dcreate2(file, "large", H5T_NATIVE_INT, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    const std::vector<int> values = elements(2, count);
    if (H5Dwrite(large, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()) >= 0)
      return {};
    return error_text();
  }
};

TEST_F(ReservedStorage, AFullFileSystemIsToldAtTheWrite) {
  const std::string tiny = in_folder("tiny");
  if (!mount_small(tiny)) GTEST_SKIP() << "only root can mount a small file system";
  const std::string path = tiny + "/reserved.h5";
  constexpr size_t kFits = kMiB / sizeof(int);  // 1 MiB
  constexpr size_t kTooMany = 2 * kStorage / sizeof(int);
  Environment environment = this->environment(kImplicit);
  Child(environment, [&] {
    const Hid opened = create(path);
    // Told by the write only where the caller stores a part of it itself, because storage is quick.
    const std::string text = write_large(opened, kTooMany);
    EXPECT_EQ(text.find("cannot reserve"), std::string::npos) << text;
    EXPECT_TRUE(!text.empty() || H5Fflush(opened, H5F_SCOPE_GLOBAL) < 0);
    _exit(HasFailure() ? 1 : 0);
  }).expect_success();
  environment["TIDELANE_RESERVE"] = "on";
  const Summary summary = run(
      [&] {
        const Hid opened = create(path);
        put(opened, "fits", 1, kFits);
        const std::string text = write_large(opened, kTooMany);
        EXPECT_NE(text.find("cannot reserve space for"), std::string::npos) << text;
        EXPECT_NE(text.find(path), std::string::npos) << text;
        EXPECT_NE(text.find("No space left on device"), std::string::npos) << text;
        put(opened, "afterwards", 3, kFits);
      },
      environment);
  EXPECT_EQ(summary.counter("errors"), 0) << "no lane met the full file system";
  EXPECT_GE(summary.counter("bytes_deferred"), static_cast<int64_t>(2 * kMiB));
  run_natively([&] {
    const Hid opened = open(path, H5F_ACC_RDONLY);
    expect_dataset(opened, "fits", 1, kFits);
    expect_dataset(opened, "afterwards", 3, kFits);
  });
  umount2(tiny.c_str(), MNT_DETACH);
}

}  // namespace
}  // namespace tidelane::testing
