#include "query/object_name.h"

#include <sys/types.h>

#include <cerrno>

#include "query/quiet_errors.h"

namespace tidelane::query {

namespace {

template <typename Ask>
std::string Text(Ask ask) {
  const ssize_t length = ask(nullptr, 0);
  std::string name(length > 0 ? static_cast<size_t>(length) + 1 : 0, '\0');
  if (!name.empty()) {
    ask(name.data(), name.size());
    name.pop_back();
  }
  return name;
}

}  // namespace

std::string PathOf(h5::Library& hdf5, hid_t object) {
  return Text([&](char* to, size_t size) { return hdf5.Iget_name(object, to, size); });
}

std::string NameOfObject(h5::Library& hdf5, hid_t object) {
  const std::string name = PathOf(hdf5, object);
  const std::string file =
      Text([&](char* to, size_t size) { return hdf5.Fget_name(object, to, size); });
  return "'" + (name.empty() ? "?" : name) + "' of '" + file + "'";
}

std::string NameOfDataset(h5::Library& hdf5, hid_t dataset) {
  return "dataset " + NameOfObject(hdf5, dataset);
}

Status FailedAt(h5::Library& hdf5, const std::string& what, hid_t object) {
  const std::string cause = CauseOf(hdf5);  // before HDF5 is asked for names, and forgets it
  return Status::Failed(EIO, what + " " + NameOfObject(hdf5, object) + " (" + cause + ")");
}

}  // namespace tidelane::query
