/// \file
/// The connector's info: the string after its name ("under_vol=0;under_info={}") and the struct
/// behind it.
///
/// We stack on HDF5's native connector and nothing else, so there is nothing to say; but job
/// scripts carry the string and programs fill in the struct, which pass-through connectors share.
/// Both are checked, and anything but the native connector is an error that says so.
///
/// Invariant: an Info that HDF5 holds has a reference to the native connector's id, nothing else.
///
/// Thread safety: used under HDF5's lock.
#pragma once

#include "vol/instance.h"

namespace tidelane::vol {

/// The layout is that of HDF5's pass-through example and of vol-async: programs fill it in
/// themselves.
struct Info {
  hid_t under_vol_id;
  void* under_vol_info;
};

void* InfoCopy(Instance& instance, const void* info);
herr_t InfoCompare(Instance& instance, int* order, const void* left, const void* right);
herr_t InfoFree(Instance& instance, void* info);
herr_t InfoToString(Instance& instance, const void* info, char** text);
herr_t InfoFromString(Instance& instance, const char* text, void** info);

/// What InfoFromString accepts: nothing, blanks, or "under_vol=0" with an optional
/// ";under_info={}".
bool IsNativeInfo(const char* text);

}  // namespace tidelane::vol
