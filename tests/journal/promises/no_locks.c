// Preloaded, a file system without locks of open file descriptions, as some that are mounted over a network are.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>

#define FCNTL(name)                                                                  \
  int name(int fd, int command, ...) {                                               \
    static int (*real)(int, int, ...);                                               \
    if (real == 0) real = (int (*)(int, int, ...))dlsym(RTLD_NEXT, #name);           \
    va_list more;                                                                    \
    va_start(more, command);                                                         \
    void* argument = va_arg(more, void*);                                            \
    va_end(more);                                                                    \
    if (command == F_OFD_SETLK || command == F_OFD_SETLKW || command == F_OFD_GETLK) \
      return errno = ENOLCK, -1;                                                     \
    return real(fd, command, argument);                                              \
  }
FCNTL(fcntl)
FCNTL(fcntl64)
