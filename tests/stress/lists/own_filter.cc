// The filter of own_filter.h as a plugin for h5diff and h5dump.
#include "stress/lists/own_filter.h"

#include <H5PLextern.h>

extern "C" {
H5PL_type_t H5PLget_plugin_type(void) { return H5PL_TYPE_FILTER; }
const void* H5PLget_plugin_info(void) { return &tidelane::stress::kOwnFilterClass; }
}
