#include "vol/find_file.h"

#include "h5/driver.h"
#include "h5/error.h"
#include "vol/dataset_catalogue.h"
#include "vol/object_info.h"

namespace tidelane::vol {

bool SerialOf(LibraryState& library, void* object, H5I_type_t type, unsigned long& serial) {
  if (type == H5I_DATASET) return SerialOfDataset(library, object, serial);
  if (library.hdf5().FileSerial(object, type, serial)) return true;
  if (type == H5I_FILE) {
    H5VL_file_get_args_t get{};
    get.op_type = H5VL_FILE_GET_FILENO;
    get.args.get_fileno.fileno = &serial;
    const auto native = library.hdf5().native().file_cls.get;
    return native(object, &get, library.default_dxpl, nullptr) >= 0;
  }
  H5O_info2_t info{};
  if (!InfoOf(library, object, type, info)) return false;
  serial = info.fileno;
  return true;
}

std::shared_ptr<File> FileOf(LibraryState& library, void* object, H5I_type_t type) {
  if (object == nullptr || !h5::Driver().has_files(library.slot)) return nullptr;
  const h5::KeepErrorStack keep(library.hdf5());
  unsigned long serial = 0;
  if (!SerialOf(library, object, type, serial)) return nullptr;
  return h5::Driver().file_with_serial(library.slot, serial);
}

bool RetryAndReport(LibraryState& library, void* object, H5I_type_t type) {
  const std::shared_ptr<File> file = FileOf(library, object, type);
  if (file == nullptr) return true;
  const Status status = file->drainer().RetryAndReport();
  if (!status.ok()) h5::PushError(library.hdf5(), status);
  return status.ok();
}

}  // namespace tidelane::vol
