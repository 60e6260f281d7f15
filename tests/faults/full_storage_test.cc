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

TEST_P(FullStorage, ASmallFileSystemIsTriedAgainWhenThereIsRoom) {
  const std::string tiny = in_folder("tiny");
  std::filesystem::create_directory(tiny);
  // A mount of this process's own: it goes when the process goes.
  if (geteuid() != 0 || unshare(CLONE_NEWNS) != 0 ||
      mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
      mount("none", tiny.c_str(), "tmpfs", 0, "size=8m") != 0) {
    GTEST_SKIP() << "only root can mount a small file system";
  }
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

}  // namespace
}  // namespace tidelane::testing
