#include "publish/published_device.h"

#include <cerrno>
#include <cstdio>
#include <new>

namespace tidelane {

PublishedDevice::PublishedDevice(std::unique_ptr<Device> inner,
                                 std::shared_ptr<Publication> publication, std::string path,
                                 bool made)
    : inner_(std::move(inner)),
      publication_(std::move(publication)),
      path_(std::move(path)),
      made_(made) {
  publication_->Join();
}

int PublishedDevice::Write(uint64_t address, const struct iovec* parts, size_t count) {
  wrote_.store(true, std::memory_order_relaxed);
  const int error = inner_->Write(address, parts, count);
  if (error == 0 && !any_refused_.load(std::memory_order_relaxed)) return 0;
  uint64_t end = address;
  for (size_t i = 0; i < count; ++i) end += parts[i].iov_len;
  try {
    Note(address, end, error == 0);
  } catch (const std::bad_alloc&) {  // nobody knows any more what is missing
    publication_->Withhold();
  }
  return error;
}

void PublishedDevice::Note(uint64_t begin, uint64_t end, bool stored) {
  MutexLock lock(mutex_);
  stored ? refused_.Remove(begin, end) : refused_.Add(begin, end);
  any_refused_.store(!refused_.empty(), std::memory_order_relaxed);
}

Status PublishedDevice::Publish(Publishing when) {
  if (any_refused_.load(std::memory_order_relaxed)) {
    publication_->Withhold();
    return Status::Failed(EIO, "publish " + publication_->hidden_name() +
                                   ", part of which storage refused, as")
        .At(path_, 0, 0);
  }
  if (when == Publishing::kNow) return publication_->PublishNow(path_);
  // HDF5's lock is of no use any more, and readers would meet it.
  static_cast<void>(inner_->Unlock());
  return Leave(true);
}

void PublishedDevice::Withhold(Withholding why) {
  if (why == Withholding::kNotCreated && !made_) return;  // HDF5 looked whether it is open
  publication_->Withhold(why == Withholding::kNotCreated);
  // No call is left that could say so.
  if (why == Withholding::kNotCreated || std::exchange(told_, true)) return;
  std::fprintf(stderr, "tidelane: %s is not published: %s; what was written is in %s beside it\n",
               path_.c_str(),
               why == Withholding::kLost ? "not all of it could be written"
                                         : "the program ends by an error, and has it open",
               publication_->hidden_name().c_str());
}

}  // namespace tidelane
