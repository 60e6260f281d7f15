// The stand-in's contexts, streams and events.
//
// Each stream has a thread that does its work in order:
//   1. Work may start when what it waits for is done: marks, each of a stream and a number of its work.
//   2. Work of a context's legacy stream waits for all that its blocking streams were given before; work of a blocking
//      stream waits for all that the legacy stream was given before. Others wait for nothing.
//   3. It then waits for its delay, and is done late.
// An event is the mark of the work that records it. The first failure of a stream is told once, to whoever waits for the
// stream or for an event that was recorded behind it; a sticky one is the context's, and ends all its work.
//
// Invariant: numbers of a stream's work only grow; `done` never exceeds `given`. Handles stay mapped after their end,
// so that their use is noticed.
//
// Thread safety: any thread. One lock for all streams (of Streams), not held while work is done.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <vector>

#include "gpu/standin_cuda.h"

namespace tidelane::standin {

struct Context;
struct Stream;

struct Mark {
  Stream* stream = nullptr;
  uint64_t number = 0;
};

struct Failure {
  CUresult error = kCudaSuccess;
  bool told = false;
};

struct Work {
  std::function<CUresult()> run;
  std::vector<Mark> after;
  std::chrono::microseconds delay{0};
  bool sticky = false;  // what it fails with
};

struct Stream {
  Context* context = nullptr;
  bool blocking = true;
  bool ended = false;
  bool has_thread = false;
  uint64_t given = 0;
  uint64_t done = 0;
  std::deque<Work> queue;
  std::shared_ptr<Failure> failure;
};

struct Context {
  int device = 0;
  bool primary = false;
  bool ended = false;
  int holders = 0;  // of a primary context
  uint64_t id = 0;
  CUresult sticky = kCudaSuccess;
  Stream legacy;
  std::vector<Stream*> blocking;  // without the legacy one
};

struct Record {
  Mark mark;
  std::shared_ptr<Failure> failure;
  std::chrono::steady_clock::time_point when;
};

struct Event {
  Context* context = nullptr;
  unsigned flags = 0;
  bool ended = false;
  std::shared_ptr<Record> record;
};

class Streams {
 public:
  static Streams& all();

  Stream* create(Context* context, bool blocking);
  Event* create_event(Context* context, unsigned flags);
  Context* create_context(int device);
  // Primary contexts live while somebody holds them; release() ends one that nobody holds any more.
  Context* retain(int device);
  // Ends all that a primary context holds; it has the same handle afterwards, as with the driver.
  Context* renew(int device);
  CUresult release(int device, Context** ended);
  bool active(int device);
  CUresult end(Stream* stream);
  CUresult end(Event* event);
  void end(Context* context);

  // Handles of the program's; nullptr if they are not, or not any more.
  Context* context(CUcontext handle);
  Event* event(CUevent handle);
  // NULL, 1 and 2 are the current context's.
  Stream* stream(CUstream handle, Context* current);

  Mark give(Stream* stream, Work work);
  CUresult record(Event* event, Stream* stream);
  CUresult wait_event(Stream* stream, Event* event);

  CUresult wait(Stream* stream);
  CUresult wait(const Mark& mark);
  CUresult wait(Event* event);
  CUresult wait(Context* context);
  CUresult query(Stream* stream);
  CUresult query(Event* event);
  CUresult elapsed(Event* from, Event* to, float* milliseconds);
  CUresult sticky(Context* context);
  size_t pending();

 private:
  using Lock = std::unique_lock<std::mutex>;

  Context* create_context(const Lock& held, int device);
  void end_parts(const Lock& held, Context* context);
  void serve(Stream* stream);
  bool may_start(const Stream& stream) const;
  bool is_done(const Mark& mark) const { return mark.stream->done >= mark.number; }
  // What has to be done before work that is given to the stream now.
  std::vector<Mark> before(const Stream& stream) const;
  Mark give(const Lock& held, Stream* stream, Work work);
  void note_failure(Stream* stream, CUresult error, bool sticky);
  static CUresult tell(const std::shared_ptr<Failure>& failure);
  std::vector<Mark> all_of(Stream* stream) const;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::set<Context*> contexts_;
  std::set<Stream*> streams_;
  std::set<Event*> events_;
  uint64_t ids_ = 0;
  Context* primaries_[2] = {nullptr, nullptr};
};

}  // namespace tidelane::standin
