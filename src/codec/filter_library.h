/// \file
/// The libraries behind a filter that somebody else registered with HDF5: the image that has the
/// filter's function, and what that is linked with. Found by the function's address, so that it is
/// the very version that HDF5 would use, and only where it is installed.
///
/// Invariant: an image that was found stays loaded until the process ends, also when HDF5 closes its
/// plugins.
///
/// Thread safety: any thread. Looking for an image may take the dynamic linker's lock.
#pragma once

namespace tidelane {

class FilterLibrary {
 public:
  /// Of the image that has the address `code`.
  explicit FilterLibrary(const void* code);

  /// `function` becomes that of this name; false: there is none.
  template <typename Function>
  bool Find(const char* name, Function*& function) const {
    function = reinterpret_cast<Function*>(Symbol(name));
    return function != nullptr;
  }
  bool Has(const char* name) const { return Symbol(name) != nullptr; }

 private:
  void* Symbol(const char* name) const;

  void* handle_;
};

}  // namespace tidelane
