#include "ranks/inquiry.h"

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <new>
#include <numeric>
#include <optional>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/fresh_file.h"

namespace tidelane {
namespace {

// Answers with the question, and so many bytes as its first word says.
struct Echo {
  Echo() {
    static_cast<void>(InquiryDesk::Get().number());
    subject = InquiryDesk::Get().Add(
        whose, [this](std::span<const uint64_t> question, const InquiryDesk::Send& send) {
          ++asked;
          if (question[0] == UINT64_MAX) throw std::bad_alloc();
          const std::vector<char> bytes(question[0], 'x');
          if (send(question.data(), question.size_bytes())) send(bytes.data(), bytes.size());
        });
    held = InquiryDesk::Get().Hold();
  }
  ~Echo() {
    if (held) InquiryDesk::Get().LetGo();
  }
  std::shared_ptr<int> whose = std::make_shared<int>();
  std::atomic<int> asked{0};
  uint64_t subject = 0;
  bool held = false;
};

TEST(Inquiry, IsAnsweredWhileTheOtherProcessDoesSomethingElse) {
  Echo echo;
  ASSERT_TRUE(echo.held);
  const uint64_t desk = InquiryDesk::Get().number();
  const pid_t asker = fork();
  if (asker == 0) {  // this process sleeps in waitpid meanwhile
    const uint64_t question[] = {3'000'000, 7, 8};
    auto inquiry = Inquiry::Ask(desk, echo.subject, question);
    uint64_t words[3] = {};
    std::vector<char> bytes(3'000'000);
    const bool well = inquiry.has_value() && inquiry->Read(words, sizeof words) && words[2] == 8 &&
                      inquiry->Read(bytes.data(), bytes.size()) && bytes.back() == 'x' &&
                      !inquiry->Read(words, 1);
    _exit(well ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(asker, &status, 0), asker);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(echo.asked, 1);
}

TEST(Inquiry, WhatIsNotThereIsNotAnswered) {
  Echo echo;
  const uint64_t question[] = {1};
  EXPECT_FALSE(Inquiry::Ask(RandomBits(), echo.subject, question).has_value());
  auto other = Inquiry::Ask(InquiryDesk::Get().number(), echo.subject + 1000, question);
  char byte = 0;
  EXPECT_TRUE(!other.has_value() || !other->Read(&byte, 1));
  EXPECT_EQ(echo.asked, 0);
}

TEST(Inquiry, WithoutMemoryThereIsNoAnswerAndTheNextQuestionIsHeard) {
  Echo echo;
  const uint64_t desk = InquiryDesk::Get().number();
  const uint64_t too_much[] = {UINT64_MAX};
  const uint64_t question[] = {1};
  uint64_t word = 0;
  auto first = Inquiry::Ask(desk, echo.subject, too_much);
  ASSERT_TRUE(first.has_value());
  EXPECT_FALSE(first->Read(&word, sizeof word));
  auto second = Inquiry::Ask(desk, echo.subject, question);
  ASSERT_TRUE(second.has_value());
  EXPECT_TRUE(second->Read(&word, sizeof word));
}

TEST(Inquiry, ADeskWhoseOwnerIsGoneAnswersNothing) {
  Echo echo;
  echo.whose.reset();
  const uint64_t question[] = {1};
  auto inquiry = Inquiry::Ask(InquiryDesk::Get().number(), echo.subject, question);
  char byte = 0;
  EXPECT_TRUE(!inquiry.has_value() || !inquiry->Read(&byte, 1));
  EXPECT_EQ(echo.asked, 0);
}

TEST(Inquiry, WhoWasForkedOffKeepsNoDeskOpen) {
  InquiryDesk& desk = InquiryDesk::Get();
  uint64_t number = 0;
  {
    Echo echo;
    number = desk.number();
  }
  desk.LockForFork();
  const pid_t child = fork();
  desk.UnlockAfterFork(child == 0);
  if (child == 0) _exit(desk.number() == number ? 1 : 0);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(desk.number(), number);
}

}  // namespace
}  // namespace tidelane
