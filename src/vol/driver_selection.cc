#include "vol/driver_selection.h"

#include "base/counters.h"
#include "engine/bring_home.h"
#include "engine/engine.h"
#include "h5/error.h"
#include "vol/call_queue.h"

namespace tidelane::vol {

AccessList::AccessList(LibraryState& library, const char* name, hid_t fapl)
    : library_(library), caller_(fapl) {
  h5::Library& hdf5 = library.hdf5();
  const h5::KeepErrorStack keep(hdf5);
  const hid_t driver = hdf5.Pget_driver(fapl);
  const hid_t ours = hdf5.DriverId();
  if (driver >= 0 && driver == ours) return;
  if (driver >= 0 && ours >= 0 && driver == hdf5.Sec2Id(fapl)) {
    copy_ = h5::OwnedId(hdf5, hdf5.Pcopy(fapl));
    if (copy_.valid() && hdf5.Pset_driver(copy_.get(), ours, nullptr) >= 0) return;
    copy_.Reset();
  }
  if (driver >= 0 && hdf5.IsMpiDriver(driver)) mpi_driver_ = driver;
  native_ = mpi_driver_ < 0;
  if (native_) Count(Fallback::kDriver);
  // Another driver reads and writes the file behind our back: it must find all of it. If bytes were
  // lost, the program learns it from that file's own flush or close; this open sees what storage
  // has, as after any failed write.
  if (name == nullptr) return;
  FinishCloses(library);
  static_cast<void>(Engine::Get().DrainPath(name));
  BringHome(Engine::Get(), name);
}

AccessList::~AccessList() {
  if (!copy_.valid()) return;
  const h5::KeepErrorStack keep(library_.hdf5());
  copy_.Reset();
}

void ReportSec2(LibraryState& library, hid_t fapl) {
  h5::Library& hdf5 = library.hdf5();
  if (hdf5.Pget_driver(fapl) == hdf5.DriverId()) hdf5.Pset_fapl_sec2(fapl);
}

}  // namespace tidelane::vol
