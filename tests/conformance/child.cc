#include "conformance/child.h"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>
#include <hdf5.h>

namespace tidelane::testing {
namespace {

constexpr unsigned kSeconds =
    50;  // a child that hangs ends before ctest's limit, and says so by its status

// A child inherits what its test has found so far; only what it finds itself is its own failure.
int failures() {
  const ::testing::TestInfo* test = ::testing::UnitTest::GetInstance()->current_test_info();
  int found = 0;
  for (int i = 0; i < test->result()->total_part_count(); ++i) {
    found += test->result()->GetTestPartResult(i).failed() ? 1 : 0;
  }
  return found;
}

// What the shell or ctest set for other purposes is not what this test is about.
void forget_inherited_settings() {
  std::vector<std::string> names;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    if (!text.starts_with("TIDELANE_") && !text.starts_with("HDF5_")) continue;
    if (text.starts_with("TIDELANE_BREAK=")) continue;  // a control's
    names.emplace_back(text.substr(0, text.find('=')));
  }
  for (const std::string& name : names) unsetenv(name.c_str());
}

[[noreturn]] void run(const Environment& environment, const std::function<void()>& scenario) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  alarm(kSeconds);
  forget_inherited_settings();
  for (const auto& [name, value] : environment) {
    if (!value.empty()) setenv(name.c_str(), value.c_str(), 1);
  }
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);  // failures are expected and checked, not printed
  const int inherited = failures();
  try {
    scenario();
  } catch (const std::exception& thrown) {
    ADD_FAILURE() << thrown.what();  // else gtest would go on with the other tests in this process
  }
  const bool failed = failures() > inherited;
  std::fflush(nullptr);
  std::exit(failed ? 1 : 0);
}

}  // namespace

Child::Child(const Environment& environment, const std::function<void()>& scenario) {
  std::fflush(nullptr);
  pid_ = fork();
  if (pid_ == 0) run(environment, scenario);
  EXPECT_GT(pid_, 0);
}

Child::~Child() {
  if (pid_ <= 0) return;
  kill();
  wait();
}

int Child::wait() {
  int status = -1;
  while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -pid_;
  return status;
}

void Child::kill() { ::kill(pid_, SIGKILL); }

void Child::expect_success() {
  const int status = wait();
  EXPECT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
  EXPECT_TRUE(!WIFEXITED(status) || WEXITSTATUS(status) == 0)
      << "an expectation failed in the child";
}

Summary Child::summary(std::string where) const {
  const pid_t pid = pid_ < 0 ? -pid_ : pid_;
  if (const size_t at = where.find("%p"); at != std::string::npos) {
    where.replace(at, 2, std::to_string(pid));
  }
  const auto found = Summary::load(where);
  EXPECT_TRUE(found.has_value()) << "no summary in " << where << ": was the plugin there?";
  return found.value_or(Summary());
}

Gong::Gong() { EXPECT_EQ(pipe(ends_), 0); }

Gong::~Gong() {
  close(ends_[0]);
  close(ends_[1]);
}

void Gong::ring() const { EXPECT_EQ(write(ends_[1], "!", 1), 1); }

bool Gong::rung_within(int milliseconds) const {
  pollfd ready{ends_[0], POLLIN, 0};
  char byte = 0;
  return poll(&ready, 1, milliseconds) == 1 && read(ends_[0], &byte, 1) == 1;
}

}  // namespace tidelane::testing
