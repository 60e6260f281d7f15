#include "throttle/meter.h"

#include <gtest/gtest.h>

namespace tidelane::throttle {
namespace {

constexpr uint64_t kMs = 1'000'000;
constexpr Cost kSlow{.latency_ns = 2 * kMs, .bytes_per_second = 200'000'000};

TEST(Meter, OneCallerPaysLatencyAndTransferForEachRequest) {
  Meter meter(kSlow);
  const uint64_t first = meter.book(Kind::kWrite, 0, 1'000'000);
  EXPECT_EQ(first, 7 * kMs);
  EXPECT_EQ(meter.book(Kind::kWrite, first, 1'000'000), 14 * kMs);
}

TEST(Meter, ConcurrentRequestsOverlapLatencyButShareBandwidth) {
  Meter meter(kSlow);
  EXPECT_EQ(meter.book(Kind::kWrite, 0, 1'000'000), 7 * kMs);
  EXPECT_EQ(meter.book(Kind::kWrite, 0, 1'000'000), 12 * kMs);
  EXPECT_EQ(meter.book(Kind::kRead, 0, 1'000'000), 17 * kMs);
}

TEST(Meter, IdleTimeIsNotSavedUp) {
  Meter meter(kSlow);
  meter.book(Kind::kWrite, 0, 1'000'000);
  EXPECT_EQ(meter.book(Kind::kWrite, 1000 * kMs, 1'000'000), 1007 * kMs);
}

TEST(Meter, NoCapMeansLatencyOnly) {
  Meter meter({.latency_ns = 3, .bytes_per_second = 0});
  EXPECT_EQ(meter.book(Kind::kRead, 10, 1 << 20), 13u);
  EXPECT_EQ(meter.book(Kind::kRead, 10, 1 << 20), 13u);
}

TEST(Meter, CountsByKindAndSizeUntilReset) {
  Meter meter({});
  meter.book(Kind::kWrite, 0, 4096);
  meter.book(Kind::kWrite, 0, 4097);
  meter.book(Kind::kRead, 0, 0);
  EXPECT_EQ(meter.json(),
            "{\"latency_ns\":0,\"bytes_per_second\":0,"
            "\"reads\":{\"requests\":1,\"bytes\":0,\"up_to\":{\"1\":1}},"
            "\"writes\":{\"requests\":2,\"bytes\":8193,\"up_to\":{\"4096\":1,\"8192\":1}}}\n");
  meter.reset_counters();
  EXPECT_NE(meter.json().find("\"writes\":{\"requests\":0,\"bytes\":0,\"up_to\":{}}"),
            std::string::npos);
}

}  // namespace
}  // namespace tidelane::throttle
