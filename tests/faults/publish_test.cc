// publish=atomic and the ends of programs: whatever moment a program is killed at, its name leads to the old whole file or to the new
// one; and readers that look all the time never find anything else. A build that publishes too early must be found out.
#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <new>

#include "conformance/fixture.h"
#include "support/sanitizer.h"

namespace tidelane::testing {
namespace {

namespace fs = std::filesystem;

// Steps of the program's process: calls that change storage, and the one that gives the file its name.
struct Steps {
  std::atomic<int> taken{0};
  std::atomic<int> last{INT_MAX};  // it is killed before the step of this number
  std::atomic<bool> counts{false};

  static Steps& shared() {
    static Steps* const steps = new (mmap(nullptr, sizeof(Steps), PROT_READ | PROT_WRITE,
                                          MAP_SHARED | MAP_ANONYMOUS, -1, 0)) Steps;
    return *steps;
  }
  void take() {
    if (counts && taken++ == last) raise(SIGKILL);
  }
};

constexpr int kRewrites = 300;
constexpr int kGenerations = 4;  // datasets of a file, all of one generation

class PublishEnds : public Scenarios {
 public:
  void SetUp() override {
    Scenarios::SetUp();
    name_ = in_folder("x.h5");
  }
  const std::string& name() const { return name_; }
  Environment plugged(const char* plugins = nullptr) const {
    Environment environment = this->environment(kAtomic);
    environment["TIDELANE_LINGER"] = "0";
    if (plugins != nullptr) {
      environment["HDF5_PLUGIN_PATH"] = plugins;
      environment["TIDELANE_BREAK"] = "publish";
    }
    return environment;
  }
  static void write(const std::string& path, int generation) {
    const Hid opened = create(path);
    for (int i = 0; i < kGenerations; ++i) put(opened, std::to_string(i), generation, 2000);
  }
  // The generation of the whole file that the name leads to; -1: it is none.
  static int whole(const std::string& path) {
    const Hid opened(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT));
    if (!opened.valid()) return -1;
    int generation = -1;
    for (int i = 0; i < kGenerations; ++i) {
      const Hid dataset(H5Dopen2(opened, std::to_string(i).c_str(), H5P_DEFAULT));
      std::vector<int> values(2000);
      if (!dataset.valid() ||
          H5Dread(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()) < 0)
        return -1;
      const int of = static_cast<int>(static_cast<unsigned>(values[0]) / 1'000'003);
      if (values != elements(of, 2000) || (generation != -1 && generation != of)) return -1;
      generation = of;
    }
    return generation;
  }
  // As another program finds it.
  int found() {
    int generation = -1;
    Child child(environment(kNative), [&] { std::_Exit(whole(name_) + 1); });
    const int status = child.wait();
    if (WIFEXITED(status)) generation = WEXITSTATUS(status) - 1;
    return generation;
  }
  // The program writes generation 2 over generation 1, and is killed before step `step`. How many steps it took.
  int killed_at(int step, const Environment& environment) {
    Steps& steps = Steps::shared();
    steps.taken = 0;
    steps.last = step;
    Child child(environment, [&] {
      storage::follow([&](const storage::Call& call) {
        if (call.path.find("x.h5") != std::string::npos) steps.take();
        return storage::Fault{};
      });
      steps.counts = true;
      write(name_, 2);
    });
    const int status = child.wait();
    steps.counts = false;
    EXPECT_EQ(WIFSIGNALED(status), step < steps.taken) << step;
    return steps.taken;
  }
  // Positions at which something else than a whole file was found.
  int torn(const Environment& environment) {
    int torn = 0, kept = 0, replaced = 0;
    const int steps = [&] {
      run_natively([&] { write(name_, 1); });
      return killed_at(INT_MAX, environment);
    }();
    EXPECT_EQ(found(), 2);
    EXPECT_GT(steps, 4);
    for (int step = 0; step < steps; ++step) {
      run_natively([&] { write(name_, 1); });
      killed_at(step, environment);
      const int generation = found();
      torn += generation == -1 ? 1 : 0;
      kept += generation == 1 ? 1 : 0;
      replaced += generation == 2 ? 1 : 0;
    }
    std::printf("%d steps: %d times the old file, %d the new one, %d neither\n", steps, kept,
                replaced, torn);
    return torn;
  }

 private:
  std::string name_;
};

TEST_F(PublishEnds, KilledAtEveryStepTheNameShowsAWholeFile) {
  EXPECT_EQ(torn(plugged()), 0);
  Environment deferred = plugged();
  deferred["TIDELANE_CLOSE"] = "deferred";
  EXPECT_EQ(torn(deferred), 0);
  // What is left goes with the next file.
  run([&] { write(name(), 3); }, plugged());
  EXPECT_EQ(found(), 3);
  EXPECT_FALSE(fs::exists(in_folder(".x.h5.unpublished")));
}

TEST_F(PublishEnds, AnEarlyNameIsFoundOut) {
  const char* broken = std::getenv("TIDELANE_TEST_BROKEN_DIR");
  if (broken == nullptr || *broken == '\0') GTEST_SKIP() << "no broken build";
  EXPECT_GT(torn(plugged(broken)), 0);
  EXPECT_GT(torn(environment(kImplicit)), 0) << "in place";
}

TEST_F(PublishEnds, AnExitByAnErrorPublishesNothing) {
  run_natively([&] { write(name(), 1); });
  for (const int status : {3, 0}) {
    Child child(plugged(), [&] {
      const hid_t opened = create(name()).release();
      for (int i = 0; i < kGenerations; ++i) put(opened, std::to_string(i), 2, 2000);
      std::exit(status);
    });
    EXPECT_EQ(WEXITSTATUS(child.wait()), status);
    EXPECT_EQ(found(), status == 0 ? 2 : 1);
  }
}

// Rewritten all the time, under a reader that looks all the time.
TEST_F(PublishEnds, AReaderSeesWholeFilesOnly) {
  const char* all = std::getenv("TIDELANE_TEST_FAULTS");
  const int rewrites = all != nullptr && std::strcmp(all, "all") == 0 ? 10'000
                       : sanitized()                                  ? kRewrites / 6
                                                                      : kRewrites;
  run_natively([&] { write(name(), 0); });
  const Gong written;
  Child writer(plugged(), [&] {
    for (int i = 1; i <= rewrites; ++i) write(name(), i % 200);
    written.ring();
  });
  Child reader(environment(kNative), [&] {
    int looks = 0;
    int others = 0;
    int before = -1;
    do {
      const int generation = whole(name());
      ASSERT_GE(generation, 0) << "look " << looks << "\n" << error_text();
      others += generation != before ? 1 : 0;
      before = generation;
      ++looks;
    } while (!written.rung());
    std::printf("%d looks, %d times another file\n", looks, others);
    EXPECT_GT(others, sanitized() ? 2 : 10);
  });
  reader.expect_success();
  writer.expect_success();
}

}  // namespace
}  // namespace tidelane::testing

// The plugin's, before libc's.
extern "C" __attribute__((visibility("default"))) int renameat(int from_folder, const char* from,
                                                               int to_folder, const char* to) {
  using Rename = int (*)(int, const char*, int, const char*);
  static const auto next = reinterpret_cast<Rename>(dlsym(RTLD_NEXT, "renameat"));
  tidelane::testing::Steps::shared().take();
  const int result = next(from_folder, from, to_folder, to);
  tidelane::testing::Steps::shared().take();
  return result;
}
