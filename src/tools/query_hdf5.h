/// \file
/// The functions of an HDF5 that was found at run time, as far as `tidelane query` calls them, with types as every version since
/// 1.14 has them.
///
/// Invariant: an Id is closed once. Thread safety: one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tools/loaded_library.h"

namespace tidelane::tools {

using hid_t = int64_t;
using hsize_t = unsigned long long;

inline constexpr hid_t kDefault = 0;  // H5P_DEFAULT, H5S_ALL, H5E_DEFAULT

enum class Hdf5Class : int {  // H5T_class_t
  kInteger = 0,
  kFloat = 1,
  kString = 3,
  kBitfield = 4,
  kCompound = 6,
  kEnum = 8,
};
enum class Hdf5Object : int { kGroup = 2, kDataset = 5 };  // H5I_type_t

struct Hdf5Objects {
  explicit Hdf5Objects(const LoadedLibrary& library);
  hid_t (*open_file)(const char*, unsigned, hid_t);
  hid_t (*create_file)(const char*, unsigned, hid_t, hid_t);
  int (*is_accessible)(const char*, hid_t);
  hid_t (*open)(hid_t, const char*, hid_t);
  int (*kind)(hid_t);
  int (*close)(hid_t);
  int (*link_exists)(hid_t, const char*, hid_t);
  int (*for_each_link)(hid_t, int, int, hsize_t*, int (*)(hid_t, const char*, const void*, void*),
                       void*);
  int (*visit_links)(hid_t, int, int, int (*)(hid_t, const char*, const void*, void*), void*);
  int (*free)(void*);
};

struct Hdf5Types {
  explicit Hdf5Types(const LoadedLibrary& library);
  Hdf5Class (*of)(hid_t);
  size_t (*size)(hid_t);
  int (*set_size)(hid_t, size_t);
  int (*sign)(hid_t);
  int (*order)(hid_t);
  int (*set_order)(hid_t, int);
  int (*set_character_set)(hid_t, int);
  hid_t (*base)(hid_t);
  hid_t (*native)(hid_t, int);
  hid_t (*copy)(hid_t);
  int (*is_variable)(hid_t);
  int (*padding)(hid_t);
  int (*fields)(hid_t, size_t*, size_t*, size_t*, size_t*, size_t*);
  int (*members)(hid_t);
  int (*member_index)(hid_t, const char*);
  char* (*member_name)(hid_t, unsigned);
  hid_t (*member_type)(hid_t, unsigned);
  hid_t (*create)(Hdf5Class, size_t);
  int (*insert)(hid_t, const char*, size_t, hid_t);
  int (*reclaim)(hid_t, hid_t, hid_t, void*);
};

struct Hdf5Data {
  explicit Hdf5Data(const LoadedLibrary& library);
  hid_t (*space)(hid_t);
  hid_t (*type)(hid_t);
  int (*read)(hid_t, hid_t, hid_t, hid_t, hid_t, void*);
  int (*write)(hid_t, hid_t, hid_t, hid_t, hid_t, const void*);
  hid_t (*create)(hid_t, const char*, hid_t, hid_t, hid_t, hid_t, hid_t);
  int (*set_extent)(hid_t, const hsize_t*);
  hid_t (*make_space)(int, const hsize_t*, const hsize_t*);
  int (*select_box)(hid_t, int, const hsize_t*, const hsize_t*, const hsize_t*, const hsize_t*);
  int (*select_points)(hid_t, int, size_t, const hsize_t*);
  hid_t (*create_list)(hid_t);
  int (*set_chunk)(hid_t, int, const hsize_t*);
  int (*set_groups)(hid_t, unsigned);
  int (*set_character_set)(hid_t, int);
  hid_t (*create_attribute)(hid_t, const char*, hid_t, hid_t, hid_t, hid_t);
  int (*write_attribute)(hid_t, hid_t, const void*);
};

class Hdf5 {
 public:
  explicit Hdf5(const LoadedLibrary& library)
      : library_(library), objects(library), types(library), data(library) {}

  /// Begins, quietly: what fails is told by us. False: it cannot.
  bool Start() const;
  /// In HDF5's own words, why the last call failed: where it began.
  std::string Why() const;
  /// An address in it.
  const void* Code() const;
  /// A predefined type, class or list: "H5T_NATIVE_INT".
  hid_t Predefined(const std::string& name) const;

 private:
  const LoadedLibrary& library_;

 public:
  const Hdf5Objects objects;
  const Hdf5Types types;
  const Hdf5Data data;
};

/// What is open, or a type, a space, a list.
class Id {
 public:
  Id() = default;
  Id(const Hdf5& hdf5, hid_t id) : hdf5_(&hdf5), id_(id) {}
  Id(Id&& other) noexcept : hdf5_(other.hdf5_), id_(std::exchange(other.id_, -1)) {}
  Id& operator=(Id&& other) noexcept {
    std::swap(hdf5_, other.hdf5_);
    std::swap(id_, other.id_);
    return *this;
  }
  ~Id() { Close(); }
  bool valid() const { return id_ >= 0; }
  hid_t get() const { return id_; }
  /// False: what was written by it may be lost.
  bool Close() {
    const hid_t id = std::exchange(id_, -1);
    return id < 0 || hdf5_->objects.close(id) >= 0;
  }

 private:
  const Hdf5* hdf5_ = nullptr;
  hid_t id_ = -1;
};

}  // namespace tidelane::tools
