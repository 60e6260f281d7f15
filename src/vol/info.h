/// \file
/// The connector's info: the string after its name ("under_vol=0;under_info={};close=deferred") and
/// the struct behind it.
///
/// We stack on HDF5's native connector and nothing else; but job scripts carry the string and
/// programs fill in the struct, which pass-through connectors share. Both are checked, and anything
/// but the native connector is an error that says so. Settings in the string are for the files that
/// are opened with it: the native connector has no info, so `under_vol_info`, which would be its, is
/// either null or one of the FileChoices that we keep. A pointer that a program put there is looked
/// up among them and never followed.
///
/// Invariants: an Info that HDF5 holds has a reference to the native connector's id, nothing else;
/// FileChoices are kept once each, at most kMostChoices different ones, for ever.
///
/// Thread safety: used under HDF5's lock.
#pragma once

#include "base/config.h"
#include "h5/owned_id.h"
#include "vol/library_state.h"

namespace tidelane::vol {

/// The layout is that of HDF5's pass-through example and of the existing asynchronous connector:
/// programs fill it in themselves.
struct Info {
  hid_t under_vol_id;
  void* under_vol_info;
};

inline constexpr size_t kMostChoices = 1024;

void* InfoCopy(LibraryState& library, const void* info);
herr_t InfoCompare(LibraryState& library, int* order, const void* left, const void* right);
herr_t InfoFree(LibraryState& library, void* info);
herr_t InfoToString(LibraryState& library, const void* info, char** text);
herr_t InfoFromString(LibraryState& library, const char* text, void** info);

/// Whether it is the id of `tidelane` or `async`.
bool IsOurConnector(LibraryState& library, const h5::OwnedId& connector);

/// What the access list `fapl` says about the files opened with it; nullptr: nothing, so the
/// process's settings. Lives as long as the process.
const FileSettings* SettingsOf(LibraryState& library, hid_t fapl);

}  // namespace tidelane::vol
