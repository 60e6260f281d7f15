// Storage fails at every call in turn, in every way of working and of failing: nobody is told success for lost
// bytes, nothing crashes or hangs, and when space returns a second attempt leaves the file as it should be.
//
// A test is one way of failing in one way of working; it runs the program of program.h once for each call
// that the program makes to storage (positions). By default some positions are left out, others in each test;
// TIDELANE_TEST_FAULTS=all takes all of them.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <new>
#include <ostream>

#include "conformance/fixture.h"
#include "faults/program.h"
#include "support/sanitizer.h"

namespace tidelane::testing {
namespace {

using namespace std::chrono_literals;

constexpr int kFewCalls = 4;
constexpr int kStride = 4;  // positions left out by default: all but every fourth
constexpr int kEverySecond = 2;

struct Setting {
  const char* name;
  Way way;
  Manner manner;
  Environment more;
  bool lanes_write = true;   // false: the calling thread does
  bool lanes_filter = true;  // so does HDF5, of all chunks
  int stride = kStride;      // of the positions tried by default
};

enum class Ends { kAtOnce, kWhenSpaceReturns, kNever };

struct Failing {
  const char* name;
  int error;
  uint64_t share;  // of a write's bytes that arrive, in per cent
  Ends ends;
  bool slow = false;
  bool short_first = false;  // says how many bytes arrived; what follows is the failure
  bool lies = false;
  bool harmless() const { return error == 0 && !lies; }
};

struct Case {
  const Setting* setting;
  const Failing* failing;
  int number;  // in the list
};

std::string case_name(const ::testing::TestParamInfo<Case>& info) {
  return std::string(info.param.setting->name) + "_" + info.param.failing->name;
}

void PrintTo(const Case& which, std::ostream* out) {
  *out << which.setting->name << ", " << which.failing->name;
}

// What the program's process and the test's share.
struct Ledger {
  std::atomic<int> calls{0};  // to storage, on the failing file
  std::atomic<int> failed{0};
  std::atomic<bool> space{true};
  std::atomic<bool> rest_fails{false};
  std::atomic<int> told{0};

  static Ledger* shared() {
    void* memory =
        mmap(nullptr, sizeof(Ledger), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? nullptr : new (memory) Ledger;
  }
};

// The call at `position` fails; what becomes of later ones depends on how the failing ends.
storage::Plan plan_of(const Failing& failing, int position, const std::string& path,
                      Ledger& ledger) {
  return [=, &ledger](const storage::Call& call) -> storage::Fault {
    if (call.path != path) return {};
    const int now = ledger.calls++;
    const bool first = now == position;
    const bool rest = ledger.rest_fails.exchange(false);
    const bool later = failing.ends != Ends::kAtOnce && now > position && !ledger.space;
    if (!first && !rest && !later) return {};
    if (first) ledger.space = false;
    storage::Fault fault;
    if (failing.slow) fault.delay = 5ms;
    if (call.kind == storage::Kind::kWrite) fault.written_first = call.size * failing.share / 100;
    if (failing.short_first && call.kind == storage::Kind::kWrite && !rest) {
      fault.written_first = (call.size + 1) / 2;
      ledger.rest_fails = failing.error != 0;
      return fault;
    }
    if (failing.share == 100 && failing.error == 0) fault.written_first = UINT64_MAX;
    fault.error = failing.error;
    fault.lies = failing.lies && call.kind != storage::Kind::kClose;
    if (fault.error != 0) ++ledger.failed;
    return fault;
  };
}

class Faults : public Scenarios, public ::testing::WithParamInterface<Case> {
 public:
  void SetUp() override {
    Scenarios::SetUp();
    failing_ = in_folder("failing.h5");
    healthy_ = in_folder("healthy.h5");
    ledger_ = Ledger::shared();
    ASSERT_NE(ledger_, nullptr);
  }
  void TearDown() override {
    munmap(ledger_, sizeof(Ledger));
    Scenarios::TearDown();
  }

  const Setting& setting() const { return *GetParam().setting; }
  const Failing& failing() const { return *GetParam().failing; }

  Environment environment() const {
    Environment all = Scenarios::environment(setting().way);
    for (const auto& [name, value] : setting().more) all[name] = value;
    return all;
  }

  struct Outcome {
    bool reached = false;  // the call at the position was made
    bool honest = false;   // no expectation failed, in no process
    int calls = 0;
    int told = 0;
  };
  // One run of the program, with a look at what it left.
  Outcome run_at(int position, const Failing& failing, const Environment& environment);

 protected:
  void run_program(int position, const Failing& failing);
  bool look(bool whole);
  bool said_on_stderr() const {
    return bytes_on_storage(in_folder("stderr")).find(failing_) != std::string::npos;
  }

  std::string failing_;
  std::string healthy_;
  Ledger* ledger_ = nullptr;
};

// In the child: the program, and its promises for who looks later.
void Faults::run_program(int position, const Failing& failing) {
  ASSERT_NE(std::freopen(in_folder("stderr").c_str(), "w", stderr), nullptr);
  storage::follow(plan_of(failing, position, failing_, *ledger_));
  Manner manner = setting().manner;
  manner.tries_again = manner.tries_again && failing.ends != Ends::kNever;
  Program program(failing_, healthy_, manner, [&] {
    if (failing.ends == Ends::kNever) return false;
    return ledger_->space = true;
  });
  program.run();
  ledger_->told = program.told();
  if (failing.ends == Ends::kWhenSpaceReturns) ledger_->space = true;
  program.save_promises(in_folder("promises"));
}

bool ended_well(Child& child) {
  const int status = child.wait();
  if (status != 0) std::printf("a process ended with status 0x%x\n", status);
  return status == 0;
}

// In another process, natively: are the promises kept, and is the file whole at the end?
bool Faults::look(bool whole) {
  Child child(Scenarios::environment(kNative), [&] {
    expect_promises_kept(in_folder("promises"));
    expect_contents_after(kSteps - 1, open(healthy_, H5F_ACC_RDONLY));
    const int all = setting().manner.closes_files ? kSteps : kSteps - 1;
    if (whole) expect_contents_after(all, open(failing_, H5F_ACC_RDONLY));
  });
  return ended_well(child);
}

Faults::Outcome Faults::run_at(int position, const Failing& failing,
                               const Environment& environment) {
  new (ledger_) Ledger;
  Outcome outcome;
  Child child(environment, [&] { run_program(position, failing); });
  outcome.honest = ended_well(child);
  const Summary summary = child.summary(summaries());
  EXPECT_GT(summary.counter(setting().lanes_write ? "bytes_deferred" : "bytes_sync"), 0);
  const int64_t filtered = summary.counter("filter_bytes_in");
  EXPECT_TRUE(setting().lanes_filter ? filtered > 0 : filtered == 0) << filtered;
  if (position == INT_MAX && setting().manner.filters) {
    EXPECT_GT(summary.counter("bytes_held"),
              0);  // chunks that are stored from where lanes put them
  }
  if (ledger_->failed != 0 && summary.counter("errors") == 0) {
    outcome.honest = false;
    std::printf("a failure was not counted\n");
  }
  outcome.calls = ledger_->calls;
  outcome.reached = outcome.calls > position;
  outcome.told = ledger_->told;
  const bool gave_up = outcome.told != 0 && !setting().manner.tries_again;
  // A failure that began at the exit, when no program could make space any more, has its say on stderr.
  const bool lost = failing.ends == Ends::kNever
                        ? outcome.reached && failing.error != 0
                        : failing.ends == Ends::kWhenSpaceReturns && said_on_stderr();
  if (outcome.honest) outcome.honest = look(!gave_up && !lost);
  if (lost && outcome.told == 0 && !said_on_stderr()) {
    outcome.honest = false;
    std::printf("bytes were lost, and nobody was told\n");
  }
  if (!outcome.honest) std::printf("%s\n", bytes_on_storage(in_folder("stderr")).c_str());
  return outcome;
}

bool all_positions() {
  const char* given = std::getenv("TIDELANE_TEST_FAULTS");
  return given != nullptr && std::strcmp(given, "all") == 0;
}

TEST_P(Faults, AtEveryCallInTurn) {
  const int calls = run_at(INT_MAX, failing(), environment()).calls;
  ASSERT_GT(calls, kFewCalls) << "too few calls to storage for this to mean anything";
  // Under a sanitizer each takes three times as long, and the release build has tried them.
  const int thinner = sanitized() ? 4 : 1;
  const int stride = all_positions() ? 1 : std::min(setting().stride * thinner, calls / 2);
  int tried = 0;
  int reached = 0;
  int told = 0;
  for (int position = GetParam().number % stride; position < calls; position += stride) {
    SCOPED_TRACE("call " + std::to_string(position) + " of " + std::to_string(calls));
    Outcome outcome = run_at(position, failing(), environment());
    EXPECT_TRUE(outcome.honest);
    if (!outcome.reached) {  // lanes came late and made fewer calls, as on a busy machine
      outcome = run_at(position * outcome.calls / calls, failing(), environment());
      EXPECT_TRUE(outcome.honest);
    }
    EXPECT_TRUE(outcome.told == 0 || !failing().harmless()) << "told of a failure that was none";
    ++tried;
    reached += outcome.reached ? 1 : 0;
    told += outcome.told != 0 ? 1 : 0;
    if (HasFailure()) break;
  }
  // Lanes do not make the same calls each time, least of all where nothing waits for them.
  EXPECT_GE(reached, tried / 3);
  std::printf("%d positions of %d, %d reached, %d told\n", tried, calls, reached, told);
}

// The tests' own test: bytes that vanish without a word must be noticed, at most positions.
class FaultsControl : public Faults {
 public:
  void expect_noticed(const Failing& silent, const Environment& environment) {
    const int calls = run_at(INT_MAX, silent, environment).calls;
    int noticed = 0;
    for (int position = 0; position < calls; ++position) {
      noticed += run_at(position, silent, environment).honest ? 0 : 1;
    }
    std::printf("noticed at %d of %d positions\n", noticed, calls);
    EXPECT_GT(noticed, calls / 2);
  }
};

TEST_P(FaultsControl, StorageThatLiesIsNoticed) { expect_noticed(failing(), environment()); }

TEST_P(FaultsControl, APluginThatForgetsFailuresIsNoticed) {
  const char* broken = std::getenv("TIDELANE_TEST_BROKEN_DIR");
  if (broken == nullptr || !std::filesystem::exists(std::string(broken) + "/libtidelane.so")) {
    GTEST_SKIP() << "this build has no plugin with faults";
  }
  Environment all = environment();
  all["HDF5_PLUGIN_PATH"] = broken;
  EXPECT_TRUE(run_at(0, {"none", 0, 100, Ends::kAtOnce}, all).honest) << "it is broken anyhow";
  all["TIDELANE_BREAK"] = "failure";
  expect_noticed({"no_space_once", ENOSPC, 0, Ends::kAtOnce}, all);
}

constexpr Manner kWaiting{};
constexpr Manner kDeferring{.close_waits = false};
constexpr Manner kDeferringAll{.flush_waits = false, .close_waits = false};
constexpr Manner kEventSets{.event_sets = true};
constexpr Manner kEventSetsDeferring{
    .event_sets = true, .flush_waits = false, .close_waits = false};
constexpr Manner kLatest{.latest_format = true};
constexpr Manner kLeftOpen{.closes_files = false};
constexpr Manner kLeftOpenDeferring{
    .flush_waits = false, .close_waits = false, .closes_files = false};
constexpr Manner kOnce{.tries_again = false};
constexpr Manner kFiltering{.filters = true};
constexpr Manner kFilteringDeferring{.flush_waits = false, .close_waits = false, .filters = true};

// Never destroyed.
const std::vector<Setting>& settings() {
  static const auto& all = *new std::vector<Setting>{
      {"implicit", kImplicit, kWaiting, {}},
      {"early", kImplicit, kWaiting, {{"TIDELANE_LINGER", "0"}, {"TIDELANE_GAP", "0"}}},
      {"deferred_close", kDeferredClose, kDeferring, {}},
      {"deferred_all", kDeferredAll, kDeferringAll, {{"TIDELANE_LINGER", "0"}}},
      {"event_sets", kAsyncName, kEventSets, {}},
      {"event_sets_deferred", kDeferredAll, kEventSetsDeferring, {{"TIDELANE_LINGER", "0"}}},
      {"latest", kImplicit, kLatest, {}},
      {"left_open", kImplicit, kLeftOpen, {}},
      {"left_open_deferred", kDeferredAll, kLeftOpenDeferring, {}},
      {"auto", kAuto, kWaiting, {}},
      {"auto_deferred", kAutoDeferred, kDeferringAll, {}},
      {"small_arena", kImplicit, kWaiting, {{"TIDELANE_ARENA", "64k"}}, true, false},
      {"filtered", kImplicit, kFiltering, {}, true, true, kEverySecond},
      {"filtered_deferred", kDeferredAll, kFilteringDeferring, {}, true, true, kEverySecond},
      {"sync", kImplicit, kOnce, {{"TIDELANE_MODE", "sync"}}, false, false},
  };
  return all;
}

constexpr Failing kFailings[] = {
    {"no_space_once", ENOSPC, 0, Ends::kAtOnce},
    {"no_space_for_a_while", ENOSPC, 0, Ends::kWhenSpaceReturns},
    {"no_space_for_ever", ENOSPC, 0, Ends::kNever},
    {"io_once", EIO, 0, Ends::kAtOnce},
    {"torn_once", EIO, 50, Ends::kAtOnce},
    {"torn_for_a_while", EDQUOT, 50, Ends::kWhenSpaceReturns},
    {"short", 0, 50, Ends::kWhenSpaceReturns, false, true},
    {"short_then_error", ENOSPC, 0, Ends::kAtOnce, false, true},
    {"short_then_full", ENOSPC, 0, Ends::kWhenSpaceReturns, false, true},
    {"slow", 0, 100, Ends::kWhenSpaceReturns, true},
};

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const Setting& setting : settings()) {
    for (const Failing& failing : kFailings) {
      all.push_back({&setting, &failing, static_cast<int>(all.size())});
    }
  }
  return all;
}

constexpr Failing kLies{"lies", 0, 0, Ends::kAtOnce, false, false, true};
INSTANTIATE_TEST_SUITE_P(ways, FaultsControl,
                         ::testing::Values(Case{&settings()[0], &kLies, 0},
                                           Case{&settings()[2], &kLies, 0}),
                         case_name);
INSTANTIATE_TEST_SUITE_P(ways, Faults, ::testing::ValuesIn(cases()), case_name);

}  // namespace
}  // namespace tidelane::testing
