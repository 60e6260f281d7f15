/// \file
/// Functions of a GPU driver's library that the program has loaded, by their names.
///
/// Thread safety: any thread may call.
#pragma once

#include <dlfcn.h>

#include <new>

namespace tidelane::gpu {

/// False, and nullptr, where the library has none of that name.
template <typename Function>
bool Take(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

/// The driver whose functions `take_all` finds in the library at `path`, which is loaded and then stays so; nullptr: it lacks one.
template <typename Driver, typename Functions>
Driver* OpenDriver(const char* path, bool (*take_all)(void*, Functions&)) {
  void* const library = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
  if (library == nullptr) return nullptr;
  Functions functions{};
  auto* const driver =
      take_all(library, functions) ? new (std::nothrow) Driver(functions) : nullptr;
  if (driver == nullptr) dlclose(library);
  return driver;
}

}  // namespace tidelane::gpu
