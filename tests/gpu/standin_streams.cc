// The threads of streams, and what is waited for: see standin_streams.h.
#include "gpu/standin_streams.h"

#include <algorithm>
#include <map>
#include <thread>
#include <utility>

#include "gpu/standin_world.h"

namespace tidelane::standin {
namespace {

// A stream for each thread and context.
thread_local std::map<Context*, Stream*> per_thread;

}  // namespace

Streams& Streams::all() {
  static auto* const instance =
      new Streams;  // never destroyed: the threads use it until the process ends
  return *instance;
}

Stream* Streams::create(Context* context, bool blocking) {
  auto* const stream = new Stream;
  stream->context = context;
  stream->blocking = blocking;
  const Lock lock(mutex_);
  streams_.insert(stream);
  if (blocking) context->blocking.push_back(stream);
  return stream;
}

Event* Streams::create_event(Context* context, unsigned flags) {
  auto* const event = new Event{context, flags, false, nullptr};
  const Lock lock(mutex_);
  events_.insert(event);
  return event;
}

Context* Streams::create_context(const Lock&, int device) {
  auto* const context = new Context;
  context->device = device;
  context->legacy.context = context;
  context->id = ++ids_;
  contexts_.insert(context);
  return context;
}

Context* Streams::create_context(int device) {
  const Lock lock(mutex_);
  return create_context(lock, device);
}

Context* Streams::retain(int device) {
  const Lock lock(mutex_);
  Context*& primary = primaries_[device];
  if (primary == nullptr) primary = create_context(lock, device);
  primary->primary = true;
  ++primary->holders;
  return primary;
}

CUresult Streams::release(int device, Context** ended) {
  *ended = nullptr;
  {
    const Lock lock(mutex_);
    Context* const primary = primaries_[device];
    if (primary == nullptr) return kCudaInvalidContext;
    if (--primary->holders > 0) return kCudaSuccess;
    *ended = primary;
  }
  end(*ended);
  return kCudaSuccess;
}

Context* Streams::renew(int device) {
  Context* primary = nullptr;
  {
    const Lock lock(mutex_);
    primary = primaries_[device];
  }
  if (primary == nullptr) return nullptr;
  wait(primary);
  const Lock lock(mutex_);
  end_parts(lock, primary);
  primary->sticky = kCudaSuccess;
  primary->id = ++ids_;
  return primary;
}

bool Streams::active(int device) {
  const Lock lock(mutex_);
  return primaries_[device] != nullptr;
}

CUresult Streams::end(Stream* stream) {
  const Lock lock(mutex_);
  if (stream == &stream->context->legacy) return kCudaInvalidHandle;
  stream->ended = true;  // its thread does what is left
  changed_.notify_all();
  return kCudaSuccess;
}

CUresult Streams::end(Event* event) {
  const Lock lock(mutex_);
  event->ended = true;
  return kCudaSuccess;
}

void Streams::end(Context* context) {
  wait(context);
  const Lock lock(mutex_);
  context->ended = true;
  if (primaries_[context->device] == context) primaries_[context->device] = nullptr;
  end_parts(lock, context);
}

void Streams::end_parts(const Lock&, Context* context) {
  for (Stream* stream : streams_) stream->ended = stream->ended || stream->context == context;
  for (Event* event : events_) event->ended = event->ended || event->context == context;
  changed_.notify_all();
}

Context* Streams::context(CUcontext handle) {
  auto* const context = reinterpret_cast<Context*>(handle);
  const Lock lock(mutex_);
  return contexts_.count(context) != 0 && !context->ended ? context : nullptr;
}

Event* Streams::event(CUevent handle) {
  auto* const event = reinterpret_cast<Event*>(handle);
  const Lock lock(mutex_);
  return events_.count(event) != 0 && !event->ended ? event : nullptr;
}

Stream* Streams::stream(CUstream handle, Context* current) {
  const auto number = reinterpret_cast<uintptr_t>(handle);
  if (number <= kCudaLegacyStream) return &current->legacy;
  if (number == kCudaPerThreadStream) {
    Stream*& own = per_thread[current];
    if (own == nullptr || own->ended) own = create(current, true);
    return own;
  }
  auto* const stream = reinterpret_cast<Stream*>(handle);
  const Lock lock(mutex_);
  return streams_.count(stream) != 0 && !stream->ended ? stream : nullptr;
}

std::vector<Mark> Streams::before(const Stream& stream) const {
  const Context& context = *stream.context;
  if (!stream.blocking) return {};
  if (&stream != &context.legacy) return {{&stream.context->legacy, context.legacy.given}};
  std::vector<Mark> marks;
  for (Stream* other : context.blocking) marks.push_back({other, other->given});
  return marks;
}

Mark Streams::give(const Lock&, Stream* stream, Work work) {
  for (const Mark& mark : before(*stream)) work.after.push_back(mark);
  stream->queue.push_back(std::move(work));
  if (!stream->has_thread) {
    stream->has_thread = true;
    std::thread([this, stream] { serve(stream); }).detach();
  }
  changed_.notify_all();
  return {stream, ++stream->given};
}

Mark Streams::give(Stream* stream, Work work) {
  Lock lock(mutex_);
  return give(lock, stream, std::move(work));
}

bool Streams::may_start(const Stream& stream) const {
  if (stream.queue.empty()) return false;
  const std::vector<Mark>& after = stream.queue.front().after;
  return std::all_of(after.begin(), after.end(), [&](const Mark& mark) { return is_done(mark); });
}

void Streams::note_failure(Stream* stream, CUresult error, bool sticky) {
  if (error == kCudaSuccess) return;
  if (sticky) stream->context->sticky = error;
  if (stream->failure != nullptr && !stream->failure->told) return;
  stream->failure = std::make_shared<Failure>(Failure{error, false});
}

void Streams::serve(Stream* stream) {
  Lock lock(mutex_);
  while (true) {
    changed_.wait(lock,
                  [&] { return may_start(*stream) || (stream->ended && stream->queue.empty()); });
    if (stream->queue.empty()) break;
    Work work = std::move(stream->queue.front());
    stream->queue.pop_front();
    const bool dead = stream->context->sticky != kCudaSuccess;
    lock.unlock();
    if (work.delay.count() != 0) std::this_thread::sleep_for(work.delay);
    const CUresult error = dead ? kCudaSuccess : work.run();
    work.run = nullptr;  // what it holds is not needed any more by whoever waits for it
    lock.lock();
    note_failure(stream, error, work.sticky);
    ++stream->done;
    changed_.notify_all();
  }
  std::erase(stream->context->blocking, stream);
  stream->has_thread = false;
}

CUresult Streams::record(Event* event, Stream* stream) {
  if (event->context != stream->context) return kCudaInvalidHandle;
  auto record = std::make_shared<Record>();
  Work work;
  work.delay = delay();
  work.run = [this, record, stream] {
    const Lock lock(mutex_);
    record->when = std::chrono::steady_clock::now();
    record->failure = stream->failure;
    return CUresult{kCudaSuccess};
  };
  Lock lock(mutex_);
  record->mark = give(lock, stream, std::move(work));
  event->record = std::move(record);
  return kCudaSuccess;
}

CUresult Streams::wait_event(Stream* stream, Event* event) {
  Lock lock(mutex_);
  if (event->record == nullptr) return kCudaSuccess;
  Work work;
  work.run = [] { return CUresult{kCudaSuccess}; };
  work.after.push_back(event->record->mark);
  give(lock, stream, std::move(work));
  return kCudaSuccess;
}

CUresult Streams::tell(const std::shared_ptr<Failure>& failure) {
  if (failure == nullptr || failure->told) return kCudaSuccess;
  failure->told = true;
  return failure->error;
}

std::vector<Mark> Streams::all_of(Stream* stream) const {
  std::vector<Mark> marks{{stream, stream->given}};
  if (stream == &stream->context->legacy) {
    for (const Mark& mark : before(*stream)) marks.push_back(mark);
  }
  return marks;
}

CUresult Streams::wait(Stream* stream) {
  Lock lock(mutex_);
  const std::vector<Mark> marks = all_of(stream);
  changed_.wait(lock, [&] {
    return std::all_of(marks.begin(), marks.end(), [&](const Mark& mark) { return is_done(mark); });
  });
  if (stream->context->sticky != kCudaSuccess) return stream->context->sticky;
  return tell(stream->failure);
}

CUresult Streams::wait(const Mark& mark) {
  Lock lock(mutex_);
  changed_.wait(lock, [&] { return is_done(mark); });
  if (mark.stream->context->sticky != kCudaSuccess) return mark.stream->context->sticky;
  return tell(mark.stream->failure);
}

CUresult Streams::wait(Event* event) {
  Lock lock(mutex_);
  const std::shared_ptr<Record> record = event->record;
  if (record == nullptr) return kCudaSuccess;
  changed_.wait(lock, [&] { return is_done(record->mark); });
  if (event->context->sticky != kCudaSuccess) return event->context->sticky;
  return tell(record->failure);
}

CUresult Streams::wait(Context* context) {
  Lock lock(mutex_);
  std::vector<Mark> marks{{&context->legacy, context->legacy.given}};
  for (Stream* stream : streams_) {
    if (stream->context == context) marks.push_back({stream, stream->given});
  }
  changed_.wait(lock, [&] {
    return std::all_of(marks.begin(), marks.end(), [&](const Mark& mark) { return is_done(mark); });
  });
  if (context->sticky != kCudaSuccess) return context->sticky;
  CUresult first = kCudaSuccess;
  for (const Mark& mark : marks) {
    if (first == kCudaSuccess) first = tell(mark.stream->failure);
  }
  return first;
}

CUresult Streams::query(Stream* stream) {
  const Lock lock(mutex_);
  if (stream->context->sticky != kCudaSuccess) return stream->context->sticky;
  for (const Mark& mark : all_of(stream)) {
    if (!is_done(mark)) return kCudaNotReady;
  }
  return tell(stream->failure);
}

CUresult Streams::query(Event* event) {
  const Lock lock(mutex_);
  if (event->context->sticky != kCudaSuccess) return event->context->sticky;
  if (event->record == nullptr) return kCudaSuccess;
  return is_done(event->record->mark) ? tell(event->record->failure) : kCudaNotReady;
}

CUresult Streams::elapsed(Event* from, Event* to, float* milliseconds) {
  const Lock lock(mutex_);
  for (const Event* event : {from, to}) {
    if ((event->flags & kCudaNoTiming) != 0 || event->record == nullptr) return kCudaInvalidHandle;
    if (!is_done(event->record->mark)) return kCudaNotReady;
  }
  const std::chrono::duration<float, std::milli> took = to->record->when - from->record->when;
  *milliseconds = took.count();
  return kCudaSuccess;
}

CUresult Streams::sticky(Context* context) {
  const Lock lock(mutex_);
  return context->sticky;
}

size_t Streams::pending() {
  const Lock lock(mutex_);
  size_t work = 0;
  for (const Stream* stream : streams_) work += stream->given - stream->done;
  for (const Context* context : contexts_) work += context->legacy.given - context->legacy.done;
  return work;
}

}  // namespace tidelane::standin
