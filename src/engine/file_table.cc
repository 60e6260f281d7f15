#include "engine/file_table.h"

#include <algorithm>
#include <iterator>

namespace tidelane {
namespace {

template <typename Which>
void AppendIf(const FileTable::Files& files, FileTable::Files& found, Which which) {
  std::ranges::copy_if(files, std::back_inserter(found),
                       [&](const auto& file) { return which(*file); });
}

}  // namespace

void FileTable::Reserve() {
  const size_t files = open_.size() + closed() + 1;
  for (Files* list : {&open_, &draining_, &leaving_}) {
    if (list->capacity() < files) list->reserve(2 * files);
  }
}

void FileTable::AddOpen(const std::shared_ptr<File>& file, std::optional<Opener> opener) {
  Reserve();
  CountOpen(file, opener);
  open_.push_back(file);
}

// All of it, or std::bad_alloc and nothing: counts of 0 say as much as none.
void FileTable::CountOpen(const std::shared_ptr<File>& file, std::optional<Opener> opener) {
  size_t& of_identity = by_identity_[file->identity()];
  if (opener.has_value()) {
    size_t& of_opener = by_opener_[opener->number];
    openers_[file.get()] = *opener;
    ++of_opener;
  }
  ++of_identity;
}

void FileTable::UncountOpen(const std::shared_ptr<File>& file) {
  const auto forget = [](auto& counts, const auto& of) {
    if (const auto at = counts.find(of); at != counts.end() && --at->second == 0) counts.erase(at);
  };
  forget(by_identity_, file->identity());
  const auto opener = openers_.find(file.get());
  if (opener == openers_.end()) return;
  forget(by_opener_, opener->second.number);
  openers_.erase(opener);
}

bool FileTable::Reopen(const std::shared_ptr<File>& file, Opener opener) {
  Reserve();
  const auto it = std::ranges::find(draining_, file);
  if (it == draining_.end()) return false;
  CountOpen(file, opener);
  if (!file->closing().Adopt()) {
    UncountOpen(file);
    return false;
  }
  open_.push_back(file);
  draining_.erase(it);
  return true;
}

void FileTable::StartDraining(const std::shared_ptr<File>& file) {
  draining_.push_back(file);
  if (std::erase(open_, file) != 0) UncountOpen(file);
}

bool FileTable::StartLeaving(const std::shared_ptr<File>& file) {
  const auto it = std::ranges::find(draining_, file);
  if (it == draining_.end()) return false;
  leaving_.push_back(file);
  draining_.erase(it);
  return true;
}

void FileTable::Remove(const std::shared_ptr<File>& file) {
  if (std::erase(open_, file) != 0) UncountOpen(file);
  std::erase(leaving_, file);
}

FileTable::Files FileTable::Known() const {
  Files files = open_;
  files.insert(files.end(), draining_.begin(), draining_.end());
  return files;
}

FileTable::Files FileTable::All() const {
  Files files = Known();
  files.insert(files.end(), leaving_.begin(), leaving_.end());
  return files;
}

FileTable::Files FileTable::Closed() const {
  Files files = leaving_;
  files.insert(files.end(), draining_.begin(), draining_.end());
  return files;
}

std::shared_ptr<File> FileTable::DrainingAt(const FileName& name) const {
  const auto it =
      std::ranges::find_if(draining_, [&](const auto& file) { return name.IsInodeOf(*file); });
  return it == draining_.end() ? nullptr : *it;
}

FileTable::Files FileTable::ClosedAt(const FileName& name) const {
  Files found;
  for (const Files* files : {&leaving_, &draining_})
    AppendIf(*files, found, [&](const File& file) { return name.IsInodeOf(file); });
  return found;
}

FileTable::Files FileTable::At(const FileName& name) const {
  Files found;
  for (const Files* files : {&open_, &draining_, &leaving_})
    AppendIf(*files, found, [&](const File& file) { return name.Is(file); });
  return found;
}

bool FileTable::Knows(const FileIdentity& identity) const {
  const auto is = [&](const auto& file) { return file->identity() == identity; };
  return std::ranges::any_of(open_, is) || std::ranges::any_of(draining_, is) ||
         std::ranges::any_of(leaving_, is);
}

FileTable::Files FileTable::OpenAs(const FileIdentity& identity, By by) const {
  Files found;
  if (const auto at = by_identity_.find(identity); at == by_identity_.end() || at->second == 0)
    return found;
  AppendIf(open_, found, [&](const File& file) {
    if (file.identity() != identity) return false;
    return by == By::kAnyone || openers_.contains(&file) == (by == By::kAnOpener);
  });
  return found;
}

void FileTable::NoteInside(const FileIdentity& identity, int opener) {
  for (const auto& file : OpenAs(identity, By::kAnOpener)) {
    Opener& by = openers_.at(file.get());
    if (by.number == opener) by.inside = true;
  }
}

FileTable::Files FileTable::Inside(int opener) const {
  Files found;
  AppendIf(open_, found,
           [&](const File& file) { return IsInside(file) && openers_.at(&file).number == opener; });
  return found;
}

bool FileTable::IsInside(const File& file) const {
  const auto by = openers_.find(&file);
  return by != openers_.end() && by->second.inside;
}

bool FileTable::OnlyBy(int opener) const {
  return std::ranges::all_of(
      by_opener_, [&](const auto& one) { return one.first == opener || one.second == 0; });
}

}  // namespace tidelane
