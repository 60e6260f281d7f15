/// \file
/// A shared library that is found at run time: HDF5, the plugin's file, a GPU's driver.
///
/// Invariant: a function is looked up before it is called; one that is missing is said by name, and ends the process, which is a
/// child made for the purpose.
///
/// Thread safety: one thread.
#pragma once

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <string>

namespace tidelane::tools {

class LoadedLibrary {
 public:
  explicit LoadedLibrary(const std::string& path)
      : handle_(dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL)) {
    if (handle_ == nullptr) error_ = dlerror();
  }
  const std::string& error() const { return error_; }
  bool Has(const char* name) const { return dlsym(handle_, name) != nullptr; }

  template <class Function>
  Function* Find(const char* name) const {
    void* const found = dlsym(handle_, name);
    if (found == nullptr) {
      std::fprintf(stderr, "the library has no %s\n", name);
      std::exit(1);
    }
    return reinterpret_cast<Function*>(found);
  }
  template <class Function>
  void Get(const char* name, Function*& function) const {
    function = Find<Function>(name);
  }

 private:
  void* handle_;
  std::string error_;
};

}  // namespace tidelane::tools
