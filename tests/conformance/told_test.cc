// What the program is told at its end: how much of storage's work was hidden, where it waited, which files it left
// open, what could not be stored.
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <thread>

#include <nlohmann/json.hpp>

#include "conformance/fixture.h"

namespace tidelane::testing {
namespace {

using namespace std::chrono_literals;
using Json = nlohmann::json;

class Told : public Conformance {
 protected:
  // The whole summary of a scenario that ends by itself, whatever its status.
  Json told(const std::function<void()>& scenario) { return told(scenario, environment()); }
  Json told(const std::function<void()>& scenario, const Environment& environment) {
    Child child(environment, scenario);
    const int status = child.wait();
    EXPECT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
    std::string where = summaries();
    where.replace(where.find("%p"), 2,
                  std::to_string(child.pid() < 0 ? -child.pid() : child.pid()));
    std::ifstream in(where);
    EXPECT_TRUE(in) << "no summary in " << where;
    return Json::parse(in, nullptr, false);
  }
  // Bytes that a lane is about to store, standing before the gate.
  Hid create_held() {
    Hid opened = create(file());
    storage::hold();
    put(opened, "a", 1, kMany);
    EXPECT_TRUE(storage::wait_held());
    return opened;
  }
  static constexpr size_t kMany = 1 << 20;  // 4 MiB: lanes begin at once
};

TEST_P(Told, WorkThatTheProgramDidNotWaitForIsHidden) {
  const Json summary = told([&] {
    const Hid opened = create_held();
    std::this_thread::sleep_for(300ms);  // it computes
    storage::release();
  });
  EXPECT_GE(summary["overlap"]["hidden_seconds"], 0.3) << summary;
  EXPECT_LE(summary["overlap"]["hidden_seconds"], summary["overlap"]["storage_seconds"]);
  EXPECT_GT(summary["counters"]["bytes_deferred"], 0);
}

TEST_P(Told, WorkThatTheProgramWaitedForIsNot) {
  const Json summary = told([&] {
    Hid opened = create_held();
    storage::release_after(700ms);
    ASSERT_GE(H5Fclose(opened.release()), 0);
  });
  const auto storage = summary["overlap"]["storage_seconds"].get<double>();
  EXPECT_GE(storage, 0.7) << summary;
  EXPECT_GE(storage - summary["overlap"]["hidden_seconds"].get<double>(), 0.1) << summary;
  const bool deferred = GetParam().close_deferred();  // then the end of the program is what waits
  EXPECT_GE(summary["waits"][deferred ? "exit" : "close"]["seconds"], 0.1) << summary;
  EXPECT_EQ(summary["waits"]["close"]["times"], deferred ? 0 : 1) << summary;
  EXPECT_EQ(summary["waits"]["flush"]["times"], 0) << "nobody flushed: " << summary;
}

TEST_P(Told, AFileThatNobodyClosedIsNamed) {
  const Json summary = told([&] {
    Hid closed = create(in_folder("closed.h5"));
    put(closed, "a", 1);
    EXPECT_GE(H5Fclose(closed.release()), 0);
    put(create(file()).release(), "a", 1);
  });
  EXPECT_EQ(summary["problems"]["not_closed"]["files"], Json::array({file()})) << summary;
  EXPECT_EQ(summary["problems"]["not_stored"]["count"], 0) << summary;
  EXPECT_EQ(summary["problems"]["first"], "") << summary;
}

// After a failed close HDF5 never ends its connectors: the summary comes all the same.
TEST_P(Told, AFileThatCouldNotBeStoredIsNamedWithTheReason) {
  const Json summary = told([&] {
    storage::fail_with(ENOSPC);
    Hid opened = create(file());
    put(opened, "a", 1);
    if (H5Fclose(opened) >= 0) static_cast<void>(opened.release());
  });
  EXPECT_EQ(summary["problems"]["not_stored"]["files"], Json::array({file()})) << summary;
  EXPECT_EQ(summary["problems"]["not_stored"]["count"], 1) << summary;
  const auto first = summary["problems"]["first"].get<std::string>();
  EXPECT_NE(first.find("of '" + file() + "': No space left on device"), std::string::npos) << first;
  EXPECT_GT(summary["problems"]["count"], 0);
}

TEST_P(Told, AnErrorThatARetryMadeGoodLeavesNoFileBehind) {
  const Json summary = told([&] {
    const Hid opened = create(file());
    storage::fail_with(EIO);
    put(opened, "a", 1, kMany);
    EXPECT_TRUE(storage::wait_failed());
    storage::fail_with(0);
  });
  EXPECT_GT(summary["problems"]["count"], 0) << summary;
  EXPECT_EQ(summary["problems"]["not_stored"]["count"], 0) << summary;
  expect_natively(file(), {});
}

TEST_P(Told, AForkedChildTellsItsOwn) {
  const Json summary = told([&] {
    Hid opened = create(file());
    put(opened, "parents", 1, kMany);
    EXPECT_GE(H5Fclose(opened.release()), 0);
    const pid_t forked = fork();
    if (forked == 0) {
      put(create(in_folder("childs.h5")), "a", 1);
      std::exit(0);
    }
    int status = -1;
    ASSERT_EQ(waitpid(forked, &status, 0), forked);
    EXPECT_EQ(status, 0);
    std::string where = summaries();
    std::ifstream in(where.replace(where.find("%p"), 2, std::to_string(forked)));
    const Json childs = Json::parse(in, nullptr, false);
    ASSERT_TRUE(childs.is_object()) << "no summary in " << where;
    EXPECT_EQ(childs["tidelane"]["pid"], forked);
    EXPECT_EQ(childs["counters"]["files_opened"], 1) << childs;
    EXPECT_LT(childs["counters"]["bytes_deferred"], kMany) << childs;
  });
  EXPECT_EQ(summary["counters"]["files_opened"], 1) << summary;
}

CONFORMANCE_WAYS(Told, kImplicit, kDeferredClose, kDeferredAll);

}  // namespace
}  // namespace tidelane::testing
