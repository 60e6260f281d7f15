#include "query/quiet_errors.h"

namespace tidelane::query {

std::string CauseOf(h5::Library& hdf5) {
  std::string cause;
  const auto note = [](unsigned, const H5E_error2_t* error, void* context) noexcept -> herr_t {
    if (error->desc != nullptr && *error->desc != '\0')
      static_cast<std::string*>(context)->assign(error->desc);
    return 0;
  };
  // From what the program called down to what failed.
  hdf5.Ewalk2(h5::kDefault, H5E_WALK_DOWNWARD, note, &cause);
  return cause.empty() ? "HDF5 does not say why" : cause;
}

}  // namespace tidelane::query
