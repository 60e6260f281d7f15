/// \file
/// Numbers as people read them.
///
/// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <string>

namespace tidelane {

/// Appends what printf would print (up to 1023 characters at a time).
__attribute__((format(printf, 2, 3))) void Print(std::string& text, const char* format, ...);

std::string BytesInWords(uint64_t bytes);                     ///< "1.5 MiB"
std::string CountInWords(uint64_t count, const char* thing);  ///< "1 file", "3 files"

}  // namespace tidelane
