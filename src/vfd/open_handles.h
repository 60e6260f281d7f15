/// \file
/// What each libhdf5 has open of our driver: found by HDF5's serial number, and by file.
///
/// A program may have thousands of files open, and both are asked for with each dataset that it opens.
///
/// Invariant: handles lie in the order in which they were opened, which is that of their serial numbers: HDF5 counts them up. It sets
/// the number after the driver's open has returned, and begins anew after H5close.
/// Thread safety: used under HDF5's lock; each libhdf5 has its own.
#pragma once

#include <cstddef>
#include <memory>
#include <unordered_map>
#include <vector>

#include "file/file.h"
#include "h5/library.h"

namespace tidelane::vfd {

/// One opening of a file, as HDF5 has it.
struct Handle {
  H5FD_t pub;  // first: HDF5 casts
  h5::Library* library;
  std::shared_ptr<File> file;
  haddr_t eoa;
  bool
      read_only;  // for HDF5: the file may be one that was closed while it drains, and can be written
  bool ignore_disabled_locks;
  bool family_to_single;
  bool page_buffer;
  bool left_open;  // by HDF5 at its end: the file is closed, and this stays for whoever has it
  const H5FD_class_t*
      registered;  // the class that HDF5 has of us, while it sees the other one (OpenHandles::TakeSingly)
};

class OpenHandles {
 public:
  /// Those of the libhdf5 in `slot`.
  static OpenHandles& In(int slot);

  bool empty() const { return handles_.empty(); }
  /// In the order in which they were opened; changes with Add and Remove.
  const std::vector<Handle*>& all() const { return handles_; }
  /// std::bad_alloc, and nothing is changed.
  void Add(Handle* handle);
  void Remove(const Handle* handle);

  /// nullptr: there is none.
  Handle* WithSerial(unsigned long serial) const;
  /// The one of `file`; nullptr: there is none.
  Handle* Of(const File& file) const;

  /// Whether HDF5 sees a driver that takes one piece in a call (`single`), or many, from now on; returns which it saw until now.
  bool TakeSingly(Handle& handle, const H5FD_class_t* single);
  /// All take many pieces: HDF5 compares the classes of a file that it opens and of those that it has open.
  void TakeMany();

 private:
  void TakeMany(Handle& handle);

  std::vector<Handle*> handles_;
  std::unordered_map<const File*, Handle*> by_file_;
  size_t single_ = 0;  // handles that take one piece in a call
};

}  // namespace tidelane::vfd
