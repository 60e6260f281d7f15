/// \file
/// The files of src/tools/page/, put into the program by the build.
///
/// Thread safety: constant data.
#pragma once

namespace tidelane::tools {

extern const char kPageHtml[];
extern const char kPageStyle[];
extern const char kPageScript[];

}  // namespace tidelane::tools
