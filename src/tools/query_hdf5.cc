#include "tools/query_hdf5.h"

namespace tidelane::tools {
namespace {

struct ErrorEntry {  // H5E_error2_t
  hid_t cls;
  hid_t major;
  hid_t minor;
  unsigned line;
  const char* function;
  const char* file;
  const char* text;
};

int KeepFirst(unsigned number, const void* entry, void* kept) {
  const char* const text = static_cast<const ErrorEntry*>(entry)->text;
  if (number == 0 && text != nullptr) *static_cast<std::string*>(kept) = text;
  return 0;
}

}  // namespace

Hdf5Objects::Hdf5Objects(const LoadedLibrary& library) {
  library.Get("H5Fopen", open_file);
  library.Get("H5Fcreate", create_file);
  library.Get("H5Fis_accessible", is_accessible);
  library.Get("H5Oopen", open);
  library.Get("H5Iget_type", kind);
  library.Get("H5Idec_ref", close);
  library.Get("H5Lexists", link_exists);
  library.Get("H5Literate2", for_each_link);
  library.Get("H5Lvisit2", visit_links);
  library.Get("H5free_memory", free);
}

Hdf5Types::Hdf5Types(const LoadedLibrary& library) {
  library.Get("H5Tget_class", of);
  library.Get("H5Tget_size", size);
  library.Get("H5Tset_size", set_size);
  library.Get("H5Tget_sign", sign);
  library.Get("H5Tget_order", order);
  library.Get("H5Tset_order", set_order);
  library.Get("H5Tset_cset", set_character_set);
  library.Get("H5Tget_super", base);
  library.Get("H5Tget_native_type", native);
  library.Get("H5Tcopy", copy);
  library.Get("H5Tis_variable_str", is_variable);
  library.Get("H5Tget_strpad", padding);
  library.Get("H5Tget_fields", fields);
  library.Get("H5Tget_nmembers", members);
  library.Get("H5Tget_member_index", member_index);
  library.Get("H5Tget_member_name", member_name);
  library.Get("H5Tget_member_type", member_type);
  library.Get("H5Tcreate", create);
  library.Get("H5Tinsert", insert);
  library.Get("H5Treclaim", reclaim);
}

Hdf5Data::Hdf5Data(const LoadedLibrary& library) {
  library.Get("H5Dget_space", space);
  library.Get("H5Dget_type", type);
  library.Get("H5Dread", read);
  library.Get("H5Dwrite", write);
  library.Get("H5Dcreate2", create);
  library.Get("H5Dset_extent", set_extent);
  library.Get("H5Screate_simple", make_space);
  library.Get("H5Sselect_hyperslab", select_box);
  library.Get("H5Sselect_elements", select_points);
  library.Get("H5Pcreate", create_list);
  library.Get("H5Pset_chunk", set_chunk);
  library.Get("H5Pset_create_intermediate_group", set_groups);
  library.Get("H5Pset_char_encoding", set_character_set);
  library.Get("H5Acreate2", create_attribute);
  library.Get("H5Awrite", write_attribute);
}

bool Hdf5::Start() const {
  library_.Find<int(hid_t, void*, void*)>("H5Eset_auto2")(kDefault, nullptr, nullptr);
  return library_.Find<int()>("H5open")() >= 0;
}

std::string Hdf5::Why() const {
  constexpr int kUpward = 0;  // H5E_WALK_UPWARD: where it began is first
  std::string why;
  library_.Find<int(hid_t, int, int (*)(unsigned, const void*, void*), void*)>("H5Ewalk2")(
      kDefault, kUpward, KeepFirst, &why);
  return why.empty() ? "HDF5 does not say why" : why;
}

const void* Hdf5::Code() const {
  return reinterpret_cast<const void*>(library_.Find<int()>("H5open"));
}

hid_t Hdf5::Predefined(const std::string& name) const {
  return *library_.Find<hid_t>((name + "_g").c_str());
}

}  // namespace tidelane::tools
