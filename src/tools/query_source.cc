#include "tools/query_source.h"

#include <algorithm>
#include <string_view>

#include "base/nearest.h"
#include "tools/locate.h"

namespace tidelane::tools {
namespace {

constexpr int kByName = 0;    // H5_INDEX_NAME
constexpr int kAnyOrder = 2;  // H5_ITER_NATIVE
constexpr size_t kMostLooked = 10000;
constexpr size_t kMostTold = 8;
constexpr size_t kMostFieldDepth = 8;

int Collect(hid_t, const char* name, const void*, void* to) {
  auto& names = *static_cast<std::vector<std::string>*>(to);
  names.emplace_back(name);
  return names.size() < kMostLooked ? 0 : 1;
}

std::string LastPart(const std::string& path) {
  const size_t end = path.find_last_not_of('/') + 1;
  const size_t begin = path.substr(0, end).rfind('/') + 1;
  return path.substr(begin, end - begin);
}

std::string Joined(const std::string& folder, const std::string& name) {
  return folder.ends_with('/') ? folder + name : folder + "/" + name;
}

// "; the nearest is b", or some of what there is.
std::string NearestOf(const std::string& name, const std::vector<std::string>& names,
                      const std::string& owner) {
  const std::vector<std::string_view> known(names.begin(), names.end());
  if (const std::string_view meant = Meant(name, known); !meant.empty())
    return "; the nearest is " + std::string(meant);
  if (names.empty()) return "; " + owner + " is empty";
  std::string text = "; " + owner + " has ";
  for (size_t i = 0; i < std::min(names.size(), kMostTold); ++i)
    text += (i == 0 ? "" : ", ") + names[i];
  return names.size() > kMostTold ? text + ", …" : text;
}

}  // namespace

std::string SourceColumn::Field() const {
  std::string field;
  for (const std::string& part : fields) {
    if (!field.empty()) field += '.';
    for (const char c : part) {
      if (c == '.') field += '\\';
      field += c;
    }
  }
  return field;
}

std::string Source::Open(const std::string& path) {
  path_ = path;
  file_ = Id(hdf5_, hdf5_.objects.open_file(path.c_str(), 0, kDefault));
  if (file_.valid()) return {};
  const std::string why = hdf5_.Why();
  if (why.find("unable to lock file") != std::string::npos) {
    return path +
           " is locked: a program has it open for writing. HDF5_USE_FILE_LOCKING=FALSE reads it "
           "all the same, as far as it is whole";
  }
  if (hdf5_.objects.is_accessible(path.c_str(), kDefault) == 0) return path + " is no HDF5 file";
  return path + " cannot be opened: " + why;
}

std::string Source::UseGroup(const std::string& path) {
  group_ = Id(hdf5_, hdf5_.objects.open(file_.get(), path.c_str(), kDefault));
  if (!group_.valid()) return NotThere("group", file_.get(), path);
  if (hdf5_.objects.kind(group_.get()) != static_cast<int>(Hdf5Object::kGroup))
    return path + " is no group: --dataset " + path + " asks its fields";
  group_path_ = path.starts_with('/') ? path : "/" + path;
  return {};
}

std::string Source::UseDataset(const std::string& path) {
  table_ = Id(hdf5_, hdf5_.objects.open(file_.get(), path.c_str(), kDefault));
  if (!table_.valid()) return NotThere("dataset", file_.get(), path);
  if (hdf5_.objects.kind(table_.get()) != static_cast<int>(Hdf5Object::kDataset))
    return path + " is no dataset: --group " + path + " asks its datasets";
  table_type_ = Id(hdf5_, hdf5_.data.type(table_.get()));
  if (!table_type_.valid()) return path + ": " + hdf5_.Why();
  table_path_ = path.starts_with('/') ? path : "/" + path;
  return {};
}

std::string Source::AddColumn(const std::string& name) {
  const auto same = [&](const SourceColumn& column) { return column.name == name; };
  if (std::ranges::any_of(columns_, same)) return {};
  if (!table_.valid()) return AddDataset(name);
  return hdf5_.types.of(table_type_.get()) == Hdf5Class::kCompound ? AddField(name)
                                                                   : AddElements(name);
}

std::string Source::AddDataset(const std::string& name) {
  auto dataset =
      std::make_unique<Id>(hdf5_, hdf5_.objects.open(group_.get(), name.c_str(), kDefault));
  if (!dataset->valid()) return NotThere("dataset", group_.get(), name);
  if (hdf5_.objects.kind(dataset->get()) != static_cast<int>(Hdf5Object::kDataset))
    return "'" + name + "' is no dataset";
  SourceColumn column;
  column.name = name;
  column.path = name.starts_with('/') ? name : Joined(group_path_, name);
  column.type = Id(hdf5_, hdf5_.data.type(dataset->get()));
  if (!column.type.valid()) return "'" + name + "': " + hdf5_.Why();
  if (hdf5_.types.of(column.type.get()) == Hdf5Class::kCompound) {
    std::string text =
        "'" + name + "' is a compound dataset: --dataset " + column.path + " asks its fields";
    const std::vector<std::string> fields = FieldsOf(column.type.get());
    for (size_t i = 0; i < std::min(fields.size(), kMostTold); ++i)
      text += (i == 0 ? ": " : ", ") + fields[i];
    return text;
  }
  column.dataset = dataset.get();
  datasets_.push_back(std::move(dataset));
  columns_.push_back(std::move(column));
  return {};
}

std::string Source::AddField(const std::string& name) {
  SourceColumn column;
  column.name = name;
  column.dataset = &table_;
  column.path = table_path_;
  const int whole = hdf5_.types.member_index(table_type_.get(), name.c_str());
  if (whole >= 0) {
    column.fields = {name};
    column.type =
        Id(hdf5_, hdf5_.types.member_type(table_type_.get(), static_cast<unsigned>(whole)));
  } else {
    column.fields = SplitAt(name, '.');
    column.type = Id(hdf5_, hdf5_.types.copy(table_type_.get()));
    for (const std::string& part : column.fields) {
      const bool compound = hdf5_.types.of(column.type.get()) == Hdf5Class::kCompound;
      const int member = compound ? hdf5_.types.member_index(column.type.get(), part.c_str()) : -1;
      if (member < 0) {
        return "there is no field '" + name + "'" +
               NearestOf(name, FieldsOf(table_type_.get()), table_path_);
      }
      column.type =
          Id(hdf5_, hdf5_.types.member_type(column.type.get(), static_cast<unsigned>(member)));
    }
  }
  if (!column.type.valid()) return "'" + name + "': " + hdf5_.Why();
  if (hdf5_.types.of(column.type.get()) == Hdf5Class::kCompound)
    return "'" + name + "' is a compound: name one of its fields, such as " + name + "." +
           FieldsOf(column.type.get())[0];
  columns_.push_back(std::move(column));
  return {};
}

// A dataset of numbers or strings, by its own name.
std::string Source::AddElements(const std::string& name) {
  const std::string own = LastPart(table_path_);
  if (name != own) {
    return table_path_ + " has no fields: ask for '" + own + "', or without --dataset for '" +
           name + "'";
  }
  SourceColumn column;
  column.name = name;
  column.dataset = &table_;
  column.path = table_path_;
  column.type = Id(hdf5_, hdf5_.types.copy(table_type_.get()));
  columns_.push_back(std::move(column));
  return {};
}

// The first part of `path` that leads nowhere, and what there is instead.
std::string Source::NotThere(const std::string& what, hid_t from, const std::string& path) {
  const bool absolute = path.starts_with('/') || from == file_.get();
  std::string place = absolute ? "/" : group_path_;
  const hid_t begin = absolute ? file_.get() : from;
  Id at(hdf5_, hdf5_.objects.open(begin, absolute ? "/" : ".", kDefault));
  for (const std::string& part : SplitAt(path, '/')) {
    if (part.empty()) continue;
    Id next(hdf5_, hdf5_.objects.open(at.get(), part.c_str(), kDefault));
    if (next.valid()) {
      at = std::move(next);
      place = Joined(place, part);
      continue;
    }
    if (hdf5_.objects.kind(at.get()) != static_cast<int>(Hdf5Object::kGroup))
      return "there is no " + what + " '" + path + "': " + place + " is no group";
    if (hdf5_.objects.link_exists(at.get(), part.c_str(), kDefault) > 0)
      return "the " + what + " '" + path + "' cannot be opened: " + Joined(place, part) +
             " leads to nothing that is there";
    std::vector<std::string> names;
    hdf5_.objects.for_each_link(at.get(), kByName, kAnyOrder, nullptr, Collect, &names);
    const std::string text = "there is no " + what + " '" + path + "'";
    const std::vector<std::string_view> known(names.begin(), names.end());
    if (Meant(part, known).empty()) {
      if (const std::string other = Elsewhere(LastPart(path)); !other.empty()) return text + other;
    }
    return text + NearestOf(part, names, place == "/" ? "the file" : place);
  }
  return "there is no " + what + " '" + path + "'";
}

// Where else in the file something has this name: another group, or a compound dataset.
std::string Source::Elsewhere(const std::string& name) {
  std::vector<std::string> paths;
  hdf5_.objects.visit_links(file_.get(), kByName, kAnyOrder, Collect, &paths);
  for (const std::string& path : paths) {
    if (LastPart(path) != name) continue;
    const std::string group =
        "/" + path.substr(0, path.size() - std::min(path.size(), name.size() + 1));
    return "; /" + path + " is there: --group " + group;
  }
  for (const std::string& path : paths) {
    const Id object(hdf5_, hdf5_.objects.open(file_.get(), path.c_str(), kDefault));
    if (!object.valid() ||
        hdf5_.objects.kind(object.get()) != static_cast<int>(Hdf5Object::kDataset))
      continue;
    const Id type(hdf5_, hdf5_.data.type(object.get()));
    if (!type.valid() || hdf5_.types.of(type.get()) != Hdf5Class::kCompound) continue;
    if (hdf5_.types.member_index(type.get(), name.c_str()) >= 0)
      return "; /" + path + " has such a field: --dataset /" + path;
  }
  return {};
}

std::vector<std::string> Source::FieldsOf(hid_t type, const std::string& before) const {
  std::vector<std::string> names;
  const int count = hdf5_.types.members(type);
  for (int i = 0; i < count; ++i) {
    char* const name = hdf5_.types.member_name(type, static_cast<unsigned>(i));
    if (name == nullptr) continue;
    const std::string full = before + name;
    hdf5_.objects.free(name);
    const Id member(hdf5_, hdf5_.types.member_type(type, static_cast<unsigned>(i)));
    const bool deep = static_cast<size_t>(std::ranges::count(full, '.')) >= kMostFieldDepth;
    if (!member.valid() || deep || hdf5_.types.of(member.get()) != Hdf5Class::kCompound) {
      names.push_back(full);
      continue;
    }
    for (std::string& inner : FieldsOf(member.get(), full + ".")) names.push_back(std::move(inner));
  }
  return names;
}

}  // namespace tidelane::tools
