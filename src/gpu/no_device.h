/// \file
/// What a forked process has of the devices that its parent uses: addresses.
///
/// Invariant: every transfer fails, and no driver is called.
/// Thread safety: see gpu/runtime.h.
#pragma once

#include "gpu/runtime.h"

namespace tidelane::gpu {

class NoDevice final : public Runtime {
 public:
  const char* name() const override { return "none"; }
  Found Find(const void*, Context&) override { return Found::kUnknown; }
  bool Identify(Context, uint64_t&) override { return false; }
  int Enter(Context) override { return kNone; }
  void Leave() override {}
  int MakeStream(Stream&) override { return kNone; }
  int MakeEvent(Event&) override { return kNone; }
  bool Belongs(Stream, Context) override { return true; }
  bool Elapsed(Event, Event, uint64_t&) override { return false; }
  void DestroyStream(Stream) override {}
  void DestroyEvent(Event) override {}
  int Record(Event, Stream) override { return kNone; }
  int Follow(Stream, Event) override { return kNone; }
  int Await(Event) override { return kNone; }
  int IsDone(Event, bool&) override { return kNone; }
  int AwaitStream(Stream) override { return kNone; }
  int CopyDown(std::byte*, const void*, const Box&, Stream) override { return kNone; }
  int CopyUp(void*, const std::byte*, const Box&, Stream) override { return kNone; }
  int Pin(std::byte*, uint64_t) override { return kNone; }
  std::string Describe(int) const override {
    return "a forked process has none of its parent's devices";
  }

 private:
  static constexpr int kNone = 1;
};

}  // namespace tidelane::gpu
