/* Memory that is short, for programs of one source file: what the plugin asks for on the thread of the program fails, the nth time.
 *
 * Invariant: what anybody else asks for is there. dl_iterate_phdr(find_plugin, NULL) comes first.
 * Thread safety: the counter is atomic; only the first thread is short of memory. */
#pragma once

#include <errno.h>
#include <link.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

static struct {
  uintptr_t begin, end;
} plugin;
static atomic_int allocations_left; /* until one fails; 0: none does */

void* __libc_malloc(size_t size);
__attribute__((visibility("default"))) void* malloc(size_t size) {
  const uintptr_t caller = (uintptr_t)__builtin_return_address(0);
  if (atomic_load(&allocations_left) != 0 && caller >= plugin.begin && caller < plugin.end &&
      gettid() == getpid() && atomic_fetch_sub(&allocations_left, 1) == 1) {
    errno = ENOMEM;
    return NULL;
  }
  return __libc_malloc(size);
}

static int find_plugin(struct dl_phdr_info* library, size_t size, void* none) {
  (void)size, (void)none;
  if (strstr(library->dlpi_name, "libtidelane.so") == NULL) return 0;
  plugin.begin = library->dlpi_addr;
  for (int i = 0; i < library->dlpi_phnum; ++i) {
    const uintptr_t end =
        library->dlpi_addr + library->dlpi_phdr[i].p_vaddr + library->dlpi_phdr[i].p_memsz;
    if (library->dlpi_phdr[i].p_type == PT_LOAD && end > plugin.end) plugin.end = end;
  }
  return 1;
}
