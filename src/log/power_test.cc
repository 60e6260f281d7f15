// The seeds the simulated program is run with; and with rules of the log switched off, its checks must notice each of them.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

#include <gtest/gtest.h>

#include "extent/test_hooks.h"
#include "log/power_program.h"

namespace tidelane::log {
namespace {

using Moves = PowerOptions::Moves;

PowerOptions OfSeed(PowerOptions options, uint64_t seed) {
  options.seed = seed;
  options.base = seed % 3 == 0 ? 512 : 0;
  options.version = seed % 4;
  options.existing = seed / 4 % 2 == 0;
  return options;
}

#ifdef TIDELANE_BREAK

// With a rule switched off, one of these must come to a state that is wrong.
bool IsNoticed(std::string_view rule, unsigned seeds, PowerProgram::Tally& all) {
  enabled_mutations = rule;
  bool noticed = false;
  for (unsigned seed = 1; seed <= seeds && !noticed; ++seed) {
    for (const Moves moves : {Moves::kWithCommits, Moves::kWhenFull, Moves::kLater}) {
      PowerProgram program(OfSeed({.moves = moves}, seed));
      program.Run();
      all += program.tally();
      if (!noticed && !program.wrong().empty())
        std::printf("%s: seed %u: %s\n", std::string(rule).c_str(), seed, program.wrong().c_str());
      noticed |= !program.wrong().empty();
    }
  }
  enabled_mutations = {};
  return noticed;
}

// Of a log that stays, by these programs.
bool IsNoticedInTier(std::string_view rule, const PowerOptions& options, unsigned seeds,
                     PowerProgram::Tally& all) {
  enabled_mutations = rule;
  bool noticed = false;
  for (unsigned seed = 1; seed <= seeds && !noticed; ++seed) {
    PowerProgram program(OfSeed(options, seed));
    program.Run();
    all += program.tally();
    noticed = !program.wrong().empty();
    if (noticed)
      std::printf("%s: seed %u: %s\n", std::string(rule).c_str(), seed, program.wrong().c_str());
  }
  enabled_mutations = {};
  return noticed;
}

// It goes on in the next life; or it finds no room, and goes on beside the file.
constexpr PowerOptions kTier{
    .journal = Journal::kProcess, .moves = Moves::kWhenFull, .tier = true, .lives = 12};
constexpr PowerOptions kFullTier{
    .moves = Moves::kWhenFull, .tier = true, .full = true, .lives = 12};

class PowerControlTest : public testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(Rules, PowerControlTest,
                         testing::Values("log_file_sync", "log_commit_sync", "log_header_sync",
                                         "log_folder_sync", "log_superblock_sync", "log_move_sync",
                                         "log_unmark_sync", "log_created_sync", "log_restore_sync",
                                         "log_aside_sync", "log_mark", "log_high_water", "log_id",
                                         "log_note_sync", "log_reuse"),
                         [](const auto& rule) { return rule.param; });

TEST_P(PowerControlTest, IsNoticed) {
  PowerProgram::Tally all;
  EXPECT_TRUE(IsNoticed(GetParam(), 240, all));
  std::printf("%s: after %lu states\n", GetParam().c_str(), all.states);
}

class TierControlTest : public testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(Rules, TierControlTest,
                         testing::Values("log_continue_cut", "log_continue_space", "log_progress"),
                         [](const auto& rule) { return rule.param; });

TEST_P(TierControlTest, IsNoticed) {
  PowerProgram::Tally all;
  EXPECT_TRUE(IsNoticedInTier(GetParam(), kTier, 200, all));
  std::printf("%s: after %lu states\n", GetParam().c_str(), all.states);
}

class FullTierControlTest : public testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(Rules, FullTierControlTest,
                         testing::Values("log_leave_moves", "log_leave_mark", "log_leave_sync",
                                         "log_leave_behind"),
                         [](const auto& rule) { return rule.param; });

TEST_P(FullTierControlTest, IsNoticed) {
  PowerProgram::Tally all;
  EXPECT_TRUE(IsNoticedInTier(GetParam(), kFullTier, 200, all));
  std::printf("%s: after %lu states\n", GetParam().c_str(), all.states);
}

TEST(FullTierControlTest, WithoutAnyNothingIs) {
  PowerProgram::Tally all;
  EXPECT_FALSE(IsNoticedInTier("", kFullTier, 30, all));
}

TEST(TierControlTest, WithoutAnyNothingIs) {
  PowerProgram::Tally all;
  EXPECT_FALSE(IsNoticedInTier("", kTier, 50, all));
}

TEST(PowerControlTest, WithoutAnyNothingIs) {
  PowerProgram::Tally all;
  EXPECT_FALSE(IsNoticed("", 60, all));
}

#else

// A number from the environment: TIDELANE_TEST_SEEDS=500 runs so many, TIDELANE_TEST_SEED=17 that one alone.
unsigned FromEnvironment(const char* name, unsigned usual) {
  const char* text = std::getenv(name);
  return text == nullptr ? usual : static_cast<unsigned>(std::atoi(text));
}

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr unsigned kShare = 5;  // a state takes fifty times as long
#else
constexpr unsigned kShare = 1;
#endif

PowerProgram::Tally RunSeeds(PowerOptions options, unsigned seeds) {
  PowerProgram::Tally all;
  const auto begin = std::chrono::steady_clock::now();
  const unsigned only = FromEnvironment("TIDELANE_TEST_SEED", 0);
  seeds = FromEnvironment("TIDELANE_TEST_SEEDS", seeds / kShare);
  for (unsigned seed = only != 0 ? only : 1; seed <= std::max(only, seeds); ++seed) {
    PowerProgram program(OfSeed(options, seed));
    program.Run();
    EXPECT_EQ(program.wrong(), "") << "seed " << seed;
    all += program.tally();
    if (::testing::Test::HasFailure() || only != 0) break;
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  std::printf(
      "%lu states in %.2f s: %lu recovered (%lu cut meanwhile), %lu only read, %lu with another "
      "log, "
      "%lu without the file; %lu commits, %lu closes, %lu commits and %lu calls failed; %lu logs "
      "continued, %lu movers went on; %lu logs went on beside their files\n",
      all.states, took.count(), all.recovered, all.cut_recoveries, all.only_read, all.foreign,
      all.none, all.commits, all.closes, all.failed_commits, all.failed_calls, all.continued,
      all.moved_on, all.went_on);
  return all;
}

#ifdef __SANITIZE_THREAD__
constexpr Moves kAllMoves[] = {Moves::kByLanes};  // the others have one thread
#else
constexpr Moves kAllMoves[] = {Moves::kWithCommits, Moves::kWhenFull, Moves::kLater,
                               Moves::kByLanes};
#endif

class PowerTest : public testing::TestWithParam<Moves> {};

INSTANTIATE_TEST_SUITE_P(Moves, PowerTest, testing::ValuesIn(kAllMoves), [](const auto& moves) {
  return std::to_string(static_cast<int>(moves.param));
});

TEST_P(PowerTest, PowerIsCut) {
  const PowerProgram::Tally all = RunSeeds({.moves = GetParam()}, 20);
  EXPECT_GT(all.recovered, 10'000u / kShare / 2);
}

TEST_P(PowerTest, PowerIsCutAndStorageFails) {
  EXPECT_GT(RunSeeds({.moves = GetParam(), .faults = true}, 20).failed_calls, 0u);
}

TEST_P(PowerTest, TheProgramIsKilled) {
  RunSeeds({.journal = Journal::kProcess, .moves = GetParam()}, 20);
}

TEST_P(PowerTest, TheProgramIsKilledAndStorageFails) {
  RunSeeds({.journal = Journal::kProcess, .moves = GetParam(), .faults = true}, 20);
}

TEST_P(PowerTest, TheNextProgramGoesOnWithTheLog) {
  const PowerProgram::Tally all =
      RunSeeds({.journal = Journal::kProcess, .moves = GetParam(), .tier = true, .lives = 8}, 20);
  if (GetParam() == Moves::kWithCommits) return;  // the log is moved with each of them
  EXPECT_GT(all.continued, 40u / kShare);
  EXPECT_GT(all.moved_on, 0u);
}

TEST_P(PowerTest, TheNextProgramGoesOnWithTheLogAndStorageFails) {
  RunSeeds(
      {.journal = Journal::kProcess, .moves = GetParam(), .tier = true, .faults = true, .lives = 8},
      20);
}

TEST_P(PowerTest, ATierHasNoRoomAndTheLogGoesOnBesideTheFile) {
  const PowerProgram::Tally all = RunSeeds(
      {.journal = Journal::kProcess, .moves = GetParam(), .tier = true, .full = true, .lives = 8},
      10);
  if (GetParam() == Moves::kWithCommits) return;  // the log is moved with each of them
  EXPECT_GT(all.went_on, 30u / kShare);
}

TEST_P(PowerTest, ATierHasNoRoomAndPowerIsCut) {
  const PowerProgram::Tally all =
      RunSeeds({.moves = GetParam(), .tier = true, .full = true, .lives = 8}, 10);
  if (GetParam() == Moves::kWithCommits) return;  // the log is moved with each of them
  EXPECT_GT(all.went_on, 30u / kShare);
}

TEST_P(PowerTest, ATierHasNoRoomAndStorageFails) {
  RunSeeds({.journal = Journal::kProcess,
            .moves = GetParam(),
            .tier = true,
            .full = true,
            .faults = true,
            .lives = 8},
           10);
}

#endif

}  // namespace
}  // namespace tidelane::log
