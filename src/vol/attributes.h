/// \file
/// The callbacks of attributes that are more than native.
///
/// A buffer in a GPU's memory goes through a copy that HDF5 can look at.
///
/// Thread safety: called by HDF5, under its lock.
#pragma once

#include "vol/library_state.h"

namespace tidelane::vol {

/// HDF5's H5Aexists_async leaves the answer unset when there is no such attribute: it is set to
/// false first.
herr_t AttributeSpecific(LibraryState& library, void* object, const H5VL_loc_params_t* location,
                         H5VL_attr_specific_args_t* args, hid_t dxpl, void** request);

/// `rest`: what the callback does with a buffer that the processor can look at.
herr_t AttributeWrite(LibraryState& library,
                      herr_t (*rest)(LibraryState&, void*, hid_t, const void*, hid_t, void**),
                      void* attribute, hid_t type, const void* buffer, hid_t dxpl, void** request);
herr_t AttributeRead(LibraryState& library,
                     herr_t (*rest)(LibraryState&, void*, hid_t, void*, hid_t, void**),
                     void* attribute, hid_t type, void* buffer, hid_t dxpl, void** request);

}  // namespace tidelane::vol
