/// \file
/// libtidelane_async.so: the connector name `async` (value 512), which existing programs look for
/// and job scripts carry.
///
/// HDF5 accepts one connector per plugin file, so this one forwards to libtidelane.so beside it.
/// There is one engine in the process, whichever name was used. Thread safety: may be called from
/// any thread.
#include <dlfcn.h>

#include <cstdio>
#include <string>

#include "h5/hdf5.h"

#define TIDELANE_EXPORT extern "C" __attribute__((visibility("default"), used))

namespace {

using PluginInfo = const void* (*)(const void* caller, const char* connector);

PluginInfo FindPluginInfo() {
  Dl_info self{};
  if (dladdr(reinterpret_cast<const void*>(&FindPluginInfo), &self) == 0) return nullptr;
  const std::string path = self.dli_fname;
  const size_t slash = path.rfind('/');
  const std::string beside =
      (slash == std::string::npos ? "." : path.substr(0, slash)) + "/libtidelane.so";
  void* plugin = dlopen(beside.c_str(), RTLD_NOW | RTLD_LOCAL);
  void* function = plugin == nullptr ? nullptr : dlsym(plugin, "tidelane_plugin_info");
  if (function == nullptr) std::fprintf(stderr, "tidelane: connector async: %s\n", dlerror());
  return reinterpret_cast<PluginInfo>(function);
}

}  // namespace

TIDELANE_EXPORT H5PL_type_t H5PLget_plugin_type(void) { return H5PL_TYPE_VOL; }

TIDELANE_EXPORT const void* H5PLget_plugin_info(void) {
  const void* caller = __builtin_return_address(0);
  const PluginInfo plugin_info = FindPluginInfo();
  return plugin_info == nullptr ? nullptr : plugin_info(caller, "async");
}
