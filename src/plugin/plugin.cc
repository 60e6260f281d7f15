/// \file
/// What HDF5 finds in libtidelane.so, and what libtidelane_async.so finds there: where the two faces, which do not know
/// each other, are put together.
///
/// The return address of H5PLget_plugin_info says which libhdf5 is asking.
///
/// Invariant: drivers are registered before any class is handed out, so nobody finds a file on a driver that is not known.
/// Thread safety: may be called from any thread.
#include "h5/hdf5.h"
#include "query/register.h"
#include "vfd/register.h"
#include "vol/connector.h"
#include "vol/late_close.h"
#include "vol/stored_arrays.h"

#define TIDELANE_EXPORT extern "C" __attribute__((visibility("default"), used))

TIDELANE_EXPORT H5PL_type_t H5PLget_plugin_type(void) { return H5PL_TYPE_VOL; }

/// For our shim: the class called `connector` for the libhdf5 that contains the address `caller`.
TIDELANE_EXPORT const void* tidelane_plugin_info(const void* caller, const char* connector) {
  tidelane::vfd::RegisterDrivers();
  tidelane::query::RegisterOperation();
  tidelane::vol::RegisterLateCloses();
  tidelane::vol::RegisterStoredArrays();
  return tidelane::vol::PluginInfo(caller, connector);
}

TIDELANE_EXPORT const void* H5PLget_plugin_info(void) {
  return tidelane_plugin_info(__builtin_return_address(0), "tidelane");
}
