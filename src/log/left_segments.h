/// \file
/// What lies by the names of a file's segments when its log needs them: left by a program that has ended, or another file's.
///
/// Invariant: what somebody may need is set aside, never removed.
/// Thread safety: all functions may be called from any thread, one at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "device/device.h"
#include "log/format.h"
#include "log/log_parts.h"
#include "log/marked_file.h"

namespace tidelane::log {

class LeftSegments {
 public:
  LeftSegments(MarkedFile& file, const LogParts& parts) : file_(file), parts_(parts) {}

  /// Whether something lies by a segment's name.
  bool HasAny();
  /// Removes what a killed program has left and of which the file, claimed and not marked, has everything.
  void RemoveUseless();
  /// The name of a segment becomes free: 0 or an errno.
  int MakeRoomFor(const std::string& segment);

 private:
  struct Left {
    std::string name;
    std::unique_ptr<Device> file;
    uint64_t size = 0;
    std::optional<SegmentHeader> header = {};

    int Read();
  };

  bool IsUseless(const Left& left);
  int StoreSuperblock();

  MarkedFile& file_;
  const LogParts& parts_;
};

}  // namespace tidelane::log
