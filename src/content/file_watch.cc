#include "content/file_watch.h"

#include <time.h>

#include <optional>
#include <utility>

#include "base/trace.h"

namespace tidelane {
namespace {

uint64_t FileSystemNowNs() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

}  // namespace

bool FileWatch::Changed(const ByteSource& source, Look look) {
  const uint64_t now_ns = NowNs();
  if (look == Look::kNowAndThen && looked_ns_ != 0 && now_ns - looked_ns_ < kLookNs) return false;
  const std::optional<FileVersion> version = source.watched();
  if (!version.has_value()) return false;
  const bool first = std::exchange(looked_ns_, now_ns) == 0;
  const bool other = !first && seen_ != *version;
  const bool changed = other || (!first && !settled_);
  changed_ |= other;
  seen_ = *version;
  settled_ = Settled(*version);
  return changed;
}

bool FileWatch::Settled(const FileVersion& version) {
  // A server's clock may be ahead of ours.
  const uint64_t time_ns = FileSystemNowNs();
  return time_ns < version.modified_ns || time_ns - version.modified_ns > kTickNs;
}

}  // namespace tidelane
