#include "stress/catalog.h"

#include <algorithm>

namespace tidelane::stress {
namespace {

bool under(const std::string& path, const std::string& root) {
  return path == root || (path.size() > root.size() && path.compare(0, root.size(), root) == 0 &&
                          path[root.size()] == '/');
}

}  // namespace

size_t Dataset::elements() const {
  size_t n = 1;
  for (int i = 0; i < rank; ++i) n *= dims[i];
  return n;
}

void FileState::clear_contents() {
  datasets.clear();
  groups.clear();
  links.clear();
  attributes.clear();
  printfs.clear();
}

bool FileState::taken(const std::string& path) const {
  return std::any_of(datasets.begin(), datasets.end(), [&](auto& d) { return d.path == path; }) ||
         std::find(groups.begin(), groups.end(), path) != groups.end() ||
         std::find(links.begin(), links.end(), path) != links.end();
}

void FileState::remove(const std::string& path) {
  std::erase_if(datasets, [&](auto& d) { return under(d.path, path); });
  std::erase_if(groups, [&](auto& g) { return under(g, path); });
  std::erase_if(links, [&](auto& l) { return under(l, path); });
  std::erase_if(attributes, [&](auto& a) { return under(a.owner, path); });
}

void FileState::rename(const std::string& from, const std::string& to) {
  const auto move = [&](std::string& path) {
    if (under(path, from)) path = to + path.substr(from.size());
  };
  for (auto& d : datasets) move(d.path);
  for (auto& g : groups) move(g);
  for (auto& l : links) move(l);
  for (auto& a : attributes) move(a.owner);
}

}  // namespace tidelane::stress
