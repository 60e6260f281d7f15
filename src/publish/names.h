/// \file
/// Files by their names: what is not published yet is found by the name that it will have (publish/unpublished.h).
///
/// Invariant: no name leads to a hidden file outside of this process.
/// Thread safety: all functions may be called from any thread.
#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>

#include "base/status.h"
#include "device/identity.h"
#include "publish/directory_entry.h"
#include "publish/publication.h"

namespace tidelane {

/// Of the file that `path` leads to in this process: the hidden one where there is one, else what is there now.
std::optional<FileIdentity> IdentityBehind(const char* path);

/// unlink(2), where a file that is not published counts as the one of that name: 0 or an errno.
int RemoveName(const char* path);

/// A file opened by its name.
struct OpenedName {
  Descriptor file;
  std::shared_ptr<Publication> publication;  ///< nullptr: it is the file that is there
};

/// open(2) by a name, as above; `atomic`: what is created is hidden until it is published, where that can be.
/// EWOULDBLOCK from "lock": another program writes it. ESTALE: try again.
Status OpenByName(const char* path, int flags, mode_t mode, bool atomic, OpenedName& opened);

}  // namespace tidelane
