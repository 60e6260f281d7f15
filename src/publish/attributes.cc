#include "publish/attributes.h"

#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace tidelane {
namespace {

// Calls that say how large the answer is when they are given no room.
template <typename Call>
int ReadAll(Call call, std::vector<char>& answer) {
  for (;;) {
    const ssize_t size = call(nullptr, 0);
    if (size < 0) return errno;
    answer.resize(static_cast<size_t>(size));
    if (size == 0) return 0;
    const ssize_t read = call(answer.data(), answer.size());
    if (read >= 0) {
      answer.resize(static_cast<size_t>(read));
      return 0;
    }
    if (errno != ERANGE) return errno;  // else it has grown meanwhile
  }
}

constexpr char kAccessList[] = "system.posix_acl_access";

// The rest is the file system's or the system's own, and says something of that one file (where it lies, what its bytes hash to).
bool IsThePrograms(std::string_view name) {
  return name.starts_with("user.") || name == kAccessList;
}

int ModeOf(int from, int to) {
  struct stat wanted;
  if (fstat(from, &wanted) != 0 || fchmod(to, wanted.st_mode & 07777) != 0) return errno;
  return 0;
}

int CopyAttributes(int from, int to) {
  std::vector<char> names;
  int error = ReadAll([&](char* room, size_t size) { return flistxattr(from, room, size); }, names);
  if (error != 0) return error == ENOTSUP ? 0 : error;
  std::vector<char> value;
  bool has_access_list = false;
  for (size_t at = 0; at < names.size();) {
    const char* const name = names.data() + at;
    at += std::strlen(name) + 1;
    if (!IsThePrograms(name)) continue;
    has_access_list |= std::string_view(name) == kAccessList;
    error =
        ReadAll([&](char* room, size_t size) { return fgetxattr(from, name, room, size); }, value);
    if (error == ENODATA) continue;  // somebody has just removed it
    if (error == 0 && fsetxattr(to, name, value.data(), value.size(), 0) != 0) error = errno;
    if (error != 0) return error;
  }
  // One that the folder gave it.
  if (!has_access_list && fremovexattr(to, kAccessList) == 0) return ModeOf(from, to);
  return 0;
}

}  // namespace

int TakeOverAttributes(int from, int to) {
  struct stat wanted;
  struct stat have;
  if (fstat(from, &wanted) != 0 || fstat(to, &have) != 0) return errno;
  if (wanted.st_gid != have.st_gid && fchown(to, static_cast<uid_t>(-1), wanted.st_gid) != 0)
    return errno;
  // The mode comes before an access list, which it would change, and after the group, whose change clears bits of it.
  if (const int error = ModeOf(from, to); error != 0) return error;
  return CopyAttributes(from, to);
}

}  // namespace tidelane
