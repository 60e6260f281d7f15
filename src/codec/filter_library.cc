#include "codec/filter_library.h"

#include <dlfcn.h>

namespace tidelane {

// The handle is never given back: a lane may be inside the image at any time.
FilterLibrary::FilterLibrary(const void* code) : handle_(nullptr) {
  Dl_info info{};
  if (code == nullptr || dladdr(code, &info) == 0 || info.dli_fname == nullptr) return;
  handle_ = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
}

void* FilterLibrary::Symbol(const char* name) const {
  return handle_ == nullptr ? nullptr : dlsym(handle_, name);
}

}  // namespace tidelane
