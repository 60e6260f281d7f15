#include "vfd/open_handles.h"

#include <algorithm>
#include <array>
#include <utility>

namespace tidelane::vfd {

// Never destroyed: HDF5 may close files while the process ends.
OpenHandles& OpenHandles::In(int slot) {
  static auto& all = *new std::array<OpenHandles, h5::kSlots>;
  return all[static_cast<size_t>(slot)];
}

void OpenHandles::Add(Handle* handle) {
  if (handles_.size() == handles_.capacity()) handles_.reserve(2 * handles_.size() + 8);
  by_file_[handle->file.get()] = handle;
  handles_.push_back(handle);
}

void OpenHandles::Remove(const Handle* handle) {
  if (handle->registered != nullptr) --single_;
  // The program closes what it opened last as often as what it opened first.
  const auto sorted = std::ranges::lower_bound(handles_, handle->pub.fileno, {},
                                               [](const Handle* one) { return one->pub.fileno; });
  const auto at =
      sorted != handles_.end() && *sorted == handle ? sorted : std::ranges::find(handles_, handle);
  if (at != handles_.end()) handles_.erase(at);
  const auto of_file = by_file_.find(handle->file.get());
  if (of_file != by_file_.end() && of_file->second == handle) by_file_.erase(of_file);
}

Handle* OpenHandles::WithSerial(unsigned long serial) const {
  const auto number = [](const Handle* handle) { return handle->pub.fileno; };
  const auto behind = std::ranges::upper_bound(handles_, serial, {}, number);
  if (behind != handles_.begin() && number(behind[-1]) == serial) return behind[-1];
  // The order does not hold where a file outlived an H5close, nor for one that is just being opened. Of two with one number the
  // newer one is meant.
  const auto at = std::ranges::find(handles_.rbegin(), handles_.rend(), serial, number);
  return at == handles_.rend() ? nullptr : *at;
}

Handle* OpenHandles::Of(const File& file) const {
  const auto at = by_file_.find(&file);
  return at == by_file_.end() ? nullptr : at->second;
}

// HDF5 asks the class in the public part of an open file which calls there are, and it keeps a copy of the class that it was
// given.
bool OpenHandles::TakeSingly(Handle& handle, const H5FD_class_t* single) {
  const bool before = handle.registered != nullptr;
  if (before == (single != nullptr)) return before;
  if (single != nullptr) {
    handle.registered = std::exchange(handle.pub.cls, single);
    ++single_;
  } else {
    TakeMany(handle);
  }
  return before;
}

void OpenHandles::TakeMany(Handle& handle) {
  if (handle.registered == nullptr) return;
  handle.pub.cls = std::exchange(handle.registered, nullptr);
  --single_;
}

void OpenHandles::TakeMany() {
  if (single_ == 0) return;
  for (Handle* const handle : handles_) TakeMany(*handle);
}

}  // namespace tidelane::vfd
