#include "h5/error.h"

#include <system_error>

namespace tidelane::h5 {

namespace {

void PushStatus(Library& library, hid_t stack, const Status& status, std::source_location where,
                const Library::ErrorIds& ids) {
  library.Epush2(stack, where.file_name(), where.function_name(), where.line(), ids.error_class,
                 ids.major, ids.minor, "%s, errno = %d, error message = '%s'",
                 status.Message().c_str(), status.code(),
                 std::generic_category().message(status.code()).c_str());
}

void PushText(Library& library, const char* text, std::source_location where,
              const Library::ErrorIds& ids) {
  library.Epush2(kDefault, where.file_name(), where.function_name(), where.line(), ids.error_class,
                 ids.major, ids.minor, "%s", text);
}

// Registering our messages is a public call that clears the stack: do it under a guard, before
// anything is pushed.
void PrepareIds(Library& library) {
  KeepErrorStack keep(library);
  library.Errors();
}

}  // namespace

void PushError(Library& library, const Status& status, std::source_location where) {
  PrepareIds(library);
  PushStatus(library, kDefault, status, where, library.Errors());
}

void PushNativeError(Library& library, const std::string& text, const char* major,
                     const char* minor, std::source_location where) {
  Library::ErrorIds ids;
  bool found = false;
  {
    KeepErrorStack keep(library);
    found = library.NativeErrors(major, minor, ids);
  }
  if (!found) return PushError(library, text.c_str(), where);
  PushText(library, text.c_str(), where, ids);
}

void PushError(Library& library, const char* message, std::source_location where) {
  PrepareIds(library);
  PushText(library, message, where, library.Errors());
}

hid_t MakeErrorStack(Library& library, const Status& status, std::source_location where) {
  KeepErrorStack keep(library);
  library.Errors();
  const hid_t stack = library.Ecreate_stack();
  if (stack >= 0) PushStatus(library, stack, status, where, library.Errors());
  return stack;
}

}  // namespace tidelane::h5
