#include "vol/attributes.h"

#include <optional>

#include "gpu/loaded.h"
#include "h5/error.h"
#include "h5/owned_id.h"
#include "vol/chunked_dataset.h"
#include "vol/device_twin.h"
#include "vol/find_file.h"
#include "vol/tracked_call.h"

namespace tidelane::vol {

namespace {

std::optional<gpu::Memory> DeviceOf(const void* buffer) {
  return gpu::IsLoaded() ? gpu::Find(buffer) : std::nullopt;
}

// nullopt: the reason is on the error stack.
std::optional<size_t> SizeOfAttribute(LibraryState& library, void* attribute, hid_t type,
                                      hid_t dxpl) {
  h5::Library& hdf5 = library.hdf5();
  if (!IsPlainType(hdf5, type)) {
    h5::PushError(
        hdf5,
        "cannot transfer an attribute with a buffer in device memory: its elements would be "
        "pointers to host memory (variable length or references)");
    return std::nullopt;
  }
  H5VL_attr_get_args_t get{};
  get.op_type = H5VL_ATTR_GET_SPACE;
  if (hdf5.native().attr_cls.get(attribute, &get, dxpl, nullptr) < 0) return std::nullopt;
  const h5::OwnedId space(hdf5, get.args.get_space.space_id);
  const hssize_t points = hdf5.Sget_simple_extent_npoints(space.get());
  return points <= 0 ? 0 : static_cast<size_t>(points) * hdf5.Tget_size(type);
}

}  // namespace

herr_t AttributeSpecific(LibraryState& library, void* object, const H5VL_loc_params_t* location,
                         H5VL_attr_specific_args_t* args, hid_t dxpl, void** request) {
  const auto native = library.hdf5().native().attr_cls.specific;
  if (args->op_type == H5VL_ATTR_EXISTS) *args->args.exists.exists = false;
  const bool changes = args->op_type != H5VL_ATTR_EXISTS && args->op_type != H5VL_ATTR_ITER;
  if (request == nullptr && changes && !MayChange(library, object, location->obj_type)) return -1;
  if (request == nullptr || !changes) return native(object, location, args, dxpl, nullptr);
  TrackedCall call(library, Effect::kWrite, request);
  const herr_t result = native(object, location, args, dxpl, nullptr);
  call.Finish(result >= 0);
  return result;
}

herr_t AttributeWrite(LibraryState& library,
                      herr_t (*rest)(LibraryState&, void*, hid_t, const void*, hid_t, void**),
                      void* attribute, hid_t type, const void* buffer, hid_t dxpl, void** request) {
  const std::optional<gpu::Memory> memory = DeviceOf(buffer);
  if (!memory.has_value()) return rest(library, attribute, type, buffer, dxpl, request);
  const std::optional<size_t> size = SizeOfAttribute(library, attribute, type, dxpl);
  if (!size.has_value()) return -1;
  DeviceTwin twin(library, "an attribute", *memory, const_cast<void*>(buffer), *size);
  if (!twin.CopyDown()) return -1;
  return rest(library, attribute, type, twin.data(), dxpl, request);
}

herr_t AttributeRead(LibraryState& library,
                     herr_t (*rest)(LibraryState&, void*, hid_t, void*, hid_t, void**),
                     void* attribute, hid_t type, void* buffer, hid_t dxpl, void** request) {
  const std::optional<gpu::Memory> memory = DeviceOf(buffer);
  if (!memory.has_value()) return rest(library, attribute, type, buffer, dxpl, request);
  const std::optional<size_t> size = SizeOfAttribute(library, attribute, type, dxpl);
  if (!size.has_value()) return -1;
  // What the attribute has no value for stays as it is: fields that only the program's type has.
  DeviceTwin twin(library, "an attribute", *memory, buffer, *size);
  if (!twin.CopyDown()) return -1;
  const herr_t result = rest(library, attribute, type, twin.data(), dxpl, nullptr);
  return result >= 0 && !twin.CopyUp() ? -1 : result;
}

}  // namespace tidelane::vol
