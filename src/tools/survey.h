/// \file
/// The files and folders that `tidelane recover` and `tidelane status` were given, in order: files, hidden files of publish=atomic, and
/// logs.
///
/// Thread safety: one thread.
#pragma once

#include <cstdint>
#include <string>

#include "log/recover_file.h"
#include "tools/arguments.h"

namespace tidelane::tools {

class Survey {
 public:
  virtual ~Survey() = default;
  /// Visits the operands, or this folder: the status to end with.
  int Run(const Arguments& arguments);

 protected:
  /// `file` is open to be looked at. `named`: it is an operand; otherwise it lies in a folder that is one.
  virtual void File(log::FileByName& file, const std::string& path, bool named) = 0;
  virtual void Hidden(const std::string& path, bool named) = 0;
  /// A log that belongs to no file: after the files of its folder. `beside`: the file whose name it has; empty: there is none.
  virtual void Stray(const log::FoundSegment& segment, const std::string& beside) = 0;

  /// On stderr; the command fails.
  void Complain(const std::string& message);
  void Complain(const std::string& path, int error);

 private:
  void Operand(const std::string& path, bool recursive);
  void Folder(const std::string& path, bool recursive);
  void Look(const std::string& path, bool named);
  void Log(const log::FoundSegment& segment, bool named);

  bool failed_ = false;
};

/// "In use" of a file or a log.
inline bool IsInUse(int error) { return error == EWOULDBLOCK; }
/// The file beside a log that is marked with it; empty: there is none.
std::string OwnerOf(const std::string& segment);
/// A log in the folder of a marked file that is its own by what is in it, whatever its name, and nobody else's; empty: none.
std::string LogElsewhere(const std::string& path, const Superblock& marked);
/// "3 min"
std::string AgeInWords(int64_t seconds);

}  // namespace tidelane::tools
