/// \file
/// The ring of spans and its Chrome trace form.
///
/// Slots are written without locks: a writer draws a ticket, marks the slot busy, stores the
/// fields, then stores the stamp that belongs to the ticket. Who finds the slot busy (the ring went
/// round while a writer was interrupted) drops its span. A reader keeps a slot only if it found the
/// same stamp before and after reading the fields; the release stores and acquire loads of the
/// fields make a slot that was rewritten meanwhile show a changed stamp.
///
/// Invariant: the ring is never freed once enabled (spans may end after everything else was torn
/// down).
///
/// Thread safety: as trace.h.
#include "base/trace.h"

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <bit>
#include <cinttypes>
#include <cstdio>
#include <new>

#include <nlohmann/json.hpp>

#include "base/output_file.h"
#include "base/version.h"

namespace tidelane {
namespace internal {

constinit std::atomic<bool> tracing{false};

}  // namespace internal

namespace {

constexpr uint64_t kBusy = ~uint64_t{0};

struct Slot {
  std::atomic<uint64_t> stamp;  // 0: empty; kBusy; or thread id << 32 | low half of ticket + 1
  std::atomic<uint64_t> begin_ns;
  std::atomic<uint64_t> duration_ns;
  std::atomic<uint64_t> bytes_and_kind;  // bytes << 8 | kind
};

struct Ring {
  Slot* slots;
  uint64_t size;  // a power of two
  std::atomic<uint64_t> next{0};
};

struct ThreadName {
  std::atomic<uint32_t> thread;
  std::atomic<const char*> name;
};

constexpr unsigned kMaxNames = 256;

constinit std::atomic<Ring*> ring{nullptr};
constinit ThreadName names[kMaxNames] = {};
constinit std::atomic<unsigned> name_count{0};
constinit thread_local uint32_t cached_thread = 0;

constexpr const char* kSpanNames[] = {
    "write",        "write through",     "read",        "flush wait",  "close wait",
    "request wait", "arena wait",        "filter wait", "open wait",   "exit wait",
    "fork wait",    "ranks wait",        "wait",        "pwrite",      "gap read",
    "GPU copy",     "epoch, async",      "epoch, sync", "drain: mark", "drain: extents",
    "drain: size",  "drain: superblock", "drained",     "drain: stuck"};
static_assert(std::size(kSpanNames) == static_cast<size_t>(SpanKind::kCount));

uint32_t ThreadId() {
  if (cached_thread == 0) cached_thread = static_cast<uint32_t>(syscall(SYS_gettid));
  return cached_thread;
}

struct Event {
  uint32_t thread;
  uint64_t begin_ns;
  uint64_t duration_ns;
  uint64_t bytes;
  SpanKind kind;
};

// False for a slot that is being written just now, or was already overwritten by a later ticket.
bool ReadSlot(const Slot& slot, uint64_t ticket, Event& event) {
  const uint64_t stamp = slot.stamp.load(std::memory_order_acquire);
  if (stamp == kBusy || static_cast<uint32_t>(stamp) != static_cast<uint32_t>(ticket + 1)) {
    return false;
  }
  event.begin_ns = slot.begin_ns.load(std::memory_order_acquire);
  event.duration_ns = slot.duration_ns.load(std::memory_order_acquire);
  const uint64_t bytes_and_kind = slot.bytes_and_kind.load(std::memory_order_acquire);
  if (slot.stamp.load(std::memory_order_relaxed) != stamp) return false;
  event.thread = static_cast<uint32_t>(stamp >> 32);
  event.bytes = bytes_and_kind >> 8;
  event.kind = static_cast<SpanKind>(bytes_and_kind & 0xff);
  return true;
}

bool IsEpoch(SpanKind kind) {
  return kind == SpanKind::kEpochAsync || kind == SpanKind::kEpochSync;
}

// By hand: a quarter of a million events through a JSON tree would take seconds at the program's
// exit.
void PrintEvent(std::FILE* out, const Event& event, int pid) {
  std::fprintf(out,
               ",\n{\"name\":\"%s\",\"ph\":\"X\",\"ts\":%" PRIu64 ".%03u,\"dur\":%" PRIu64
               ".%03u,\"pid\":%d,\"tid\":%" PRIu32 ",\"args\":{\"%s\":%" PRIu64 "}}",
               kSpanNames[static_cast<unsigned>(event.kind)], event.begin_ns / 1000,
               static_cast<unsigned>(event.begin_ns % 1000), event.duration_ns / 1000,
               static_cast<unsigned>(event.duration_ns % 1000), pid, event.thread,
               IsEpoch(event.kind) ? "expected_us" : "bytes", event.bytes);
}

nlohmann::ordered_json NameEvent(const char* what, int pid, uint32_t thread, const char* name) {
  return {{"name", what}, {"ph", "M"}, {"pid", pid}, {"tid", thread}, {"args", {{"name", name}}}};
}

void PrintNames(std::FILE* out, int pid) {
  const auto print = [out](const nlohmann::ordered_json& event) {
    std::fputs(event.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace).c_str(), out);
  };
  print(NameEvent("process_name", pid, static_cast<uint32_t>(pid), "tidelane"));
  const unsigned count = std::min(name_count.load(std::memory_order_acquire), kMaxNames);
  for (unsigned i = 0; i < count; ++i) {
    const char* name = names[i].name.load(std::memory_order_acquire);
    if (name == nullptr) continue;  // just being added
    std::fputs(",\n", out);
    print(NameEvent("thread_name", pid, names[i].thread.load(std::memory_order_relaxed), name));
  }
}

}  // namespace

uint64_t NowNs() {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(now.tv_nsec);
}

void internal::RecordSpan(SpanKind kind, uint64_t begin_ns, uint64_t end_ns, uint64_t bytes) {
  Ring* to = ring.load(std::memory_order_acquire);
  if (to == nullptr) return;
  const uint64_t ticket = to->next.fetch_add(1, std::memory_order_relaxed);
  Slot& slot = to->slots[ticket & (to->size - 1)];
  const uint64_t duration = end_ns > begin_ns ? end_ns - begin_ns : 0;
  if (slot.stamp.exchange(kBusy, std::memory_order_acquire) == kBusy) return;
  slot.begin_ns.store(begin_ns, std::memory_order_release);
  slot.duration_ns.store(duration, std::memory_order_release);
  slot.bytes_and_kind.store(bytes << 8 | static_cast<uint64_t>(kind), std::memory_order_release);
  slot.stamp.store(uint64_t{ThreadId()} << 32 | static_cast<uint32_t>(ticket + 1),
                   std::memory_order_release);
}

void EnableTrace(uint32_t spans) {
  if (ring.load(std::memory_order_acquire) != nullptr) {
    internal::tracing.store(true, std::memory_order_relaxed);
    return;
  }
  const uint64_t size = std::bit_ceil(uint64_t{spans == 0 ? 1 : spans});
  Slot* slots = new (std::nothrow) Slot[size]();
  Ring* made = slots == nullptr ? nullptr : new (std::nothrow) Ring{slots, size};
  if (made == nullptr) {  // a program that has no memory left can do without a timeline
    delete[] slots;
    return;
  }
  ring.store(made, std::memory_order_release);
  internal::tracing.store(true, std::memory_order_release);
}

void NameTraceThread(const char* name) {
  const unsigned index = name_count.fetch_add(1, std::memory_order_acq_rel);
  if (index >= kMaxNames) {
    name_count.store(kMaxNames, std::memory_order_relaxed);
    return;
  }
  names[index].thread.store(ThreadId(), std::memory_order_relaxed);
  names[index].name.store(name, std::memory_order_release);
}

void ResetTraceAfterFork() {
  cached_thread = 0;
  const unsigned count = std::min(name_count.load(std::memory_order_relaxed), kMaxNames);
  for (unsigned i = 0; i < count; ++i) names[i].name.store(nullptr, std::memory_order_relaxed);
  name_count.store(0, std::memory_order_relaxed);
  Ring* from = ring.load(std::memory_order_relaxed);
  if (from != nullptr) from->next.store(0, std::memory_order_relaxed);
}

Status WriteTrace(const std::string& path) {
  OutputFile file;
  if (Status status = file.Open(path); !status.ok()) return status;
  std::FILE* out = file.stream();
  const int pid = getpid();
  Ring* from = ring.load(std::memory_order_acquire);
  const uint64_t end = from == nullptr ? 0 : from->next.load(std::memory_order_acquire);
  const uint64_t begin = from == nullptr || end < from->size ? 0 : end - from->size;
  uint64_t lost = begin;
  std::fputs("{\"traceEvents\":[\n", out);
  PrintNames(out, pid);
  for (uint64_t ticket = begin; ticket < end; ++ticket) {
    Event event;
    if (ReadSlot(from->slots[ticket & (from->size - 1)], ticket, event)) {
      PrintEvent(out, event, pid);
    } else {
      ++lost;
    }
  }
  std::fprintf(out,
               "\n],\n\"displayTimeUnit\":\"ms\",\n\"otherData\":{\"tidelane\":\"" TIDELANE_VERSION
               "\",\"lost_spans\":%" PRIu64 "}}\n",
               lost);
  return file.Commit();
}

}  // namespace tidelane
