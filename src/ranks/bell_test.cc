#include "ranks/bell.h"

#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/fresh_file.h"
#include "ranks/dirty_range_table.h"

namespace tidelane {
namespace {

bool Soon(const std::function<bool()>& happened) {
  const auto late = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!happened() && std::chrono::steady_clock::now() < late)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return happened();
}

struct Answers {
  Answers() {
    static_cast<void>(Bell::Get().number());
    Bell::Get().Add(whose, [this] { ++count; });
    Bell::Get().Hold();
  }
  ~Answers() { Bell::Get().LetGo(); }
  std::shared_ptr<int> whose = std::make_shared<int>();
  std::atomic<int> count{0};
};

TEST(Bell, WhoHoldsBytesHearsIt) {
  Answers answers;
  ASSERT_NE(Bell::Get().number(), 0u);
  Bell::Ring(Bell::Get().number());
  EXPECT_TRUE(Soon([&] { return answers.count > 0; }));
}

TEST(Bell, ItIsHeardAgainAfterALongPause) {
  {
    Answers held;
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(4500));  // nobody listens by now
  Answers answers;
  Bell::Ring(Bell::Get().number());
  EXPECT_TRUE(Soon([&] { return answers.count > 0; }));
}

TEST(Bell, WhoHoldsBytesForLongStillHearsIt) {
  Answers answers;
  std::this_thread::sleep_for(std::chrono::milliseconds(4500));
  Bell::Ring(Bell::Get().number());
  EXPECT_TRUE(Soon([&] { return answers.count > 0; }));
}

TEST(Bell, ADescriptorThatIsTheProgramsByNowIsLeftAlone) {
  {
    Answers held;
  }
  // As a program does that closes all descriptors: one of them was the bell's.
  std::vector<int> taken;
  for (int descriptor = 3; descriptor < 64; ++descriptor) {
    sockaddr_un name{};
    socklen_t size = sizeof name;
    if (getsockname(descriptor, reinterpret_cast<sockaddr*>(&name), &size) != 0) continue;
    if (std::memcmp(name.sun_path + 1, "tidelane-", 9) != 0) continue;
    int pair[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_DGRAM, 0, pair), 0);
    ASSERT_EQ(dup2(pair[0], descriptor), descriptor);
    ASSERT_EQ(send(pair[1], "mine", 4, 0), 4);
    taken.push_back(descriptor);
  }
  ASSERT_FALSE(taken.empty());
  std::this_thread::sleep_for(std::chrono::milliseconds(4500));
  for (const int descriptor : taken) {
    char text[8];
    EXPECT_EQ(recv(descriptor, text, sizeof text, MSG_DONTWAIT), 4);
    close(descriptor);
  }
  Answers again;
  Bell::Ring(Bell::Get().number());
  EXPECT_TRUE(Soon([&] { return again.count > 0; }));
}

TEST(Bell, NobodyAnswersForWhatIsGone) {
  Answers answers, others;
  answers.whose = nullptr;
  Bell::Ring(Bell::Get().number());
  EXPECT_TRUE(Soon([&] { return others.count > 0; }));
  EXPECT_EQ(answers.count, 0);
}

TEST(Bell, NobodysNumbersAreRungInVain) {
  Bell::Ring(0);
  Bell::Ring(RandomBits());
}

TEST(Bell, AForkedProcessHasItsOwn) {
  Answers answers;
  const uint64_t parents = Bell::Get().number();
  // The thread that listens has begun: a child of a thread that allocates gets AddressSanitizer's allocator locked.
  Bell::Ring(parents);
  ASSERT_TRUE(Soon([&] { return answers.count > 0; }));
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  const int heard = answers.count;
  Bell::Get().LockForFork();
  const pid_t child = fork();
  Bell::Get().UnlockAfterFork(child == 0);
  if (child == 0) {
    alarm(30);
    Answers its;
    const uint64_t own = Bell::Get().number();
    Bell::Ring(parents);
    Bell::Ring(own);
    _exit(own == 0 || own == parents || !Soon([&] { return its.count > 0; }));
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(Soon([&] { return answers.count > heard; })) << "the child rang its parent's";
}

TEST(Bell, WhoWaitsForBytesRings) {
  Answers answers;
  const FileIdentity file{RandomBits(), RandomBits()};
  const auto first = DirtyRangeTable::Join(file, 0), second = DirtyRangeTable::Join(file, 1);
  ASSERT_TRUE(first != nullptr && second != nullptr);
  first->SetGroup({.id = 1, .complete = true});
  first->Extend(0, 10);
  second->AwaitOthers(10, 20);
  EXPECT_EQ(answers.count, 0) << "nobody waits for these";
  std::thread waiter([&] { second->AwaitOthers(0, 10); });
  EXPECT_TRUE(Soon([&] { return answers.count > 0; }));
  first->Clear();
  waiter.join();
}

}  // namespace
}  // namespace tidelane
