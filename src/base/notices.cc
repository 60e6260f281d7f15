#include "base/notices.h"

#include <algorithm>
#include <utility>

#include "base/annotations.h"

namespace tidelane {
namespace {

constexpr size_t kKept = 64;

struct Listener {
  Mutex mutex;
  ScheduleTelling schedule TL_GUARDED_BY(mutex) = nullptr;
  TellNotices tell TL_GUARDED_BY(mutex) = nullptr;
  std::vector<Notice> waiting TL_GUARDED_BY(mutex);
  std::vector<Notice> told TL_GUARDED_BY(mutex);  // the newest, at most kKept
};

Listener& TheListener() {
  static Listener& listener = *new Listener;  // never destroyed: files outlive static destruction
  return listener;
}

bool Contains(const std::vector<Notice>& notices, Fallback reason, const std::string& path) {
  return std::ranges::any_of(notices, [&](const Notice& notice) {
    return notice.reason == reason && notice.path == path;
  });
}

}  // namespace

void ListenForNotices(ScheduleTelling schedule, TellNotices tell) {
  Listener& listener = TheListener();
  MutexLock lock(listener.mutex);
  listener.schedule = schedule;
  listener.tell = tell;
}

void NoteNative(Fallback reason, const std::string& path) {
  Listener& listener = TheListener();
  MutexLock lock(listener.mutex);
  if (listener.schedule == nullptr || listener.waiting.size() >= kKept) return;
  if (Contains(listener.waiting, reason, path) || Contains(listener.told, reason, path)) return;
  listener.waiting.push_back({reason, path});
  // Refused where many calls wait already: then those tell of this one, too, or the next notice does.
  static_cast<void>(listener.schedule(listener.tell, nullptr));
}

std::vector<Notice> TakeNotices() {
  Listener& listener = TheListener();
  MutexLock lock(listener.mutex);
  std::vector<Notice> taken = std::exchange(listener.waiting, {});
  listener.told.insert(listener.told.end(), taken.begin(), taken.end());
  if (listener.told.size() > kKept) {
    listener.told.erase(listener.told.begin(), listener.told.end() - kKept);
  }
  return taken;
}

}  // namespace tidelane
