/// \file
/// The devices that other tests rely on.
#include "device/fault_device.h"

#include <cerrno>
#include <cstring>
#include <string>
#include <thread>

#include <gtest/gtest.h>

namespace tidelane {
namespace {

int Put(Device& device, uint64_t address, std::string text) {
  const struct iovec part = {text.data(), text.size()};
  return device.Write(address, &part, 1);
}

std::string Text(const MemoryFile& file) {
  return {reinterpret_cast<const char*>(file.bytes.data()), file.bytes.size()};
}

TEST(MemoryDeviceTest, BehavesAsAFile) {
  const auto file = std::make_shared<MemoryFile>();
  const auto device = MakeMemoryDevice(file);
  ASSERT_EQ(Put(*device, 3, "abc"), 0);
  EXPECT_EQ(Text(*file), std::string("\0\0\0abc", 6));
  char read[5];
  ASSERT_EQ(device->Read(4, read, 5), 0);
  EXPECT_EQ(std::string(read, 5), std::string("bc\0\0\0", 5));
  ASSERT_EQ(device->Read(100, read, 2), 0);
  EXPECT_EQ(std::string(read, 2), std::string("\0\0", 2));
  ASSERT_EQ(device->Truncate(4), 0);
  uint64_t size = 0;
  ASSERT_EQ(device->Size(size), 0);
  EXPECT_EQ(size, 4u);
  EXPECT_EQ(*device->descriptor(), -1);
  EXPECT_EQ(device->Write(100, nullptr, 0), 0);
  EXPECT_EQ(file->bytes.size(), 4u) << "writing nothing extends nothing";
}

TEST(MemoryDeviceTest, LocksAsFlockDoes) {
  const auto file = std::make_shared<MemoryFile>();
  const auto one = MakeMemoryDevice(file);
  auto two = MakeMemoryDevice(file);
  EXPECT_EQ(one->Lock(false), 0);
  EXPECT_EQ(one->Lock(false), 0);
  EXPECT_EQ(two->Lock(false), 0);
  EXPECT_EQ(one->Lock(true), EWOULDBLOCK);
  EXPECT_EQ(two->Close(), 0);
  EXPECT_EQ(one->Lock(true), 0);
  two = MakeMemoryDevice(file);
  EXPECT_EQ(two->Lock(false), EWOULDBLOCK);
  EXPECT_EQ(one->Lock(false), 0);
  EXPECT_EQ(two->Lock(false), 0);
  EXPECT_EQ(one->Unlock(), 0);
  EXPECT_EQ(one->Unlock(), 0);
  EXPECT_EQ(two->Lock(true), 0);
}

TEST(MemoryDeviceTest, ThreadsMayGrowItAtOnce) {
  const auto file = std::make_shared<MemoryFile>();
  const auto device = MakeMemoryDevice(file);
  const auto write = [&](uint64_t first, char letter) {
    for (uint64_t i = first; i < 2000; i += 2) EXPECT_EQ(Put(*device, i, {letter}), 0);
  };
  std::thread other(write, 1, 'b');
  write(0, 'a');
  other.join();
  ASSERT_EQ(file->bytes.size(), 2000u);
  for (size_t i = 0; i < 2000; ++i) EXPECT_EQ(Text(*file)[i], i % 2 == 0 ? 'a' : 'b');
}

TEST(FaultDeviceTest, AFailingWriteLeavesThePrefixItWasTold) {
  const auto file = std::make_shared<MemoryFile>();
  Fault fault{ENOSPC, 5};
  const auto device = MakeFaultDevice(MakeMemoryDevice(file),
                                      [&](FaultPoint point, uint64_t address, uint64_t size) {
                                        EXPECT_EQ(point, FaultPoint::kWrite);
                                        EXPECT_EQ(address, 2u);
                                        EXPECT_EQ(size, 9u);
                                        return fault;
                                      });
  std::string a = "abc";
  std::string b = "defghi";
  const struct iovec parts[] = {{a.data(), 3}, {nullptr, 0}, {b.data(), 6}};
  EXPECT_EQ(device->Write(2, parts, 3), ENOSPC);
  EXPECT_EQ(Text(*file), std::string("\0\0abcde", 7));
  fault = {EIO, 0};
  EXPECT_EQ(device->Write(2, parts, 3), EIO);
  EXPECT_EQ(file->bytes.size(), 7u);
  fault = {EIO, 1000};
  EXPECT_EQ(device->Write(2, parts, 3), EIO);
  EXPECT_EQ(file->bytes.size(), 11u);
  fault = {};
  EXPECT_EQ(device->Write(2, parts, 3), 0);
  EXPECT_EQ(Text(*file), std::string("\0\0abcdefghi", 11));
}

TEST(FaultDeviceTest, EveryPointCanFailAndIsOtherwisePassedOn) {
  const auto file = std::make_shared<MemoryFile>();
  ASSERT_EQ(Put(*MakeMemoryDevice(file), 0, "12345678"), 0);
  FaultPoint failing = FaultPoint::kRead;
  const auto device =
      MakeFaultDevice(MakeMemoryDevice(file), [&](FaultPoint point, uint64_t, uint64_t) {
        return point == failing ? Fault{EIO, 0} : Fault{};
      });
  char byte = 0;
  EXPECT_EQ(device->Read(0, &byte, 1), EIO);
  EXPECT_EQ(device->Truncate(6), 0);
  EXPECT_EQ(device->Sync(), 0);
  failing = FaultPoint::kTruncate;
  EXPECT_EQ(device->Read(1, &byte, 1), 0);
  EXPECT_EQ(byte, '2');
  EXPECT_EQ(device->Truncate(1), EIO);
  EXPECT_EQ(file->bytes.size(), 6u);
  failing = FaultPoint::kSync;
  EXPECT_EQ(device->Sync(), EIO);
  EXPECT_EQ(Put(*device, 6, "78"), 0);
  failing = FaultPoint::kClose;
  EXPECT_EQ(device->Lock(true), 0);
  EXPECT_EQ(device->Close(), EIO);
  EXPECT_EQ(MakeMemoryDevice(file)->Lock(true), 0) << "closed all the same";
}

}  // namespace
}  // namespace tidelane
