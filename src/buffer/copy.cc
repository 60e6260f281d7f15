#include "buffer/copy.h"

#include <cstring>
namespace tidelane {
void CopyBytes(void* to, const void* from, size_t n, size_t) { std::memcpy(to, from, n); }
}  // namespace tidelane
