#include "engine/refused_closes.h"

#include <optional>
#include <utility>

#include "publish/names.h"

namespace tidelane {

void RefusedCloses::Add(const std::shared_ptr<File>& file, int opener) {
  MutexLock lock(mutex_);
  std::erase_if(refused_, [&](const Refused& known) { return known.file.lock() == file; });
  refused_.push_back({file, opener});
}

void RefusedCloses::Forget(const std::shared_ptr<File>& file) {
  MutexLock lock(mutex_);
  std::erase_if(refused_, [&](const Refused& known) { return known.file.lock() == file; });
}

std::vector<std::shared_ptr<File>> RefusedCloses::FailingOf(int opener) {
  std::vector<std::shared_ptr<File>> failing;
  MutexLock lock(mutex_);
  // One that could be stored since is as any open file.
  std::erase_if(refused_, [](const Refused& known) {
    const auto file = known.file.lock();
    return file == nullptr || !file->drainer().failing();
  });
  for (const Refused& known : refused_) {
    if (auto file = known.file.lock(); file != nullptr && known.opener == opener)
      failing.push_back(std::move(file));
  }
  return failing;
}

void RefusedCloses::DropNameless(int opener) {
  for (const auto& file : FailingOf(opener)) {
    if (file->drainer().stuck() && file->nameless()) file->Abandon();
  }
}

void RefusedCloses::DropAt(const char* path, int opener) {
  const auto failing = FailingOf(opener);
  if (failing.empty()) return;
  const std::optional<FileIdentity> found = IdentityBehind(path);
  for (const auto& file : failing) {
    if (found == file->identity()) file->Abandon();
  }
}

}  // namespace tidelane
