#include "vol/object_info.h"

namespace tidelane::vol {

bool InfoOf(LibraryState& library, void* object, H5I_type_t type, H5O_info2_t& info) {
  H5VL_object_get_args_t get{};
  get.op_type = H5VL_OBJECT_GET_INFO;
  get.args.get_info.fields = H5O_INFO_BASIC;
  get.args.get_info.oinfo = &info;
  H5VL_loc_params_t self{};
  self.obj_type = type;
  self.type = H5VL_OBJECT_BY_SELF;
  const auto native = library.hdf5().native().object_cls.get;
  return native(object, &self, &get, library.default_dxpl, nullptr) >= 0;
}

}  // namespace tidelane::vol
