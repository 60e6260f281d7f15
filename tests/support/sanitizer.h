// Whether a sanitizer watches this run: drivers of the plugin are compiled once, without one, and may run with its runtime.
//
// Thread safety: any thread.
#pragma once

#include <dlfcn.h>

namespace tidelane::testing {

inline bool sanitized() {
  return ::dlsym(RTLD_DEFAULT, "__asan_init") != nullptr ||
         ::dlsym(RTLD_DEFAULT, "__tsan_init") != nullptr;
}

}  // namespace tidelane::testing
