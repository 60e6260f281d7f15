#include "publish/unpublished.h"

namespace tidelane {

Unpublished& Unpublished::Get() {
  static auto* const table = new Unpublished;  // never destroyed: lanes may publish late
  return *table;
}

void Unpublished::Add(const DirectoryEntry& entry,
                      const std::shared_ptr<Publication>& publication) {
  MutexLock lock(mutex_);
  entries_[{entry.folder_identity, entry.name}] = {publication.get(), publication};
  count_.store(entries_.size(), std::memory_order_release);
}

void Unpublished::Remove(const DirectoryEntry& entry, const Publication* publication) {
  MutexLock lock(mutex_);
  const auto at = entries_.find({entry.folder_identity, entry.name});
  if (at == entries_.end() || at->second.which != publication) return;
  entries_.erase(at);
  count_.store(entries_.size(), std::memory_order_release);
}

std::shared_ptr<Publication> Unpublished::At(const char* path) {
  if (count_.load(std::memory_order_acquire) == 0 || path == nullptr) return nullptr;
  DirectoryEntry entry;
  if (DirectoryEntry::Find(path, true, entry) != 0) return nullptr;
  MutexLock lock(mutex_);
  const auto at = entries_.find({entry.folder_identity, entry.name});
  return at == entries_.end() ? nullptr : at->second.alive.lock();
}

}  // namespace tidelane
