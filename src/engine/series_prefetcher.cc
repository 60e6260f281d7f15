#include "engine/series_prefetcher.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>

#include <algorithm>
#include <new>
#include <utility>

namespace tidelane {
namespace {

constexpr size_t kMostDigits = 18;
// Longer than a tick of any file system's clock, and than clocks of a cluster are apart.
constexpr uint64_t kSettledNs = 2'000'000'000;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

bool Settled(const FileVersion& version) {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  const uint64_t now_ns =
      static_cast<uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(now.tv_nsec);
  return std::max(version.modified_ns, version.changed_ns) + kSettledNs < now_ns;
}

}  // namespace

std::optional<NumberedName> NumberedName::Of(const std::string& path) {
  const size_t name = path.rfind('/') + 1;  // npos + 1 is 0
  // "h5" is no number: a suffix is what it always is.
  const size_t dot = std::max(path.rfind('.'), name);
  size_t end = dot == std::string::npos ? path.size() : dot;
  while (end > name && !IsDigit(path[end - 1])) --end;
  size_t begin = end;
  while (begin > name && IsDigit(path[begin - 1])) --begin;
  if (begin == end || end - begin > kMostDigits) return std::nullopt;
  return NumberedName{path.substr(0, begin), std::stoull(path.substr(begin, end - begin)),
                      end - begin, path.substr(end)};
}

std::string NumberedName::With(uint64_t other) const {
  std::string text = std::to_string(other);
  if (text.size() < digits) text.insert(0, digits - text.size(), '0');
  return before + text + after;
}

// A file that the program has not opened yet.
class NextFile final : public LaneTask {
 public:
  NextFile(std::string path, std::vector<ByteRange> places, Lanes& lanes,
           std::shared_ptr<PrefetchBudget> room, std::function<bool(const FileIdentity&)> is_ours)
      : path_(std::move(path)),
        places_(std::move(places)),
        lanes_(lanes),
        room_(std::move(room)),
        is_ours_(std::move(is_ours)) {}

  void RunOne() override {
    try {
      Begin();
    } catch (const std::bad_alloc&) {
      GiveTo(nullptr);  // no memory, no guess
    }
  }

  /// What was fetched of it, or is on its way, becomes the file's if it is this one. Nothing is begun here afterwards.
  void GiveTo(File* file) TL_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    over_ = true;
    const std::shared_ptr<PrefetchBuffer> pieces = std::exchange(pieces_, nullptr);
    if (pieces == nullptr) return;
    if (file != nullptr && file->identity() == identity_) {
      file->reads().TakeOverAhead(pieces, version_);
    } else {
      pieces->DropAll();
    }
  }

 private:
  void Begin() TL_EXCLUDES(mutex_) {
    const int fd = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return;  // the series has ended
    const std::shared_ptr<Device> device = MakePosixDevice(fd);
    struct stat status;
    FileVersion version;
    if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode) || device->Version(version) != 0 ||
        !Settled(version)) {
      return;
    }
    const FileIdentity identity = IdentityIn(status);
    if (is_ours_(identity)) return;
    for (ByteRange& place : places_) {
      place.end = std::min(place.end, version.size);
      place.begin = std::min(place.begin, place.end);
    }
    auto pieces = std::make_shared<PrefetchBuffer>(room_->slab_size());
    pieces->Want(places_, room_->most());
    const auto fetcher = std::make_shared<AheadFetcher>(
        lanes_, room_, pieces, [device](uint64_t address, uint64_t size, std::byte* to) {
          return device->Read(address, to, size) == 0;
        });
    {
      MutexLock lock(mutex_);
      if (over_) return;
      pieces_ = std::move(pieces);
      version_ = version;
      identity_ = identity;
    }
    fetcher->Start();
  }

  const std::string path_;
  std::vector<ByteRange> places_;  // RunOne's
  Lanes& lanes_;
  const std::shared_ptr<PrefetchBudget> room_;
  const std::function<bool(const FileIdentity&)> is_ours_;
  Mutex mutex_;
  bool over_ TL_GUARDED_BY(mutex_) = false;
  FileVersion version_ TL_GUARDED_BY(mutex_);
  FileIdentity identity_ TL_GUARDED_BY(mutex_);
  std::shared_ptr<PrefetchBuffer> pieces_ TL_GUARDED_BY(mutex_);
};

SeriesPrefetcher::SeriesPrefetcher(Lanes& lanes, std::shared_ptr<PrefetchBudget> room,
                                   std::function<bool(const FileIdentity&)> is_ours)
    : lanes_(lanes), room_(std::move(room)), is_ours_(std::move(is_ours)) {}

void SeriesPrefetcher::Opened(File& file) {
  std::optional<NumberedName> name = NumberedName::Of(file.path());
  if (!name.has_value()) return;
  std::shared_ptr<NextFile> next;
  {
    MutexLock lock(mutex_);
    const bool follows = last_.has_value() && last_->Alike(*name);
    if (!follows || name->number != last_->number)  // else it is the same again
      step_ = follows ? name->number - last_->number : 0;
    last_ = std::move(name);
    next = std::exchange(next_, nullptr);
  }
  file.reads().RecordRanges();
  if (next != nullptr) next->GiveTo(&file);
}

void SeriesPrefetcher::Closing(File& file) {
  std::vector<ByteRange> places = file.reads().TakeRecordedRanges();
  if (places.empty()) return;
  std::shared_ptr<NextFile> next;
  {
    MutexLock lock(mutex_);
    // Only the file opened last, and only if the one before it was opened before it.
    if (step_ == 0 || next_ != nullptr || file.path() != last_->With(last_->number)) return;
    next = next_ = std::make_shared<NextFile>(last_->With(last_->number + step_), std::move(places),
                                              lanes_, room_, is_ours_);
  }
  lanes_.Schedule(std::move(next));
}

void SeriesPrefetcher::Forget() {
  std::shared_ptr<NextFile> next;
  {
    MutexLock lock(mutex_);
    next = std::exchange(next_, nullptr);
  }
  if (next != nullptr) next->GiveTo(nullptr);
}

}  // namespace tidelane
