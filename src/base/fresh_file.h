/// \file
/// Names that nobody can guess, and new files under them.
///
/// Whoever may write to a folder can put a link or a file where a program is going to create one: with a name made of a
/// process id and a counter that is easy, and happens by accident where containers number processes alike.
///
/// Invariant: a file that was there before is never opened, and no link is followed.
/// Thread safety: any thread may call these at any time.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

namespace tidelane {

/// From the system's generator; never 0.
uint64_t RandomBits();

/// Creates a file for writing whose name is `beside` and something behind it. The descriptor, which is not inherited across
/// exec, with the file's name in `name`; -1 with errno.
int CreateFresh(const std::string& beside, mode_t mode, std::string& name);

}  // namespace tidelane
