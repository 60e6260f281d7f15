#include "tools/drain_rate.h"

#include <algorithm>

#include "base/words.h"

namespace tidelane::tools {
namespace {

using Clock = std::chrono::steady_clock;
// A large file goes at once, after a while: no two looks alone say how fast it is.
constexpr auto kWindow = std::chrono::seconds(10);

}  // namespace

Seen Look(const Places& places) { return {.at = Clock::now(), .files = FilesIn(places)}; }

DrainRate::DrainRate(const Seen& first) : files_(first.files), sums_{{first.at, 0}} {}

void DrainRate::Add(const Seen& now) {
  uint64_t drained = sums_.back().drained;
  for (const TieredFile& before : files_) {
    const auto left = std::ranges::find_if(now.files, [&](const TieredFile& file) {
      return file.place == before.place && file.entry.name == before.entry.name;
    });
    const uint64_t bytes = left == now.files.end() ? 0 : left->bytes;
    drained += before.bytes - std::min(before.bytes, bytes);
  }
  files_ = now.files;
  sums_.push_back({now.at, drained});
  while (sums_.size() > 2 && sums_[1].at <= now.at - kWindow) sums_.pop_front();
}

std::string DrainRate::InWords() const {
  uint64_t moving = 0;
  uint64_t waiting = 0;
  for (const TieredFile& file : files_) (file.trouble ? waiting : moving) += file.bytes;
  const double seconds = std::chrono::duration<double>(sums_.back().at - sums_.front().at).count();
  const uint64_t drained = sums_.back().drained - sums_.front().drained;
  std::string text;
  if (drained != 0 && seconds > 0) {
    const double rate = static_cast<double>(drained) / seconds;
    text = BytesInWords(static_cast<uint64_t>(rate)) + "/s";
    if (moving != 0) Print(text, ", %.0f s to go", static_cast<double>(moving) / rate);
  }
  if (waiting != 0) text += (text.empty() ? "" : "; ") + BytesInWords(waiting) + " waiting";
  return text.empty() ? text : text + '\n';
}

}  // namespace tidelane::tools
